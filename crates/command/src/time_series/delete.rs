//! Deletes measurements from their buckets.

use super::Series;
use crate::invocation::Invocation;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{Target, Verdict};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::write::{Action, DeleteStatement, FindAndModify, FindAndModifyOutcome};
use bunko_query::{FindQuery, QueryScope, parse_filter, plan};
use bunko_store::Lsn;
use bunko_timeseries::{Bucket, bucket_filter};
use bunko_update::Targets;
use std::sync::Arc;

/// Deletes from a time series. Returns the number of measurements.
/// # Errors
/// Errors of the filter, the operation and the storage.
pub(crate) fn delete(
    invocation: &mut Invocation<'_>,
    series: &Series,
    scope: &Arc<QueryScope>,
    statement: &DeleteStatement<'_>,
) -> Result<u64> {
    let scope = match &statement.strings {
        Some(strings) => Arc::new(scope.with_strings(strings)),
        None => Arc::clone(scope),
    };
    let mut deleted = Deleted::default();
    let outcome = remove(invocation, series, statement.filter, statement.targets, &scope, &mut deleted);
    invocation.note_written(deleted.lsn);
    outcome?;
    Ok(deleted.count)
}

/// Removes one measurement of a time series and returns it.
/// # Errors
/// As [`check_find_and_modify`] and [`delete`]; errors of the projection.
pub(crate) fn find_and_remove(
    invocation: &mut Invocation<'_>,
    series: &Series,
    scope: &Arc<QueryScope>,
    statement: &FindAndModify<'_>,
) -> Result<FindAndModifyOutcome> {
    check_find_and_modify(statement)?;
    if invocation.retryable_write().is_some() {
        // The write of the bucket has no room for the removed measurement, which a retry must return.
        return Err(Failure::not_supported_yet("a retryable findAndModify of a time series"));
    }
    let scope = match &statement.strings {
        Some(strings) => Arc::new(scope.with_strings(strings)),
        None => Arc::clone(scope),
    };
    let mut query = FindQuery::new(statement.filter, Arc::clone(&scope))?;
    if let Some(fields) = statement.projection.filter(|fields| !fields.is_empty()) {
        query.set_projection(fields)?;
    }
    let mut deleted = Deleted::default();
    let outcome = remove(invocation, series, statement.filter, Targets::One, &scope, &mut deleted);
    invocation.note_written(deleted.lsn);
    outcome?;
    let value = match (deleted.last, &query.projection) {
        (Some(measurement), Some(projection)) => {
            let mut bytes = Vec::with_capacity(measurement.as_ref().len_bytes());
            projection.apply(&query.scope.context(measurement.as_ref()), None, &mut bytes)?;
            Some(DocumentBuf::from_trusted(bytes))
        }
        (measurement, _) => measurement,
    };
    Ok(FindAndModifyOutcome { is_found: deleted.count > 0, value, ..FindAndModifyOutcome::default() })
}

/// Refuses a findAndModify that a time series does not allow.
/// # Errors
/// `InvalidOptions` for an update or a sort, which MongoDB does not support here either.
pub(crate) fn check_find_and_modify(statement: &FindAndModify<'_>) -> Result<()> {
    let refuse = |what: &str| {
        let message = format!("Cannot perform a findAndModify with {what} on a time-series collection");
        Err(Failure::new(ErrorCode::INVALID_OPTIONS, message))
    };
    match (&statement.action, statement.sort) {
        (Action::Update(_), _) => refuse("an update"),
        (Action::Remove, Some(_)) => refuse("a sort"),
        (Action::Remove, None) => Ok(()),
    }
}

/// The result of a delete.
#[derive(Debug, Default)]
struct Deleted {
    count: u64,
    lsn: Option<Lsn>,
    /// The removed measurement, if only one was to be removed.
    last: Option<DocumentBuf>,
}

/// Removes all measurements that a filter matches, or the first of them.
/// # Errors
/// Errors of the filter, the operation and the storage. Measurements removed before an error stay removed.
fn remove(
    invocation: &Invocation<'_>,
    series: &Series,
    filter: DocumentRef<'_>,
    targets: Targets,
    scope: &Arc<QueryScope>,
    deleted: &mut Deleted,
) -> Result<()> {
    let matches = parse_filter(filter, scope)?;
    let of_buckets = bucket_filter(filter, &series.options).unwrap_or_default();
    let query = FindQuery::new(of_buckets.as_ref(), Arc::clone(scope))?;
    let mut candidates = plan(&series.buckets, query)?.open()?;
    while let Some(candidate) = candidates.next()? {
        let Some(ValueRef::ObjectId(id)) = candidate.get("_id") else { continue };
        let Some(record) = series.buckets.record_of_id(ValueRef::ObjectId(id), invocation)? else { continue };
        let mut removed = 0;
        let mut last = None;
        let target = Target::Id(record, ValueRef::ObjectId(id));
        let lsn = invocation.service.catalog.change(&series.buckets, target, invocation, &mut |document| {
            let mut bucket = Bucket::read(document, &series.options, invocation.operation())?;
            let mut is_done = false;
            removed = bucket.retain(&series.options, |measurement| {
                let goes = !is_done && matches.try_matches(measurement)?;
                if goes && targets == Targets::One {
                    is_done = true;
                    last = Some(measurement.to_owned());
                }
                Ok(!goes)
            })?;
            Ok(match (removed, bucket.count()) {
                (0, _) => Verdict::Keep,
                (_, 0) => Verdict::Delete,
                _ => Verdict::Replace(bucket.document(&series.options)),
            })
        })?;
        if lsn.is_some() {
            invocation.operation().note_change();
            deleted.lsn = deleted.lsn.max(lsn);
            deleted.count += removed as u64;
            deleted.last = last;
            if targets == Targets::One {
                break;
            }
        }
    }
    Ok(())
}
