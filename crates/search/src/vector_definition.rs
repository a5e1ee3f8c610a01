//! The definition of an index of type `vectorSearch`: the fields with vectors, and the fields to filter by.

use crate::{Reader, Refusal, StoredSource};
use bunko_bson::DocumentRef;
use bunko_errors::{Failure, Result};

/// Maximum number of dimensions of a vector. Source: MongoDB manual, "How to Index Fields for Vector Search".
const DIMENSIONS_MAX: i64 = 8_192;

/// The definition of an index of type `vectorSearch`.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorDefinition {
    /// The fields with vectors: at least one, each path once.
    pub vectors: Vec<VectorField>,
    /// The paths that a search may filter by.
    pub filters: Vec<String>,
    /// The part of a document that `returnStoredSource` returns.
    pub stored_source: StoredSource,
}

/// A field with vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorField {
    /// Dotted path of the field.
    pub path: String,
    /// Number of dimensions; other vectors are not indexed.
    pub dimensions: usize,
    /// The similarity of two vectors.
    pub similarity: Similarity,
}

/// The similarity of two vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Similarity {
    /// By angle.
    Cosine,
    /// By angle and length.
    DotProduct,
    /// By distance.
    Euclidean,
}

impl VectorDefinition {
    /// Parses a definition; messages call it `path`.
    /// # Errors
    /// `BadValue` for a malformed definition; `CommandNotSupported` for unsupported options.
    pub fn parse(definition: DocumentRef<'_>, path: &str) -> Result<Self> {
        let reader = Reader::new(definition, path, Refusal::Definition);
        let fields = reader.required(reader.inners("fields")?, "fields")?;
        let stored_source = StoredSource::parse(&reader)?;
        if reader.integer_within("numPartitions", 1, 4)?.is_some_and(|partitions| partitions > 1) {
            return Err(Failure::not_supported_yet("numPartitions above 1"));
        }
        reader.not_supported_yet(&["nestedRoot"])?;
        reader.done()?;
        let mut parsed = Self { vectors: Vec::new(), filters: Vec::new(), stored_source };
        for field in &fields {
            parsed.add(field)?;
        }
        if parsed.vectors.is_empty() {
            return Err(reader.wrong("fields", "must contain at least one vector field"));
        }
        Ok(parsed)
    }

    fn add(&mut self, field: &Reader<'_>) -> Result<()> {
        let kind = field.required(field.string("type")?, "type")?;
        let path = field.required(field.word("path")?, "path")?;
        if self.vectors.iter().any(|vector| vector.path == path) || self.filters.iter().any(|filter| filter == path) {
            return Err(field.wrong("path", &format!("\"{path}\" must be defined once")));
        }
        match kind {
            "vector" => {
                let vector = VectorField::parse(field, path)?;
                self.vectors.push(vector);
            }
            "filter" => self.filters.push(path.to_owned()),
            "autoEmbed" | "text" => {
                let name = format!("{} \"{kind}\"", field.at("type"));
                return Err(Failure::not_supported_yet(&name));
            }
            _ => return Err(field.wrong("type", "must be one of [filter, vector]")),
        }
        field.done()
    }
}

impl VectorField {
    fn parse(field: &Reader<'_>, path: &str) -> Result<Self> {
        let similarities = &[
            ("cosine", Similarity::Cosine),
            ("dotProduct", Similarity::DotProduct),
            ("euclidean", Similarity::Euclidean),
        ];
        let dimensions = field.integer_within("numDimensions", 1, DIMENSIONS_MAX)?;
        let dimensions = field.required(dimensions, "numDimensions")? as usize;
        let similarity = field.required(field.one_of("similarity", similarities)?, "similarity")?;
        // Vectors are stored without quantization.
        if field.one_of("quantization", &[("none", false), ("scalar", true), ("binary", true)])? == Some(true) {
            return Err(Failure::not_supported_yet(&field.at("quantization")));
        }
        // `bunko_vector::Definition` parses these and `indexingMethod` again.
        if let Some(options) = field.inner("hnswOptions")? {
            options.integer_within("maxEdges", 16, 64)?;
            options.integer_within("numEdgeCandidates", 100, 3_200)?;
            options.done()?;
        }
        field.one_of("indexingMethod", &[("hnsw", ()), ("flat", ())])?;
        Ok(Self { path: path.to_owned(), dimensions, similarity })
    }
}
