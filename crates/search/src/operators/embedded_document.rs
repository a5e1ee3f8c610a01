//! `embeddedDocument`: applies an operator to each document of an array, and finds the document around the array.

use super::{Clause, Operator, UseOfPostings, only_path};
use crate::evaluation::Evaluation;
use crate::schema::Schema;
use crate::score::{Aggregate, Score};
use crate::unit::{Child, Unit};
use crate::{Reader, Refusal};
use bunko_errors::Result;

#[derive(Debug)]
struct EmbeddedDocument {
    path: String,
    inner: Clause,
    aggregate: Aggregate,
}

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let path = only_path(reader)?;
    let inner = Clause::parse_alone(&reader.required(reader.inner("operator")?, "operator")?)?;
    // The clause reads the score too, for the parts that do not concern embedded documents.
    let aggregate = Score::parse(reader)?.aggregate();
    Ok(Box::new(EmbeddedDocument { path, inner, aggregate }))
}

impl EmbeddedDocument {
    fn children<'u, 'd>(&self, unit: &'u Unit<'d>) -> Vec<&'u Child<'d>> {
        let mut found = Vec::new();
        unit.embedded(&self.path, &mut found);
        found
    }
}

impl Operator for EmbeddedDocument {
    fn check(&self, schema: &Schema) -> Result<()> {
        if schema.embedded(&self.path).is_none() {
            let message = format!("embeddedDocument path \"{}\" must be indexed as embeddedDocuments", self.path);
            return Err(Refusal::Query.failure(message));
        }
        self.inner.operator.check(schema)
    }

    fn count(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<()> {
        self.children(unit).into_iter().try_for_each(|child| self.inner.operator.count(&child.unit, evaluation))
    }

    fn use_of_postings(&self) -> UseOfPostings {
        UseOfPostings::Impossible
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        let mut scores = Vec::new();
        for child in self.children(unit) {
            scores.extend(self.inner.score(&child.unit, evaluation)?);
        }
        if scores.is_empty() {
            return Ok(None);
        }
        let sum: f32 = scores.iter().sum();
        Ok(match self.aggregate {
            Aggregate::Sum => Some(sum),
            Aggregate::Mean => Some(sum / scores.len() as f32),
            Aggregate::Maximum => scores.into_iter().max_by(f32::total_cmp),
            Aggregate::Minimum => scores.into_iter().min_by(f32::total_cmp),
        })
    }

    fn embedded_path(&self) -> Option<&str> {
        Some(&self.path)
    }
}
