//! Pipeline stages that updates do not support.

use bunko_aggregate::{Environment, Pipeline};
use bunko_bson::{ArrayBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure};
use bunko_query::QueryScope;
use bunko_stages::UpdateUse;
use std::sync::Arc;

/// The error of a stage itself, or else `refusal`. MongoDB reports such errors before it reports that updates do not
/// support the stage.
pub(crate) fn own_fault(refusal: Failure, update: ValueRef<'_>, scope: &Arc<QueryScope>) -> Failure {
    let (ErrorCode::INVALID_OPTIONS, ValueRef::Array(stages)) = (refusal.code(), update) else { return refusal };
    let fault = stages.iter().filter(is_checked).find_map(|stage| {
        let alone: ArrayBuf = [stage].into_iter().collect();
        Pipeline::parse(alone.as_ref(), Environment::new(Arc::clone(scope))).err()
    });
    fault.unwrap_or(refusal)
}

fn is_checked(stage: &ValueRef<'_>) -> bool {
    let name = stage.as_document().and_then(DocumentRef::first).map(|first| first.name);
    name.and_then(bunko_stages::find).is_some_and(|stage| stage.update == UpdateUse::RefusedLate)
}
