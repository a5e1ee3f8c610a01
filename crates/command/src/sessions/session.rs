//! One session.

use super::SessionId;
use bunko_catalog::{RetryableWrite, WriteHistory};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A session that is in use, shared by the table and by connections that have it at hand.
#[derive(Debug)]
pub(crate) struct Session {
    pub id: SessionId,
    last_use_ms: AtomicU64,
    /// A client has ended it; it begins anew if it is used.
    is_ended: AtomicBool,
    is_over: AtomicBool,
    /// `None` while a command works under its number, and when it is over.
    history: Mutex<Option<WriteHistory>>,
    given_back: Condvar,
}

impl Session {
    pub(super) fn new(id: SessionId, now_ms: u64, history: WriteHistory) -> Self {
        Self {
            id,
            last_use_ms: AtomicU64::new(now_ms),
            is_ended: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            history: Mutex::new(Some(history)),
            given_back: Condvar::new(),
        }
    }

    pub(super) fn note_use(&self, now_ms: u64) {
        self.last_use_ms.fetch_max(now_ms, Ordering::Relaxed);
        if self.is_ended.load(Ordering::Relaxed) {
            self.is_ended.store(false, Ordering::Relaxed);
        }
    }

    pub(super) fn last_use_ms(&self) -> u64 {
        self.last_use_ms.load(Ordering::Relaxed)
    }

    /// Whether a client has ended it.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    pub(super) fn note_ended(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
    }

    /// Whether it has left the table: whoever has it at hand asks for another one.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Ends it for good and takes what it left, unless a command works with it, or unless it left something and that is to
    /// stay.
    pub(super) fn take_over(&self, kept: Kept) -> Option<WriteHistory> {
        let mut history = self.history.lock();
        if kept == Kept::WithHistory && history.as_ref().is_none_or(|history| !history.is_empty()) {
            return None;
        }
        let taken = history.take()?;
        self.is_over.store(true, Ordering::Release);
        Some(taken)
    }

    /// Begins a retryable write under that number, once no other command works under the session's. `None` where the
    /// session is over.
    /// # Errors
    /// `TransactionTooOld`; what the operation says while it waits.
    pub(crate) fn check_out(
        self: &Arc<Self>,
        number: i64,
        operation: &dyn OperationSource,
    ) -> Result<Option<CheckedOut>> {
        let mut present = self.history.lock();
        let history = loop {
            if self.is_over() {
                return Ok(None);
            }
            match present.take() {
                Some(history) => break history,
                None => {
                    let until = operation.operation().may_wait_until()?;
                    self.given_back.wait_until(&mut present, until);
                }
            }
        };
        if let Some(newer) = history.number().filter(|last| number < *last) {
            *present = Some(history);
            drop(present);
            self.given_back.notify_one();
            return Err(self.too_old(number, newer));
        }
        drop(present);
        let write = Arc::new(RetryableWrite::new(self.id, history, number));
        Ok(Some(CheckedOut { session: Arc::clone(self), write }))
    }

    fn too_old(&self, number: i64, newer: i64) -> Failure {
        let message = format!(
            "Retryable write with txnNumber {number} is prohibited on session {} because a newer retryable write with \
             txnNumber {newer} has already started on this session.",
            super::id::text(self.id)
        );
        Failure::new(ErrorCode::TRANSACTION_TOO_OLD, message)
    }
}

/// Which sessions are not taken over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// Those with a command at work.
    AtWork,
    /// Those that have left something as well.
    WithHistory,
}

/// A session that a command works with, under a number of its own.
pub(crate) struct CheckedOut {
    session: Arc<Session>,
    pub write: Arc<RetryableWrite>,
}

impl fmt::Debug for CheckedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedOut").field("session", &self.session.id).finish_non_exhaustive()
    }
}

impl Drop for CheckedOut {
    fn drop(&mut self) {
        // Somebody else, such as a cursor that the command left, may still have the write.
        *self.session.history.lock() = Some(self.write.end());
        self.session.given_back.notify_one();
    }
}
