//! The last write of a session, for displaying sessions.
//!
//! The write history cannot serve for this: a command takes it while it works with the session, and moves it to the
//! number of a write that may change nothing.

use bunko_catalog::WriteHistory;
use bunko_store::Lsn;

/// The newest write of a session that left a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastWrite {
    /// The transaction number of the write.
    pub number: i64,
    /// Whether it was a retryable write or a transaction.
    pub kind: WriteKind,
    /// The log record of the write; `None` if the server was restarted since.
    pub lsn: Option<Lsn>,
}

/// The kind of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// A retryable write.
    Retryable,
    /// A committed transaction.
    Transaction,
}

impl LastWrite {
    pub(super) fn retryable(number: i64, lsn: Lsn) -> Self {
        Self { number, kind: WriteKind::Retryable, lsn: Some(lsn) }
    }

    pub(super) fn transaction(number: i64, lsn: Lsn) -> Self {
        Self { number, kind: WriteKind::Transaction, lsn: Some(lsn) }
    }

    /// The last write before a restart; `None` if the history has none.
    pub(super) fn of_history(history: &WriteHistory) -> Option<Self> {
        let kind = if history.commit().is_some() { WriteKind::Transaction } else { WriteKind::Retryable };
        Some(Self { number: history.number()?, kind, lsn: None })
    }
}
