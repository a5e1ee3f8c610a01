//! The definition of an index of type `vectorSearch`: which fields hold vectors, and by which it filters.

use crate::{Reader, Refusal, StoredSource};
use bunko_bson::DocumentRef;
use bunko_errors::{Failure, Result};

/// Most dimensions of a vector. Source: MongoDB manual, "How to Index Fields for Vector Search".
const DIMENSIONS_MAX: i64 = 8_192;

/// What an index of type `vectorSearch` says.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorDefinition {
    /// The fields that hold vectors, at least one, each path once.
    pub vectors: Vec<VectorField>,
    /// The paths by which a search may filter.
    pub filters: Vec<String>,
    /// What `returnStoredSource` shows of a document.
    pub stored_source: StoredSource,
}

/// A field that holds vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorField {
    /// Where it is, dotted.
    pub path: String,
    /// How many numbers a vector has; others are left out.
    pub dimensions: usize,
    /// By what two vectors are near each other.
    pub similarity: Similarity,
}

/// By what two vectors are near each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Similarity {
    /// Their angle.
    Cosine,
    /// Angle and length.
    DotProduct,
    /// Their distance.
    Euclidean,
}

impl VectorDefinition {
    /// Reads a definition, which messages call `path`.
    /// # Errors
    /// `BadValue` for a malformed one; `CommandNotSupported` for what is not built.
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
        // Vectors are kept as they are.
        if field.one_of("quantization", &[("none", false), ("scalar", true), ("binary", true)])? == Some(true) {
            return Err(Failure::not_supported_yet(&field.at("quantization")));
        }
        // `bunko_vector::Definition` reads these and `indexingMethod` again.
        if let Some(options) = field.inner("hnswOptions")? {
            options.integer_within("maxEdges", 16, 64)?;
            options.integer_within("numEdgeCandidates", 100, 3_200)?;
            options.done()?;
        }
        field.one_of("indexingMethod", &[("hnsw", ()), ("flat", ())])?;
        Ok(Self { path: path.to_owned(), dimensions, similarity })
    }
}
