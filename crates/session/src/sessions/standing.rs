//! A session's state of transactions.

use crate::transactions::Open;
use bunko_catalog::WriteHistory;
use bunko_store::Lsn;

/// The state of the session's last transaction.
#[derive(Default)]
pub(super) enum Standing {
    /// No transaction since the server started, or a retryable write came later.
    #[default]
    None,
    InProgress {
        number: i64,
        open: Box<Open>,
    },
    Committed {
        number: i64,
        /// The log record that the acknowledgement of the commit waits for.
        lsn: Option<Lsn>,
    },
    Aborted {
        number: i64,
    },
}

impl Standing {
    /// The transaction's number; `None` if there was none.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::None => None,
            Self::InProgress { number, .. } | Self::Committed { number, .. } | Self::Aborted { number } => {
                Some(*number)
            }
        }
    }
}

/// The state that a command takes out of its session while it works.
pub(super) struct Held {
    pub history: WriteHistory,
    pub standing: Standing,
}

impl Held {
    /// The state after a restart.
    pub fn new(history: WriteHistory) -> Self {
        let standing = match (history.number(), history.commit()) {
            (Some(number), Some(lsn)) => Standing::Committed { number, lsn },
            _ => Standing::None,
        };
        Self { history, standing }
    }

    /// The session's newest transaction number; `None` if it has used none.
    pub fn newest(&self) -> Option<i64> {
        self.history.number().max(self.standing.number())
    }
}

impl Held {
    /// Takes out the transaction in progress and marks it as aborted; `None` if none is in progress.
    pub fn abort(&mut self) -> Option<Box<Open>> {
        let Standing::InProgress { number, .. } = self.standing else { return None };
        match std::mem::replace(&mut self.standing, Standing::Aborted { number }) {
            Standing::InProgress { open, .. } => Some(open),
            _ => None,
        }
    }
}
