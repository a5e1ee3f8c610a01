//! Checks of stages before the pipeline is parsed. MongoDB looks up the names of all stages, inner pipelines included,
//! before it parses the first. For a pipeline that cannot run, it parses all stages before it checks whether the first
//! needs a collection, and before it checks their places.

use crate::context::StageClient;
use crate::source_stages::SourcedPipeline;
use crate::sources::PipelineSources;
use bunko_aggregate::{Environment, Pipeline, is_known_stage, stage_field};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentRef, Element, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure};
use bunko_query::QueryScope;
use bunko_stages::{CHANGE_STREAM, Inner, Place};
use std::sync::Arc;

/// Checks each stage alone, as if it were the only one. [`check_names`] has passed them.
/// # Errors
/// Errors of the specifications.
pub fn check(
    client: &dyn StageClient,
    scope: Arc<QueryScope>,
    namespace: &Namespace,
    stages: ArrayRef<'_>,
) -> Result<(), Failure> {
    let sources = PipelineSources::new(client.surroundings(), client.request().database, &scope);
    let environment = Environment::new(scope).with_sources(sources);
    for stage in stages.iter() {
        let alone: ArrayBuf = std::iter::once(stage).collect();
        let name = first(stage).map_or("", |field| field.name);
        if let Some(sourced) = SourcedPipeline::take_off(alone.as_ref())? {
            sourced.check(client, namespace)?;
        } else if name != CHANGE_STREAM.name && !is_refused_by_place(stage) {
            Pipeline::parse(alone.as_ref(), environment.clone())?;
        }
    }
    Ok(())
}

/// Checks the names of all stages, in order.
/// # Errors
/// `TypeMismatch` for a stage that is not a document, 40323 for a stage without exactly one field, 40324 for an unknown
/// stage.
pub fn check_names(stages: ArrayRef<'_>) -> Result<(), Failure> {
    // MongoDB checks that all stages are documents before it looks at the first.
    stages.iter().find(|stage| stage.as_document().is_none()).map(stage_field).transpose()?;
    for stage in stages.iter() {
        let field = stage_field(stage)?;
        if !is_known_stage(field.name) && !SourcedPipeline::is_source_stage(field.name) {
            let message = format!("Unrecognized pipeline stage name: '{}'", field.name);
            return Err(Failure::new(ErrorCode(40324), message));
        }
        for inside in pipelines_inside(field) {
            check_names(inside)?;
        }
    }
    Ok(())
}

/// The pipelines inside a stage; none if the stage is malformed and thus has an error of its own.
fn pipelines_inside(stage: Element<'_>) -> Vec<ArrayRef<'_>> {
    let Some(specification) = stage.value.as_document() else { return Vec::new() };
    match bunko_stages::find(stage.name).map_or(Inner::None, |entry| entry.inner) {
        Inner::Joined { collection, fields } => joined_pipeline(specification, collection, fields),
        Inner::Facets => facets(specification),
        Inner::None | Inner::Collection { .. } => Vec::new(),
    }
}

fn joined_pipeline<'a>(specification: DocumentRef<'a>, collection: &str, known: &[&str]) -> Vec<ArrayRef<'a>> {
    let is_named = specification.get(collection).is_none_or(|name| name.as_str().is_some());
    if !is_named || specification.iter().any(|field| !known.contains(&field.name)) {
        return Vec::new();
    }
    specification.get("pipeline").and_then(ValueRef::as_array).into_iter().collect()
}

fn facets(specification: DocumentRef<'_>) -> Vec<ArrayRef<'_>> {
    let is_facet = |facet: ArrayRef<'_>| facet.iter().all(|stage| stage.as_document().is_some());
    let facets = specification.iter().map(|facet| facet.value.as_array().filter(|facet| is_facet(*facet)));
    facets.collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// Whether a stage is invalid only because of its place: `$changeStreamSplitLargeEvent`, which may never stand alone.
fn is_refused_by_place(stage: ValueRef<'_>) -> bool {
    let is_empty = |field: Element<'_>| field.value.as_document().is_some_and(DocumentRef::is_empty);
    first(stage).is_some_and(|field| {
        bunko_stages::find(field.name).is_some_and(|stage| stage.place == Place::InChangeStream) && is_empty(field)
    })
}

fn first(stage: ValueRef<'_>) -> Option<Element<'_>> {
    stage.as_document()?.first()
}
