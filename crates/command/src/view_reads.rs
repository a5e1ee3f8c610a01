//! `find`, `count` and `distinct` on a view, or on a source generated while it is read. Each runs as a pipeline behind
//! the view's own.

use crate::command_entry::Command;
use crate::commands::aggregate::{hint, open, prepare};
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::let_variables::scope_with_let;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef, number};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::{DistinctValues, Hint};
use bunko_request::facts::Explanation;
use bunko_request::fields::Fields;
use bunko_session::cursors::CursorSource;
use std::sync::Arc;

/// Opens a `find` on a view. The flag says whether it may take long.
/// # Errors
/// `InvalidPipelineOperator` for options that pipelines lack; errors of the stages.
pub(crate) fn find(invocation: &Invocation<'_>, namespace: &Namespace) -> Result<(Box<dyn CursorSource>, bool), Halt> {
    let stages = find_stages(invocation)?;
    read(invocation, namespace, invocation, &stages)
}

/// The stages for a `find`, `count` or `distinct` on a view, for `explain`.
/// # Errors
/// Errors of the fields.
pub(crate) fn stages(command: &Command, fields: &Fields<'_>) -> Result<ArrayBuf> {
    match command.explain {
        Explanation::Find => find_stages(fields),
        Explanation::Count => count_stages(fields),
        _ => match_stage(fields, "query"),
    }
}

fn count_stages(fields: &Fields<'_>) -> Result<ArrayBuf> {
    let mut stages = match_stage(fields, "query")?;
    push_window(&mut stages, fields)?;
    stages.push(&DocumentBuf::new().with("$count", "count"));
    Ok(stages)
}

/// The stages that are equivalent to a `find`.
/// # Errors
/// `InvalidPipelineOperator`.
fn find_stages(fields: &Fields<'_>) -> Result<ArrayBuf> {
    for name in ["returnKey", "showRecordId", "tailable", "awaitData"] {
        if fields.boolean(name, false)? {
            return Err(not_in_pipelines(name));
        }
    }
    for name in ["min", "max"] {
        if fields.document(name)?.is_some_and(|bound| !bound.is_empty()) {
            return Err(not_in_pipelines(name));
        }
    }
    let mut stages = match_stage(fields, "filter")?;
    if let Some(sort) = fields.document("sort")?.filter(|sort| !sort.is_empty()) {
        // The direction for reading the collection below is in the hint.
        if sort.get("$natural").is_none() {
            stages.push(&DocumentBuf::new().with("$sort", sort));
        }
    }
    push_window(&mut stages, fields)?;
    if let Some(projection) = fields.document("projection")?.filter(|projection| !projection.is_empty()) {
        stages.push(&DocumentBuf::new().with("$project", projection));
    }
    Ok(stages)
}

fn not_in_pipelines(option: &str) -> Failure {
    let message = format!("Option {option} not supported in aggregation.");
    Failure::new(ErrorCode::INVALID_PIPELINE_OPERATOR, message)
}

fn match_stage(fields: &Fields<'_>, name: &str) -> Result<ArrayBuf> {
    let mut stages = ArrayBuf::new();
    if let Some(filter) = fields.document(name)?.filter(|filter| !filter.is_empty()) {
        stages.push(&DocumentBuf::new().with("$match", filter));
    }
    Ok(stages)
}

fn push_window(stages: &mut ArrayBuf, fields: &Fields<'_>) -> Result<()> {
    if let Some(skip) = fields.size("skip")?.filter(|skip| *skip > 0) {
        stages.push(&DocumentBuf::new().with("$skip", skip as i64));
    }
    if let Some(limit) = fields.integer("limit")?.map(i64::unsigned_abs).filter(|limit| *limit > 0) {
        stages.push(&DocumentBuf::new().with("$limit", limit as i64));
    }
    Ok(())
}

fn read(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    fields: &Fields<'_>,
    stages: &ArrayBuf,
) -> Result<(Box<dyn CursorSource>, bool), Halt> {
    let scope = scope_with_let(fields, invocation.scope_in(fields, namespace)?)?;
    let mut aggregation = prepare(invocation, Some(namespace), stages.as_ref(), scope)?;
    aggregation.query.hint = hint_of(invocation, fields, namespace)?;
    open(invocation, aggregation)
}

/// The hint of a command for the collection below a view. A sort by `$natural` counts as a hint.
/// # Errors
/// As [`Hint::parse`].
pub(crate) fn hint_of(invocation: &Invocation<'_>, fields: &Fields<'_>, namespace: &Namespace) -> Result<Option<Hint>> {
    let natural = fields.document("sort")?.filter(|sort| sort.get("$natural").is_some());
    match (hint(invocation, fields, Some(namespace))?, natural) {
        (None, Some(natural)) => Hint::parse(ValueRef::Document(natural)),
        (given, _) => Ok(given),
    }
}

/// Number of documents that a `count` on a view finds.
/// # Errors
/// Errors of the stages.
pub(crate) fn count(invocation: &Invocation<'_>, namespace: &Namespace) -> Result<u64, Halt> {
    let stages = count_stages(invocation)?;
    let (mut source, _) = read(invocation, namespace, invocation, &stages)?;
    let counted = source.next()?.and_then(|document| number::as_i64_exact(document.get("count")?));
    Ok(counted.map_or(0, i64::unsigned_abs))
}

/// The values at `key` that a `distinct` on a view finds.
/// # Errors
/// Errors of the stages; 17217.
pub(crate) fn distinct(invocation: &Invocation<'_>, namespace: &Namespace, key: &str) -> Result<ArrayBuf, Halt> {
    let stages = match_stage(invocation, "query")?;
    let (mut source, _) = read(invocation, namespace, invocation, &stages)?;
    let strings = invocation.service.catalog.default_strings(namespace)?;
    let mut values = DistinctValues::new(Arc::clone(invocation.operation()), strings);
    while let Some(document) = source.next()? {
        values.add(document, key)?;
    }
    Ok(values.into_found())
}

/// An entry in the list of collections: for a view, a time series (a view that can be written to), or a collection of
/// sessions (listed as read-only).
pub(crate) fn describe(namespace: &Namespace, kind: &str, options: &DocumentBuf) -> DocumentBuf {
    let info = DocumentBuf::new().with("readOnly", ValueRef::Boolean(kind != "timeseries"));
    DocumentBuf::new()
        .with("name", namespace.collection())
        .with("type", kind)
        .with("options", options)
        .with("info", &info)
}
