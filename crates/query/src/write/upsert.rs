//! Inserting a document if an update finds none.

use super::search::Wanted;
use super::{Upsert, Writes};
use bunko_bson::{DocumentRef, Value, ValueRef, order};
use bunko_catalog::Order;
use bunko_catalog::stored_document::{self, EmptyTimestamps};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_matcher::Filter;
use bunko_update::{ApplyContext, Insertion, Outcome, Update};
use std::sync::Arc;

/// Number of attempts at an upsert whose document other clients insert first and delete again.
const ATTEMPTS_MAX: usize = 10;

impl Writes<'_> {
    /// Runs an update, which returns the number of documents that matched, and inserts one if none did.
    ///
    /// If two upserts of one key both find nothing, one of them fails to insert. It then updates the other's document,
    /// if the filter consists of equalities on exactly that key.
    ///
    /// `before_insert` sees the document to insert, and may refuse it. Returns the `_id` of the inserted document.
    pub(super) fn or_upsert(
        &mut self,
        update: &Update,
        filter: DocumentRef<'_>,
        wanted: &Wanted<'_>,
        upsert: Upsert,
        attempt: &mut dyn FnMut(&mut Self) -> Result<u64>,
        before_insert: &mut dyn FnMut(DocumentRef<'_>) -> Result<()>,
    ) -> Result<Option<Value>> {
        let mut attempts = 1;
        loop {
            if attempt(self)? > 0 || upsert == Upsert::No {
                return Ok(None);
            }
            match self.insert_upserted(update, filter, before_insert) {
                Err(failure) if attempts < ATTEMPTS_MAX && is_lost_race(wanted, &failure) => attempts += 1,
                outcome => return wanted.executed(outcome.map(Some)),
            }
        }
    }

    fn insert_upserted(
        &mut self,
        update: &Update,
        filter: DocumentRef<'_>,
        before_insert: &mut dyn FnMut(DocumentRef<'_>) -> Result<()>,
    ) -> Result<Value> {
        let scope = Arc::clone(&self.scope);
        let base = update.upsert_base(filter, &scope.operation)?;
        let context = ApplyContext { insert: Insertion::Upsert, ..self.apply_context(update, &scope) };
        let document = match update.apply(base.as_ref(), &context)? {
            Outcome::Unchanged => base,
            Outcome::Changed(document) => document,
        };
        // A replacement has filled its own zero timestamps. Zero timestamps from operators and pipelines stay.
        let stored = stored_document::for_insert(document.as_ref(), EmptyTimestamps::Kept, self.stamps)?;
        before_insert(DocumentRef::trusted(&stored))?;
        let document = std::slice::from_ref(&stored);
        let mut inserted = self.catalog.insert(self.namespace, document, Order::Ordered, &*scope.operation)?;
        self.note_written(inserted.lsn);
        scope.operation.work_done().note_keys(inserted.keys, 0);
        if let Some((_, failure)) = inserted.failures.pop() {
            return Err(failure);
        }
        Ok(DocumentRef::trusted(&stored).get("_id").map_or(Value::Null, ValueRef::to_value))
    }
}

impl Wanted<'_> {
    /// As [`check_filter`].
    pub(super) fn check_upsert(&self, upsert: Upsert) -> Result<()> {
        self.filter().map_or(Ok(()), |filter| check_filter(filter, upsert))
    }
}

/// Refuses `$expr` in the filter of an upsert, since no document can be derived from it.
/// # Errors
/// `QueryFeatureNotAllowed`.
pub(super) fn check_filter(filter: &Filter, upsert: Upsert) -> Result<()> {
    if upsert == Upsert::No || !filter.holds_expr() {
        return Ok(());
    }
    let message = "$expr is not allowed in the query predicate for an upsert";
    Err(Failure::new(ErrorCode::QUERY_FEATURE_NOT_ALLOWED, message))
}

/// Whether the filter's equalities are exactly the key that another client has inserted.
fn is_lost_race(wanted: &Wanted<'_>, failure: &Failure) -> bool {
    let key = failure.details().get("keyValue").and_then(ValueRef::as_document);
    let Some(key) = key.filter(|_| failure.code() == ErrorCode::DUPLICATE_KEY) else { return false };
    let asked = wanted.equalities();
    // With more equalities than the key has fields, the other document need not match: an error, not a race.
    asked.len() == key.count()
        && asked
            .iter()
            .all(|(path, value)| key.iter().any(|field| field.name == *path && order::equal(field.value, *value)))
}
