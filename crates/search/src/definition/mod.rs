//! The definition of an index of type `search`: its fields with their types, and its analyzers.

mod fields;
mod mapping;
mod stored_source;

pub use fields::{Autocomplete, FieldType, KeptOfWords, NormalizerName, StringField, Tokenization};
pub use mapping::Mapping;
pub use stored_source::StoredSource;

use crate::{Reader, Refusal};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{Failure, Result};

/// The default analyzer of string fields.
pub(crate) const ANALYZER_USUAL: &str = "lucene.standard";

/// Deepest nesting of documents in a definition.
pub(crate) const DEPTH_MAX: usize = 64;

/// A synonym mapping. Its words come from another collection.
#[derive(Clone, Debug)]
pub struct Synonyms {
    /// Name of the mapping in searches.
    pub name: String,
    /// The analyzer of the mapping's words.
    pub analyzer: String,
    /// The collection with the mapping's words, in the same database.
    pub source: String,
}

/// The definition of an index of type `search`.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The indexed fields.
    pub mapping: Mapping,
    /// The analyzer of string fields without one of their own.
    pub analyzer: String,
    /// The analyzer of searched texts; `None` for the analyzer of the documents.
    pub search_analyzer: Option<String>,
    /// The definitions of custom analyzers, as sent.
    pub analyzers: Vec<DocumentBuf>,
    /// The part of a document that `returnStoredSource` returns.
    pub stored_source: StoredSource,
    /// Synonym mappings.
    pub synonyms: Vec<Synonyms>,
}

impl Definition {
    /// Parses a definition; messages call it `path`.
    /// # Errors
    /// `BadValue` for a malformed definition; `CommandNotSupported` for unsupported options.
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

/// Checks the depth of nesting.
fn check_depth(depth: usize) -> Result<()> {
    if depth > DEPTH_MAX {
        return Err(Failure::bad_value(format!("the mappings of a search index nest {DEPTH_MAX} levels deep at most")));
    }
    Ok(())
}

/// The value of a boolean, `false` if missing; `None` for a value of another type.
fn is_true(value: Option<ValueRef<'_>>) -> Option<bool> {
    match value {
        None => Some(false),
        Some(ValueRef::Boolean(value)) => Some(value),
        Some(_) => None,
    }
}
