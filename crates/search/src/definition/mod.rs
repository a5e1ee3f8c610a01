//! The definition of an index of type `search`: which fields it has, as what, and how texts are cut.

mod fields;
mod mapping;
mod stored_source;

pub use fields::{Autocomplete, FieldType, KeptOfWords, NormalizerName, StringField, Tokenization};
pub use mapping::Mapping;
pub use stored_source::StoredSource;

use crate::{Reader, Refusal};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{Failure, Result};

/// The analyzer of a string field where none is named.
pub(crate) const ANALYZER_USUAL: &str = "lucene.standard";

/// How deep documents may stand inside each other in a definition.
pub(crate) const DEPTH_MAX: usize = 64;

/// A synonym mapping: words that stand for each other, from another collection.
#[derive(Clone, Debug)]
pub struct Synonyms {
    /// How a search names it.
    pub name: String,
    /// How its words are cut.
    pub analyzer: String,
    /// The collection of its words, in the same database.
    pub source: String,
}

/// What an index of type `search` says.
#[derive(Clone, Debug)]
pub struct Definition {
    /// What it has of a document.
    pub mapping: Mapping,
    /// How strings are cut whose field does not say.
    pub analyzer: String,
    /// The same of what is searched for; as documents are where nothing is said.
    pub search_analyzer: Option<String>,
    /// The definitions of analyzers, as they were sent.
    pub analyzers: Vec<DocumentBuf>,
    /// What `returnStoredSource` shows of a document.
    pub stored_source: StoredSource,
    /// Synonym mappings.
    pub synonyms: Vec<Synonyms>,
}

impl Definition {
    /// Reads a definition, which messages call `path`.
    /// # Errors
    /// `BadValue` for a malformed one; `CommandNotSupported` for what is not built.
    pub fn parse(definition: DocumentRef<'_>, path: &str) -> Result<Self> {
        let reader = Reader::new(definition, path, Refusal::Definition);
        let analyzer = reader.word("analyzer")?.unwrap_or(ANALYZER_USUAL).to_owned();
        let search_analyzer = reader.word("searchAnalyzer")?.map(str::to_owned);
        let analyzers = reader.inners("analyzers")?.unwrap_or_default();
        let mappings = reader.required(reader.inner("mappings")?, "mappings")?;
        let mapping = Mapping::parse(&mappings, 0)?;
        let stored_source = StoredSource::parse(&reader)?;
        let synonyms = reader.inners("synonyms")?.unwrap_or_default();
        let synonyms = synonyms.iter().map(parse_synonyms).collect::<Result<_>>()?;
        reader.not_supported_yet(&["typeSets"])?;
        match reader.integer("numPartitions")? {
            None | Some(1) => {}
            Some(2 | 4) => return Err(Failure::not_supported_yet("numPartitions above 1")),
            Some(_) => return Err(reader.wrong("numPartitions", "must be one of [1, 2, 4]")),
        }
        reader.done()?;
        let analyzers = analyzers.iter().map(|analyzer| analyzer.document().to_owned()).collect();
        Ok(Self { mapping, analyzer, search_analyzer, analyzers, stored_source, synonyms })
    }
}

fn parse_synonyms(reader: &Reader<'_>) -> Result<Synonyms> {
    let name = reader.required(reader.word("name")?, "name")?.to_owned();
    let analyzer = reader.required(reader.word("analyzer")?, "analyzer")?.to_owned();
    let source = reader.required(reader.inner("source")?, "source")?;
    let collection = source.required(source.word("collection")?, "collection")?.to_owned();
    source.done()?;
    reader.done()?;
    Ok(Synonyms { name, analyzer, source: collection })
}

/// Refuses what nests too deep.
fn check_depth(depth: usize) -> Result<()> {
    if depth > DEPTH_MAX {
        return Err(Failure::bad_value(format!("the mappings of a search index nest {DEPTH_MAX} levels deep at most")));
    }
    Ok(())
}

/// Whether a value says `true`, where a boolean or something else may stand.
fn is_true(value: Option<ValueRef<'_>>) -> Option<bool> {
    match value {
        None => Some(false),
        Some(ValueRef::Boolean(value)) => Some(value),
        Some(_) => None,
    }
}
