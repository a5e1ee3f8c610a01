//! What a session wrote last, for those who look at sessions.
//!
//! The history cannot tell: while a command works with the session, the command has it, and it turns to the number of a
//! write that may change nothing.

use bunko_catalog::WriteHistory;
use bunko_store::Lsn;

/// The newest write of a session that left a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastWrite {
    /// The number that it was sent with.
    pub number: i64,
    pub kind: WriteKind,
    /// The record of the log that has it; `None` where the server has been started since.
    pub lsn: Option<Lsn>,
}

/// What it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Retryable,
    /// A transaction, which was committed.
    Transaction,
}

impl LastWrite {
    pub fn retryable(number: i64, lsn: Lsn) -> Self {
        Self { number, kind: WriteKind::Retryable, lsn: Some(lsn) }
    }

    pub fn transaction(number: i64, lsn: Lsn) -> Self {
        Self { number, kind: WriteKind::Transaction, lsn: Some(lsn) }
    }

    /// As the last stop left it.
    pub fn of_history(history: &WriteHistory) -> Option<Self> {
        let kind = if history.commit().is_some() { WriteKind::Transaction } else { WriteKind::Retryable };
        Some(Self { number: history.number()?, kind, lsn: None })
    }
}
