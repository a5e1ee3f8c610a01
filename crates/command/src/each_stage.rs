//! The stages of a pipeline that cannot run, each read by itself: MongoDB reads all stages before it looks whether the
//! first needs a collection, and before it looks where they stand.

use crate::change_stream;
use crate::fields::Fields;
use crate::invocation::Invocation;
use crate::let_variables::scope_with_let;
use crate::pipeline_sources::PipelineSources;
use crate::source_stages::SourcedPipeline;
use bunko_aggregate::{Environment, Pipeline, is_known_stage, stage_field};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentRef, Element, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure};

/// Looks at each stage by itself, as if nothing stood around it.
/// # Errors
/// `TypeMismatch` for a stage that is no document, 40323 for one without exactly one field, 40324 for an unknown one;
/// those of the specifications.
pub(crate) fn check(
    invocation: &Invocation<'_>,
    fields: &Fields<'_>,
    namespace: &Namespace,
    stages: ArrayRef<'_>,
) -> Result<(), Failure> {
    check_names(stages)?;
    let scope = scope_with_let(fields, invocation.scope_without_collection(fields)?)?;
    let sources = PipelineSources::new(invocation.service, invocation.request.database, &scope);
    let environment = Environment::new(scope).with_sources(sources);
    for stage in stages.iter() {
        let alone: ArrayBuf = std::iter::once(stage).collect();
        let name = first(stage).map_or("", |field| field.name);
        if let Some(sourced) = SourcedPipeline::take_off(alone.as_ref())? {
            sourced.check(invocation, namespace)?;
        } else if name != change_stream::STAGE && !is_refused_by_place(stage) {
            Pipeline::parse(alone.as_ref(), environment.clone())?;
        }
    }
    Ok(())
}

fn check_names(stages: ArrayRef<'_>) -> Result<(), Failure> {
    // What is no document is looked for first.
    stages.iter().find(|stage| stage.as_document().is_none()).map(stage_field).transpose()?;
    for stage in stages.iter() {
        let field = stage_field(stage)?;
        if !is_known_stage(field.name) && !SourcedPipeline::is_source_stage(field.name) {
            let message = format!("Unrecognized pipeline stage name: '{}'", field.name);
            return Err(Failure::new(ErrorCode(40324), message));
        }
    }
    Ok(())
}

/// Whether only its place is wrong with a stage that never stands alone.
fn is_refused_by_place(stage: ValueRef<'_>) -> bool {
    let is_empty = |field: Element<'_>| field.value.as_document().is_some_and(DocumentRef::is_empty);
    first(stage).is_some_and(|field| field.name == "$changeStreamSplitLargeEvent" && is_empty(field))
}

fn first(stage: ValueRef<'_>) -> Option<Element<'_>> {
    stage.as_document()?.first()
}
