//! The definition of a vector index: the paths that hold vectors, and the paths that filters may name.

use crate::Similarity;
use bunko_bson::{DocumentRef, ValueRef, number};

/// A path that holds vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorField {
    /// Path in documents.
    pub path: String,
    /// Number of components of each vector at the path.
    pub dimensions: usize,
    /// How the path's vectors are compared.
    pub similarity: Similarity,
    /// Whether a graph is built once there are many vectors.
    pub has_graph: bool,
    /// Greatest number of neighbours that a vector has in the graph.
    pub edges_max: usize,
    /// Number of candidates from which the neighbours are chosen.
    pub edge_candidates: usize,
}

/// The fields of a vector index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// Fields that hold vectors.
    pub vectors: Vec<VectorField>,
    /// Paths that filters may name.
    pub filters: Vec<String>,
}

impl Definition {
    /// Reads a definition that was checked when the index was created. Unknown fields and types are ignored.
    pub fn of(definition: DocumentRef<'_>) -> Self {
        let mut read = Self::default();
        let fields = definition.get("fields").and_then(ValueRef::as_array);
        for field in fields.iter().flat_map(|fields| fields.iter()).filter_map(ValueRef::as_document) {
            let Some(path) = field.get("path").and_then(ValueRef::as_str) else { continue };
            match field.get("type").and_then(ValueRef::as_str) {
                Some("filter") => read.filters.push(path.to_owned()),
                Some("vector") => read.vectors.extend(vector_field(path, field)),
                _ => {}
            }
        }
        read
    }

    /// Position of a path in [`Self::vectors`].
    pub fn vector(&self, path: &str) -> Option<usize> {
        self.vectors.iter().position(|field| field.path == path)
    }
}

fn vector_field(path: &str, field: DocumentRef<'_>) -> Option<VectorField> {
    let size = |value: ValueRef<'_>| number::as_i64_exact(value).and_then(|size| usize::try_from(size).ok());
    let dimensions = size(field.get("numDimensions")?)?;
    let similarity = Similarity::named(field.get("similarity")?.as_str()?)?;
    let options = field.get("hnswOptions").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    // Source: MongoDB Vector Search, "Index Fields for Vector Search": 16 to 64 edges, and 100 to 3200 candidates.
    let edges_max = options.get("maxEdges").and_then(size).unwrap_or(16).clamp(2, 64);
    let edge_candidates = options.get("numEdgeCandidates").and_then(size).unwrap_or(100).clamp(edges_max, 3200);
    let has_graph = field.get("indexingMethod").and_then(ValueRef::as_str) != Some("flat");
    Some(VectorField { path: path.to_owned(), dimensions, similarity, has_graph, edges_max, edge_candidates })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{ArrayBuf, DocumentBuf};

    #[test]
    fn fields_are_read_by_their_type() {
        let vector = DocumentBuf::new()
            .with("type", "vector")
            .with("path", "a.b")
            .with("numDimensions", 3.0)
            .with("similarity", "cosine");
        let fields: ArrayBuf = [
            vector,
            DocumentBuf::new().with("type", "filter").with("path", "year"),
            DocumentBuf::new().with("type", "vector").with("path", "broken"),
            DocumentBuf::new().with("type", "else").with("path", "x"),
        ]
        .iter()
        .collect();
        let read = Definition::of(DocumentBuf::new().with("fields", &fields).as_ref());
        assert_eq!(read.filters, ["year"]);
        assert_eq!((read.vector("a.b"), read.vector("year"), read.vectors.len()), (Some(0), None, 1));
        assert_eq!((read.vectors[0].dimensions, read.vectors[0].edges_max), (3, 16));
    }
}
