//! A search that visits documents one after the other, and keeps only the best.

use crate::column::Column;
use crate::request::Prepared;
use crate::{Components, Definition, Hit, Nearest, Request, Similarity};
use bunko_bson::DocumentRef;
use bunko_errors::Result;

/// A search in progress.
#[derive(Debug)]
pub struct Scan<'r> {
    definition: &'r Definition,
    prepared: Prepared<'r>,
    nearest: Nearest<u64>,
}

impl<'r> Scan<'r> {
    /// Begins a search.
    /// # Errors
    /// [`crate::query_error()`] if the index has not the path, the dimensions or the filters of the request.
    pub fn new(definition: &'r Definition, request: &'r Request) -> Result<Self> {
        let prepared = request.prepare(definition)?;
        Ok(Self { definition, prepared, nearest: Nearest::new(request.limit) })
    }

    /// Scores a document and keeps it if it is among the best.
    pub fn visit(&mut self, record: u64, document: DocumentRef<'_>) {
        if let Some(score) = self.score(document) {
            self.nearest.offer(score, record);
        }
    }

    fn score(&self, document: DocumentRef<'_>) -> Option<f32> {
        let field = &self.definition.vectors[self.prepared.column];
        let vector = Column::vector_of(field, document)?;
        let similarity = field.similarity;
        let score = match (&self.prepared.query, &vector) {
            (Components::Float32(query), Components::Float32(vector)) => {
                similarity.score(similarity.closeness(query, vector))
            }
            (Components::Int8(query), Components::Int8(vector)) => similarity.score_of_bytes(query, vector),
            (Components::Bits(query), Components::Bits(vector)) => Similarity::score_of_bits(query, vector),
            // Vectors of different kinds are not compared.
            _ => return None,
        };
        self.prepared.request.filters.iter().all(|filter| filter.passes(document)).then_some(score)
    }

    /// The nearest documents, the best first.
    pub fn into_hits(self) -> Vec<Hit> {
        self.nearest.into_sorted().into_iter().map(|(score, record)| Hit { record, score }).collect()
    }
}
