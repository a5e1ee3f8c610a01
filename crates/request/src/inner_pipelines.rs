//! The pipelines inside the stages of a pipeline.

use bunko_bson::{ArrayRef, ValueRef};
use bunko_stages::{Inner, Stage};

/// Finds the pipelines inside a stage's specification, whether its other fields are valid or not.
pub fn pipelines_in<'a>(entry: &Stage, specification: ValueRef<'a>) -> impl Iterator<Item = ArrayRef<'a>> {
    let inner = entry.inner;
    let fields = specification.as_document().into_iter().flatten();
    let is_pipeline = move |name: &str| match inner {
        Inner::Facets => true,
        Inner::Joined { .. } => name == "pipeline",
        Inner::None | Inner::Collection { .. } => false,
    };
    fields.filter(move |field| is_pipeline(field.name)).filter_map(|field| field.value.as_array())
}
