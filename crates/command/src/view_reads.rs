//! `find`, `count` and `distinct` of a view, or of what is made while it is read: the command as a pipeline behind the view's
//! own.

use crate::commands::aggregate::{hint, open, prepare};
use crate::cursor_store::CursorSource;
use crate::dispatch::Halt;
use crate::fields::Fields;
use crate::invocation::Invocation;
use crate::let_variables::scope_with_let;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef, number};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::{DistinctValues, Hint};
use std::sync::Arc;

/// Opens what a `find` of a view asks for, and says whether it may be long.
/// # Errors
/// `InvalidPipelineOperator` for options that pipelines lack; those of stages.
pub(crate) fn find(invocation: &Invocation<'_>, namespace: &Namespace) -> Result<(Box<dyn CursorSource>, bool), Halt> {
    let stages = find_stages(invocation)?;
    read(invocation, namespace, invocation, &stages)
}

/// The stages that a `find`, `count` or `distinct` of a view becomes, for `explain`.
/// # Errors
/// Those of the fields.
pub(crate) fn stages(fields: &Fields<'_>) -> Result<ArrayBuf> {
    match fields.command {
        "find" => find_stages(fields),
        "count" => count_stages(fields),
        _ => match_stage(fields, "query"),
    }
}

fn count_stages(fields: &Fields<'_>) -> Result<ArrayBuf> {
    let mut stages = match_stage(fields, "query")?;
    push_window(&mut stages, fields)?;
    stages.push(&DocumentBuf::new().with("$count", "count"));
    Ok(stages)
}

/// The stages that do what a `find` does.
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
        // From which end the collection below is read stands in the hint.
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

/// The hint that a command gives for what is below a view: a sort by `$natural` is one too.
/// # Errors
/// As [`Hint::parse`].
pub(crate) fn hint_of(invocation: &Invocation<'_>, fields: &Fields<'_>, namespace: &Namespace) -> Result<Option<Hint>> {
    let natural = fields.document("sort")?.filter(|sort| sort.get("$natural").is_some());
    match (hint(invocation, fields, Some(namespace))?, natural) {
        (None, Some(natural)) => Hint::parse(ValueRef::Document(natural)),
        (given, _) => Ok(given),
    }
}

/// How many documents a `count` of a view finds.
/// # Errors
/// Those of stages.
pub(crate) fn count(invocation: &Invocation<'_>, namespace: &Namespace) -> Result<u64, Halt> {
    let stages = count_stages(invocation)?;
    let (mut source, _) = read(invocation, namespace, invocation, &stages)?;
    let counted = source.next()?.and_then(|document| number::as_i64_exact(document.get("count")?));
    Ok(counted.map_or(0, i64::unsigned_abs))
}

/// The values that a `distinct` of a view finds at `key`.
/// # Errors
/// Those of stages; 17217.
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

/// A view in the list of collections; a time series is a kind of view that is written to, and a collection of sessions is
/// listed like one that is not.
pub(crate) fn describe(namespace: &Namespace, kind: &str, options: &DocumentBuf) -> DocumentBuf {
    let info = DocumentBuf::new().with("readOnly", ValueRef::Boolean(kind != "timeseries"));
    DocumentBuf::new()
        .with("name", namespace.collection())
        .with("type", kind)
        .with("options", options)
        .with("info", &info)
}
