//! `collMod` of a view: another `viewOn`, another pipeline, or both.

use super::CollMod;
use crate::invocation::Invocation;
use bunko_bson::ValueRef;
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_pipelines::view_definition;

/// Makes the requested changes; only both together if privileges are checked.
/// # Errors
/// As [`view_definition::parse`]; `InvalidOptions` for options of collections, and for one of the two if both are
/// needed; `NamespaceNotFound` if there is no such view.
pub(super) fn modify(invocation: &mut Invocation<'_>, namespace: &Namespace, request: &CollMod<'_>) -> Result<()> {
    let Some(view) = invocation.service.catalog.view(namespace)? else {
        return Err(Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, format!("ns does not exist: {namespace}")));
    };
    let options = invocation.request.body.iter().skip(1);
    let other = options.clone().find(|option| {
        let is_generic = option.name.starts_with('$') || matches!(option.name, "lsid" | "writeConcern" | "comment");
        !is_generic
            && !matches!(option.name, "viewOn" | "pipeline" | "maxTimeMS" | "apiVersion" | "apiStrict")
            && !option.value.is_nullish()
    });
    if let Some(other) = other {
        let message = format!("option not supported on a view: {}", other.name);
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    let view_on = request.given("viewOn").and_then(ValueRef::as_str);
    let pipeline = request.given("pipeline").and_then(ValueRef::as_array);
    if invocation.service.authority.access.is_enforced() && view_on.is_some() != pipeline.is_some() {
        // The user who defined the unchanged half may have had more read privileges than this one.
        let message = "Must specify both 'viewOn' and 'pipeline' when modifying a view and auth is enabled";
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    let collation = view.document.as_ref().get("collation").and_then(ValueRef::as_document);
    let (view_on, pipeline) = (view_on.unwrap_or(&view.view_on), pipeline.unwrap_or_else(|| view.pipeline.as_ref()));
    let changed = view_definition::parse(invocation, namespace, view_on, pipeline, collation)?;
    let lsn = invocation.service.catalog.change_view(namespace, &changed, invocation)?;
    invocation.note_written(Some(lsn));
    Ok(())
}
