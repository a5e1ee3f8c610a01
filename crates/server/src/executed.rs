//! Outcomes of frames.

use bunko_command::{Answer, Await, Halt};

/// The outcome of a frame.
pub(crate) enum Executed {
    /// The reply, if there is one, is in the buffer.
    Done(Answer),
    /// The command may take long: the caller runs the frame again off the connections' threads. Nothing has been done.
    TooLong,
    /// The command waits: the caller runs the frame again when the wait is over.
    Awaits(Box<Await>),
    /// The connection must be closed without a reply.
    ClosesConnection,
}

impl Executed {
    /// The outcome of a command that halted without a reply.
    pub(crate) fn of(halt: Halt) -> Self {
        match halt {
            Halt::Awaits(wait) => Self::Awaits(wait),
            Halt::ClosesConnection => Self::ClosesConnection,
            // A failure has a reply, so none arrives here.
            Halt::TooLong | Halt::Failed(_) => Self::TooLong,
        }
    }
}
