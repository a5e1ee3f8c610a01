//! A login by SCRAM that has begun.

use crate::logged_in::LoggedIn;
use bunko_access::{Conversation, Mechanism, Name};
use std::fmt;

/// A SCRAM conversation that has begun and not ended.
pub(crate) struct Login {
    pub user: Name,
    pub mechanism: Mechanism,
    pub stage: Stage,
    pub exchange: LastExchange,
}

/// The client's next message.
pub(crate) enum Stage {
    /// The client's proof comes next.
    Challenged(Conversation),
    /// The client has proved who it is; an empty message from it ends the conversation.
    Proved(Box<LoggedIn>),
}

/// Whether the client asked for an empty exchange at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastExchange {
    Empty,
    Skipped,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}
