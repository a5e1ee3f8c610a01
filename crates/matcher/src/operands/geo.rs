//! Conditions on geometries.

use crate::evaluation::Evaluation;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, order};
use bunko_errors::{Failure, Result};
use bunko_geometry::{Effort, Question, Region, Stored};
use std::sync::Arc;

/// A condition on geometries.
#[derive(Clone, Debug)]
pub struct Geo {
    /// The question about the document's geometry.
    pub question: Question,
    /// The geometry in the query.
    pub region: Arc<Region>,
    /// The operator's name.
    pub(crate) name: &'static str,
    /// The operand as written.
    pub(crate) source: DocumentBuf,
}

impl Geo {
    /// The condition to be within a region.
    /// # Errors
    /// `BadValue` if `region` is not a region.
    pub(crate) fn within(region: DocumentRef<'_>) -> Result<Self> {
        let parsed = Region::parse(region, Question::Within).map_err(Failure::bad_value)?;
        let (question, source) = (Question::Within, region.to_owned());
        Ok(Self { question, region: Arc::new(parsed), name: "$geoWithin", source })
    }

    /// Whether the conditions are equal, up to the types of numbers.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.question == other.question && order::compare_documents(self.source.as_ref(), other.source.as_ref()).is_eq()
    }

    /// The operator and its operand as written.
    pub(crate) fn to_document(&self) -> DocumentBuf {
        DocumentBuf::new().with(self.name, &self.source)
    }

    /// Whether a value is a geometry that satisfies the condition.
    pub(crate) fn matches(&self, value: Option<ValueRef<'_>>, evaluation: &mut Evaluation<'_>) -> bool {
        let Some(value @ (ValueRef::Document(_) | ValueRef::Array(_))) = value else { return false };
        Stored::parse(value).is_ok_and(|stored| self.region.matches(self.question, &stored, &mut Counted(evaluation)))
    }
}

/// Counts comparisons as work of the operation.
struct Counted<'e, 'o>(&'e mut Evaluation<'o>);

impl Effort for Counted<'_, '_> {
    fn goes_on(&mut self, steps: usize) -> bool {
        self.0.goes_on(steps)
    }
}
