//! Why a command did not finish.

use crate::awaiting::Await;
use bunko_errors::Failure;

/// Why a command did not finish.
#[derive(Debug)]
pub enum Halt {
    /// The command failed.
    Failed(Failure),
    /// The command would take too long on its thread; nothing has been done yet.
    TooLong,
    /// The command has no reply yet. The connection runs it again after the wait, and runs no other command before
    /// that.
    Awaits(Box<Await>),
    /// The connection must be closed without a reply, because a failpoint asks for it.
    ClosesConnection,
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        if failure.is_too_long() { Self::TooLong } else { Self::Failed(failure) }
    }
}
