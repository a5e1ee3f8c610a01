//! A write that is done, and whose reply waits for other members; see `replication`.

use bunko_errors::ErrorCode;
use bunko_members::Wait;
use bunko_session::Halt;
use bunko_session::awaiting::Await;
use bunko_session::operations::RunningOperation;
use bunko_store::Bell;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a wait without a time limit looks at its state.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_mins(10);

/// A write that is done, or a linearizable read, whose reply waits.
pub(crate) struct Unacknowledged {
    /// The operation: `currentOp` shows it and `killOp` ends its wait. It is set once the command has run.
    pub(crate) operation: Option<RunningOperation>,
    /// Whether it is a read, whose reply is an error unless the wait is met.
    pub(crate) is_read: bool,
    /// The whole reply, without an error.
    pub(crate) reply: Vec<u8>,
    pub(crate) wait: Wait,
    /// Rung when the wait is over.
    pub(crate) bell: Arc<Bell>,
    /// Rung when the operation must stop.
    pub(crate) stop: Arc<Bell>,
    /// When the wait ends, and the error that it ends with.
    pub(crate) until: Option<(Instant, ErrorCode)>,
}

impl Unacknowledged {
    /// The halt of the command until there may be news. `heard` is the number of rings of `stop` before the caller
    /// looked whether the operation must stop.
    pub(crate) fn halt(&self, now: Instant, heard: u64) -> Halt {
        let until = self.until.map_or(now + LOOK_INTERVAL, |(until, _)| until);
        let (news, stop) = (self.bell.after(0), self.stop.after(heard));
        Halt::Awaits(Box::new(Await { news, stop, until, turn: None }))
    }

    /// Keeps the operation of the command, which has run.
    pub(crate) fn keep(&mut self, operation: RunningOperation) {
        operation.note_done();
        // A kill while the command ran has rung before the wait began.
        if operation.is_killed() {
            self.bell.ring();
        }
        self.operation = Some(operation);
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.operation.as_ref().is_some_and(RunningOperation::is_killed)
    }
}

impl fmt::Debug for Unacknowledged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unacknowledged").field("wait", &self.wait).finish_non_exhaustive()
    }
}
