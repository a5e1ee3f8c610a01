//! How transactions end other than by a commit.

use super::open::Open;
use super::table::{Entry, Transactions};
use crate::cursors::CursorStore;
use crate::operations::Operations;
use crate::sessions::SessionId;
use crate::sessions::id::text;
use bunko_bson::{ArrayRef, DocumentRef, ValueRef};
use bunko_catalog::Catalog;
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The fate of an open transaction when one of its commands ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The transaction is aborted: the command failed.
    Aborted,
    /// The transaction stays open.
    Open,
    /// The command will run again, so the transaction goes back to its state before the command.
    AsBefore,
}

/// Statement failures that fail the whole command inside a transaction: the transaction must be tried again as a whole.
const OF_THE_WHOLE: [ErrorCode; 4] = [
    ErrorCode::WRITE_CONFLICT,
    ErrorCode::LOCK_TIMEOUT,
    ErrorCode::SNAPSHOT_UNAVAILABLE,
    ErrorCode::NO_SUCH_TRANSACTION,
];

/// The transaction's fate after the reply of one of its commands: open, or aborted if a statement failed.
/// # Errors
/// The failure of a statement that fails the whole command.
pub fn fate_by_reply(reply: DocumentRef<'_>) -> Result<Fate> {
    // One pass over the reply, because this runs for every command.
    let (mut errors, mut count, mut cursor) = (None, None, None);
    for field in reply {
        match field.name {
            "writeErrors" => errors = field.value.as_array(),
            "nErrors" => count = Some(field.value),
            "cursor" => cursor = field.value.as_document(),
            _ => {}
        }
    }
    // `bulkWrite` reports failures in its cursor; only its replies have `nErrors` too.
    let cursor = cursor.filter(|_| count.is_some());
    let told = cursor.and_then(|cursor| cursor.get("firstBatch")).and_then(ValueRef::as_array);
    let failed = |told: &DocumentRef<'_>| told.get("code").is_some();
    let failures = errors.into_iter().chain(told).flat_map(ArrayRef::iter);
    let mut fate = if matches!(count, None | Some(ValueRef::Int32(0))) { Fate::Open } else { Fate::Aborted };
    for failure in failures.filter_map(ValueRef::as_document).filter(failed) {
        fate = Fate::Aborted;
        let Some(ValueRef::Int32(code)) = failure.get("code") else { continue };
        if OF_THE_WHOLE.contains(&ErrorCode(code)) {
            let message = failure.get("errmsg").and_then(ValueRef::as_str).unwrap_or_default();
            return Err(Failure::new(ErrorCode(code), message));
        }
    }
    Ok(fate)
}

/// The server's state that transactions use and change.
#[derive(Clone, Copy)]
pub struct TransactionContext<'s> {
    /// The data.
    pub catalog: &'s Arc<Catalog>,
    /// The open transactions.
    pub transactions: &'s Transactions,
    /// The open cursors; those of a transaction end with it.
    pub cursors: &'s CursorStore,
}

impl TransactionContext<'_> {
    /// Aborts a transaction that has been taken out of its session.
    pub(crate) fn end(&self, session: SessionId, open: &Open) {
        open.unit.abort();
        self.transactions.note_abort(session);
        self.cursors.end_transaction(session, open.unit.number());
    }

    /// Aborts the chosen open transactions. If a command works with one, it is aborted when the command ends.
    pub fn abort(&self, mut is_chosen: impl FnMut(&Entry) -> bool) {
        for entry in self.transactions.all().into_iter().filter(|entry| is_chosen(entry)) {
            if let Some(open) = entry.session.abort(entry.number) {
                self.end(entry.session.id, &open);
            }
        }
    }

    /// Aborts the transactions that have been open for `limit` at `now`, and stops the operations that work with them.
    pub fn abort_expired(&self, now: Instant, limit: Duration, operations: &Operations) {
        let is_expired = |began: Instant| now.saturating_duration_since(began) >= limit;
        let expired: Vec<_> = self.transactions.all().into_iter().filter(|entry| is_expired(entry.began)).collect();
        if expired.is_empty() {
            return;
        }
        let is_chosen = |session: SessionId| expired.iter().any(|entry| entry.session.id == session);
        operations.kill_sessions(is_chosen, 0);
        for entry in &expired {
            tracing::info!(
                target: "TXN", id = 51_802, ctx = "abortExpiredTransactions", txnNumber = entry.number,
                lsid = text(entry.session.id),
                "Aborting a transaction that has been open for longer than transactionLifetimeLimitSeconds"
            );
            if let Some(open) = entry.session.abort(entry.number) {
                self.end(entry.session.id, &open);
            }
        }
    }
}
