//! The types that an index may give a field.

use super::{Mapping, StoredSource};
use crate::Reader;
use bunko_errors::{Failure, Result};
use std::collections::BTreeMap;

/// The type of a field in an index.
#[derive(Clone, Debug)]
pub enum FieldType {
    /// Words of strings.
    String(StringField),
    /// Prefixes or other parts of words.
    Autocomplete(Autocomplete),
    /// Whole strings.
    Token(NormalizerName),
    /// Numbers.
    Number {
        /// Whether integers are indexed.
        integers: bool,
        /// Whether other numbers are indexed.
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
    /// Points, and optionally shapes.
    Geo {
        /// Whether shapes other than points are indexed.
        shapes: bool,
    },
    /// Fields of documents, including documents in arrays.
    Document(Mapping),
    /// Documents of an array, each indexed on its own.
    EmbeddedDocuments {
        /// The mapping of each document.
        mapping: Mapping,
        /// The part of each document that `returnScope` returns.
        stored_source: StoredSource,
    },
    /// Numbers, only for facets.
    NumberFacet,
    /// Dates, only for facets.
    DateFacet,
    /// Strings, only for facets.
    StringFacet,
}

/// The analysis and options of a string field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StringField {
    /// The analyzer; `None` for the index's own.
    pub analyzer: Option<String>,
    /// The analyzer of searched texts.
    pub search_analyzer: Option<String>,
    /// Alternative analyses, by name.
    pub multi: BTreeMap<String, StringField>,
    /// Strings with more bytes are not indexed.
    pub ignore_above: Option<usize>,
    /// Whether the length of the text affects scores.
    pub has_norms: bool,
    /// Whether the text is kept for highlighting.
    pub is_stored: bool,
    /// The information kept about words.
    pub words: KeptOfWords,
}

/// The information that an index keeps about a field's words. Each level includes the previous ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeptOfWords {
    /// The documents with a word; scores use no frequencies.
    Documents,
    /// The frequency of a word.
    Frequencies,
    /// The positions of a word, for phrases and spans.
    Positions,
    /// The offsets of a word in the text, for highlights.
    #[default]
    Offsets,
}

/// The analysis of a field for autocompletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autocomplete {
    /// The analyzer that splits strings into words first.
    pub analyzer: Option<String>,
    /// Length of the longest part, in characters.
    pub grams_max: usize,
    /// Length of the shortest part, in characters.
    pub grams_min: usize,
    /// The kind of parts.
    pub tokenization: Tokenization,
    /// Whether accents are removed.
    pub folds: bool,
}

/// The parts of words in a field for autocompletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tokenization {
    /// Prefixes of a word.
    EdgeGram,
    /// Suffixes of a word.
    RightEdgeGram,
    /// All parts of a word.
    NGram,
}

/// The normalization of a string of type `token`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormalizerName {
    /// The string stays as it is.
    None,
    /// The string is converted to lower case.
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
                // Such an index would round doubles to integers.
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

/// Whether a string field may have alternative analyses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Multi {
    Allowed,
    /// The field is itself an alternative analysis.
    Inside,
}

impl StringField {
    /// Whether the field has positions, so that phrases and spans can be searched.
    pub(crate) fn has_positions(&self) -> bool {
        self.words >= KeptOfWords::Positions
    }

    /// Whether the field keeps offsets and text, so that highlights are possible.
    pub(crate) fn can_be_highlighted(&self) -> bool {
        self.is_stored && self.words == KeptOfWords::Offsets
    }

    /// A string field with default options.
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
