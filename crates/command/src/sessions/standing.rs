//! What a session has of transactions.

use crate::transactions::Open;
use bunko_catalog::WriteHistory;
use bunko_store::Lsn;

/// How the session's last transaction stands.
#[derive(Default)]
pub(crate) enum Standing {
    /// It has had none since the server began, or a retryable write came later.
    #[default]
    None,
    InProgress {
        number: i64,
        open: Box<Open>,
    },
    Committed {
        number: i64,
        /// The record of the log that an acknowledgement waits for.
        lsn: Option<Lsn>,
    },
    Aborted {
        number: i64,
    },
}

impl Standing {
    /// The transaction's number.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::None => None,
            Self::InProgress { number, .. } | Self::Committed { number, .. } | Self::Aborted { number } => {
                Some(*number)
            }
        }
    }
}

/// What nobody else has while a command works with the session.
pub(super) struct Held {
    pub history: WriteHistory,
    pub standing: Standing,
}

impl Held {
    /// As the last stop left it.
    pub fn new(history: WriteHistory) -> Self {
        let standing = match (history.number(), history.commit()) {
            (Some(number), Some(lsn)) => Standing::Committed { number, lsn },
            _ => Standing::None,
        };
        Self { history, standing }
    }

    /// The session's newest number.
    pub fn newest(&self) -> Option<i64> {
        self.history.number().max(self.standing.number())
    }
}

impl Held {
    /// The transaction in progress, which is aborted from now on.
    pub fn abort(&mut self) -> Option<Box<Open>> {
        let Standing::InProgress { number, .. } = self.standing else { return None };
        match std::mem::replace(&mut self.standing, Standing::Aborted { number }) {
            Standing::InProgress { open, .. } => Some(open),
            _ => None,
        }
    }
}
