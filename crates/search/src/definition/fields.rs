//! As what an index may have a field.

use super::{Mapping, StoredSource};
use crate::Reader;
use bunko_errors::{Failure, Result};
use std::collections::BTreeMap;

/// As what an index has a field.
#[derive(Clone, Debug)]
pub enum FieldType {
    /// Words of strings.
    String(StringField),
    /// Prefixes, or parts, of words.
    Autocomplete(Autocomplete),
    /// Strings as wholes.
    Token(NormalizerName),
    /// Numbers; which of them.
    Number {
        /// Whether whole numbers are there.
        integers: bool,
        /// Whether others are.
        doubles: bool,
    },
    /// Dates.
    Date,
    /// Booleans.
    Boolean,
    /// Object ids.
    ObjectId,
    /// UUIDs.
    Uuid,
    /// Points; shapes too where it says so.
    Geo {
        /// Whether shapes other than points are there.
        shapes: bool,
    },
    /// Fields of documents, those inside arrays among them.
    Document(Mapping),
    /// Documents of an array, each for itself.
    EmbeddedDocuments {
        /// What of each.
        mapping: Mapping,
        /// What `returnScope` shows of each.
        stored_source: StoredSource,
    },
    /// Numbers, for facets alone.
    NumberFacet,
    /// Dates, for facets alone.
    DateFacet,
    /// Strings, for facets alone.
    StringFacet,
}

/// How a string field cuts its texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StringField {
    /// How strings are cut; as the index says where it does not.
    pub analyzer: Option<String>,
    /// How what is searched for is cut.
    pub search_analyzer: Option<String>,
    /// Further ways of cutting, by name.
    pub multi: BTreeMap<String, StringField>,
    /// Strings of more bytes are left out.
    pub ignore_above: Option<usize>,
    /// Whether the length of the text counts in scores.
    pub has_norms: bool,
    /// Whether the text is kept for highlighting.
    pub is_stored: bool,
    /// What is kept of words beside the documents that have them.
    pub words: KeptOfWords,
}

/// What an index keeps of a field's words, each with what stands before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeptOfWords {
    /// Which documents have them: scores know no frequencies.
    Documents,
    /// How often.
    Frequencies,
    /// Their places: phrases and spans need them.
    Positions,
    /// Their places in the text: highlights need them.
    #[default]
    Offsets,
}

/// How a field for autocompletion is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autocomplete {
    /// How strings are cut before parts are taken.
    pub analyzer: Option<String>,
    /// Characters of the longest part.
    pub grams_max: usize,
    /// Characters of the shortest part.
    pub grams_min: usize,
    /// Which parts there are.
    pub tokenization: Tokenization,
    /// Whether letters lose their marks.
    pub folds: bool,
}

/// Which parts of words a field for autocompletion has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tokenization {
    /// Those at the beginning of a word.
    EdgeGram,
    /// Those at its end.
    RightEdgeGram,
    /// All.
    NGram,
}

/// What becomes of a string of type `token` before it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormalizerName {
    /// Nothing.
    None,
    /// It is in lower case.
    Lowercase,
}

impl FieldType {
    pub(super) fn parse(reader: &Reader<'_>, depth: usize) -> Result<Self> {
        let name = reader.required(reader.string("type")?, "type")?;
        let parsed = match name {
            "string" => Self::String(StringField::parse(reader, Multi::Allowed)?),
            "autocomplete" => Self::Autocomplete(Autocomplete::parse(reader)?),
            "token" => {
                let normalizers = &[("lowercase", NormalizerName::Lowercase), ("none", NormalizerName::None)];
                Self::Token(reader.one_of("normalizer", normalizers)?.unwrap_or(NormalizerName::None))
            }
            "number" | "numberFacet" | "sortableNumberBetaV1" => {
                let is_int64 = reader.one_of("representation", &[("int64", true), ("double", false)])?.unwrap_or(false);
                let integers = reader.boolean("indexIntegers")?.unwrap_or(true);
                let doubles = reader.boolean("indexDoubles")?.unwrap_or(true);
                if !integers && !doubles {
                    return Err(reader.failure("must have one of [indexIntegers, indexDoubles] set to true"));
                }
                // It would round doubles to whole numbers.
                if is_int64 && doubles {
                    return Err(Failure::not_supported_yet("representation int64 without indexDoubles false"));
                }
                if name == "numberFacet" { Self::NumberFacet } else { Self::Number { integers, doubles } }
            }
            "date" | "sortableDateBetaV1" => Self::Date,
            "boolean" => Self::Boolean,
            "objectId" => Self::ObjectId,
            "uuid" => Self::Uuid,
            "geo" => Self::Geo { shapes: reader.boolean("indexShapes")?.unwrap_or(false) },
            "document" => Self::Document(Mapping::parse_part(reader, depth)?),
            "embeddedDocuments" => Self::EmbeddedDocuments {
                mapping: Mapping::parse_part(reader, depth)?,
                stored_source: StoredSource::parse(reader)?,
            },
            "dateFacet" => Self::DateFacet,
            "stringFacet" => Self::StringFacet,
            "sortableStringBetaV1" => Self::Token(NormalizerName::None),
            "knnVector" | "vector" => {
                return Err(Failure::not_supported_yet(&format!("{} of type {name}", reader.at("type"))));
            }
            _ => return Err(reader.wrong("type", &format!("\"{name}\" is not a type of field"))),
        };
        reader.done()?;
        Ok(parsed)
    }
}

/// Whether a string field may have further ways of cutting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Multi {
    Allowed,
    /// It is one of them itself.
    Inside,
}

impl StringField {
    /// Whether phrases and spans can be found in it.
    pub(crate) fn has_positions(&self) -> bool {
        self.words >= KeptOfWords::Positions
    }

    /// Whether highlights can be shown of it.
    pub(crate) fn can_be_highlighted(&self) -> bool {
        self.is_stored && self.words == KeptOfWords::Offsets
    }

    /// A string field of which nothing is said.
    pub fn usual() -> Self {
        Self { has_norms: true, is_stored: true, ..Self::default() }
    }

    fn parse(reader: &Reader<'_>, multi: Multi) -> Result<Self> {
        let analyzer = reader.word("analyzer")?.map(str::to_owned);
        let search_analyzer = reader.word("searchAnalyzer")?.map(str::to_owned);
        let norms = reader.one_of("norms", &[("include", true), ("omit", false)])?;
        let options = &[
            ("docs", KeptOfWords::Documents),
            ("freqs", KeptOfWords::Frequencies),
            ("positions", KeptOfWords::Positions),
            ("offsets", KeptOfWords::Offsets),
        ];
        let words = reader.one_of("indexOptions", options)?.unwrap_or_default();
        let ignore_above = reader.integer_within("ignoreAbove", 0, i64::from(i32::MAX))?;
        let is_stored = reader.boolean("store")?;
        reader.not_supported_yet(&["similarity"])?;
        let mut field = Self {
            analyzer,
            search_analyzer,
            multi: BTreeMap::new(),
            ignore_above: ignore_above.map(|bytes| bytes as usize),
            has_norms: norms.unwrap_or(true),
            is_stored: is_stored.unwrap_or(true),
            words,
        };
        if multi == Multi::Allowed
            && let Some(inner) = reader.inner("multi")?
        {
            for way in inner.document() {
                let found = inner.required(inner.inner(way.name)?, way.name)?;
                if found.required(found.string("type")?, "type")? != "string" {
                    return Err(found.wrong("type", "must be one of [string]"));
                }
                field.multi.insert(way.name.to_owned(), Self::parse(&found, Multi::Inside)?);
                found.done()?;
            }
        }
        Ok(field)
    }
}

impl Autocomplete {
    fn parse(reader: &Reader<'_>) -> Result<Self> {
        let tokenizations = &[
            ("edgeGram", Tokenization::EdgeGram),
            ("rightEdgeGram", Tokenization::RightEdgeGram),
            ("nGram", Tokenization::NGram),
        ];
        let analyzer = reader.word("analyzer")?.map(str::to_owned);
        let grams_max = reader.integer_within("maxGrams", 1, 1_000)?.unwrap_or(15) as usize;
        let grams_min = reader.integer_within("minGrams", 1, 1_000)?.unwrap_or(2) as usize;
        let tokenization = reader.one_of("tokenization", tokenizations)?.unwrap_or(Tokenization::EdgeGram);
        let folds = reader.boolean("foldDiacritics")?.unwrap_or(true);
        reader.not_supported_yet(&["similarity"])?;
        if grams_min > grams_max {
            return Err(reader.wrong("minGrams", "cannot be greater than maxGrams"));
        }
        Ok(Self { analyzer, grams_max, grams_min, tokenization, folds })
    }
}
