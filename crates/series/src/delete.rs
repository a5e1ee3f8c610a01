//! Deletes measurements from their buckets.

use crate::series::Series;
use crate::writes::SeriesWrites;
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, ValueRef};
use bunko_catalog::{RetryableWrite, Target, Verdict};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::write::{Action, DeleteStatement, FindAndModify, FindAndModifyOutcome};
use bunko_query::{FindQuery, QueryScope, parse_filter, plan};
use bunko_timeseries::{Bucket, bucket_filter};
use bunko_update::Targets;
use std::sync::Arc;

impl SeriesWrites<'_> {
    /// Deletes from a time series. Returns the number of measurements.
    /// # Errors
    /// Errors of the filter, the operation and the storage. Measurements removed before an error stay removed.
    pub fn delete(&mut self, series: &Series, scope: &Arc<QueryScope>, statement: &DeleteStatement<'_>) -> Result<u64> {
        let scope = scope_of(scope, statement.strings.as_ref());
        Ok(self.remove(series, statement.filter, statement.targets, &scope)?.count)
    }

    /// Removes one measurement of a time series and returns it.
    /// # Errors
    /// As [`check_find_and_modify`] and [`Self::delete`]; errors of the projection.
    pub fn find_and_remove(
        &mut self,
        series: &Series,
        scope: &Arc<QueryScope>,
        statement: &FindAndModify<'_>,
    ) -> Result<FindAndModifyOutcome> {
        check_find_and_modify(statement)?;
        if RetryableWrite::of(self.operation).is_some() {
            // The write of the bucket has no room for the removed measurement, which a retry must return.
            return Err(Failure::not_supported_yet("a retryable findAndModify of a time series"));
        }
        let scope = scope_of(scope, statement.strings.as_ref());
        let mut query = FindQuery::new(statement.filter, Arc::clone(&scope))?;
        if let Some(fields) = statement.projection.filter(|fields| !fields.is_empty()) {
            query.set_projection(fields)?;
        }
        let deleted = self.remove(series, statement.filter, Targets::One, &scope)?;
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

    /// Removes all measurements that a filter matches, or the first of them.
    fn remove(
        &mut self,
        series: &Series,
        filter: DocumentRef<'_>,
        targets: Targets,
        scope: &Arc<QueryScope>,
    ) -> Result<Deleted> {
        let matches = parse_filter(filter, scope)?;
        let of_buckets = bucket_filter(filter, &series.options).unwrap_or_default();
        let query = FindQuery::new(of_buckets.as_ref(), Arc::clone(scope))?;
        let mut candidates = plan(&series.buckets, query)?.open()?;
        let mut deleted = Deleted::default();
        while let Some(candidate) = candidates.next()? {
            let Some(ValueRef::ObjectId(id)) = candidate.get("_id") else { continue };
            let Some(record) = series.buckets.record_of_id(ValueRef::ObjectId(id), self.operation)? else { continue };
            let mut removed = 0;
            let mut last = None;
            let target = Target::Id(record, ValueRef::ObjectId(id));
            let lsn = self.catalog.change(&series.buckets, target, self.operation, &mut |document| {
                let mut bucket = Bucket::read(document, &series.options, self.operation.operation())?;
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
                self.operation.operation().note_change();
                self.note_written(lsn);
                deleted.count += removed as u64;
                deleted.last = last;
                if targets == Targets::One {
                    break;
                }
            }
        }
        Ok(deleted)
    }
}

/// Returns the command's scope with the collation of the statement, if the statement has one.
fn scope_of(scope: &Arc<QueryScope>, strings: Option<&StringOrder>) -> Arc<QueryScope> {
    strings.map_or_else(|| Arc::clone(scope), |strings| Arc::new(scope.with_strings(strings)))
}

/// Refuses a findAndModify that a time series does not allow.
/// # Errors
/// `InvalidOptions` for an update or a sort, which MongoDB does not support here either.
pub fn check_find_and_modify(statement: &FindAndModify<'_>) -> Result<()> {
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
    /// The removed measurement, if only one was to be removed.
    last: Option<DocumentBuf>,
}
