//! Reasons for an operation to stop: `maxTimeMS`, `killOp`, a client that left, a killed cursor, the server's shutdown.
//!
//! No thread interrupts another. An operation asks `Interruption` for a reason itself: `OperationContext::work` of
//! `operation` asks every few hundred steps, and a thread that waits asks every 100 ms. An operation that waits without a
//! thread is woken by the bell `stop` of its slot.

use super::slot::{OperationSlot, RunningOperation};
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::ReadsFrom;
use bunko_store::Clock;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The interruption of an operation. A cursor outlives the command that opened it, so the interruption follows the
/// command that works with the cursor now.
pub struct Interruption {
    clock: Clock,
    target: Mutex<WatchedOperation>,
    is_cursor_killed: AtomicBool,
}

/// The interruption of the server's own operations.
pub(super) struct EndOfServer {
    are_all_interrupted: Arc<AtomicBool>,
    clock: Clock,
}

impl EndOfServer {
    pub(super) fn new(are_all_interrupted: &Arc<AtomicBool>, clock: &Clock) -> Self {
        Self { are_all_interrupted: Arc::clone(are_all_interrupted), clock: clock.clone() }
    }
}

impl bunko_operation::Interruption for EndOfServer {
    fn reason(&self) -> Option<Failure> {
        self.are_all_interrupted.load(Ordering::Relaxed).then(at_shutdown)
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }
}

/// The failure of all operations when the server shuts down.
pub fn at_shutdown() -> Failure {
    Failure::new(ErrorCode::INTERRUPTED_AT_SHUTDOWN, "interrupted at shutdown")
}

/// The failure of an operation whose client is gone.
pub fn at_disconnection() -> Failure {
    Failure::new(ErrorCode::CLIENT_DISCONNECT, "operation was interrupted because a client disconnected")
}

struct WatchedOperation {
    slot: Arc<OperationSlot>,
    is_read: bool,
    opid: u32,
    deadline: Option<Instant>,
}

impl WatchedOperation {
    fn new(operation: &RunningOperation, deadline: Option<Instant>) -> Self {
        let is_read = operation.entry.reads != ReadsFrom::Nothing;
        Self { slot: Arc::clone(&operation.slot), is_read, opid: operation.opid, deadline }
    }
}

impl Interruption {
    /// Interrupts after `killOp` of that operation, after its client disconnects (reads only), and after the deadline.
    pub fn of(operation: &RunningOperation, deadline: Option<Instant>) -> Arc<Self> {
        Arc::new(Self {
            clock: operation.slot.clock.clone(),
            target: Mutex::new(WatchedOperation::new(operation, deadline)),
            is_cursor_killed: AtomicBool::new(false),
        })
    }

    /// Follows another operation from now on.
    pub fn follow(&self, operation: &RunningOperation, deadline: Option<Instant>) {
        *self.target.lock() = WatchedOperation::new(operation, deadline);
    }

    /// Notes that the operation's cursor has been killed.
    pub fn note_killed_cursor(&self) {
        self.is_cursor_killed.store(true, Ordering::SeqCst);
        self.target.lock().slot.stop.ring();
    }
}

impl bunko_operation::Interruption for Interruption {
    fn reason(&self) -> Option<Failure> {
        let target = self.target.lock();
        if target.slot.are_all_interrupted.load(Ordering::Relaxed) {
            return Some(at_shutdown());
        }
        if self.is_cursor_killed.load(Ordering::Relaxed) {
            return Some(Failure::new(
                ErrorCode::CURSOR_KILLED,
                "operation was interrupted because its cursor was killed",
            ));
        }
        if target.slot.killed.load(Ordering::Relaxed) == target.opid {
            return Some(Failure::new(ErrorCode::INTERRUPTED, "operation was interrupted"));
        }
        if target.is_read && target.slot.is_client_gone.load(Ordering::Relaxed) {
            return Some(at_disconnection());
        }
        target
            .deadline
            .filter(|deadline| self.clock.now() >= *deadline)
            .map(|_| Failure::new(ErrorCode::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"))
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Beginning, Operations};
    use super::*;
    use crate::sessions::SessionId;
    use bunko_bson::DocumentBuf;
    use bunko_operation::Interruption as _;
    use bunko_request::Peer;
    use bunko_request::facts::{Changes, CommandFacts};
    use std::time::Duration;

    const FIND: CommandFacts = CommandFacts { name: "find", reads: ReadsFrom::Collection, ..CommandFacts::PLAIN };
    const UPDATE: CommandFacts = CommandFacts { name: "update", changes: Changes::Documents, ..CommandFacts::PLAIN };
    const SESSION: SessionId = SessionId { id: [7; 16], user: [0; 32] };

    fn beginning(command: &DocumentBuf) -> Beginning<'_> {
        Beginning { entry: &FIND, database: "test", command: command.as_ref(), session: Some(SESSION) }
    }

    fn code(interruption: &Interruption) -> Option<ErrorCode> {
        interruption.reason().map(|failure| failure.code())
    }

    #[test]
    fn a_kill_hits_its_operation_and_no_later_one() {
        let operations = Operations::new(Clock::standing(0));
        let connection = operations.register(1, Peer::Tcp(([127, 0, 0, 1], 5).into()));
        let command = DocumentBuf::new().with("find", "c");
        let first = connection.begin(&beginning(&command), None);
        let interrupt = Interruption::of(&first, None);
        assert_eq!(code(&interrupt), None);
        operations.kill(first.opid() + 1);
        assert_eq!(code(&interrupt), None);
        operations.kill(first.opid());
        assert_eq!(code(&interrupt), Some(ErrorCode::INTERRUPTED));
        assert!(operations.observe()[0].is_killed);
        drop(first);
        let second = connection.begin(&beginning(&command), None);
        assert_eq!(code(&Interruption::of(&second, None)), None);
        operations.kill_sessions(|session| session == SESSION, second.opid());
        assert_eq!(code(&Interruption::of(&second, None)), None, "who asks goes on");
        operations.kill_sessions(|session| session == SESSION, 0);
        assert_eq!(code(&Interruption::of(&second, None)), Some(ErrorCode::INTERRUPTED));
    }

    #[test]
    fn only_reads_end_with_their_client() {
        let operations = Operations::new(Clock::standing(0));
        let connection = operations.register(1, Peer::Tcp(([127, 0, 0, 1], 5).into()));
        let command = DocumentBuf::new().with("find", "c");
        connection.absence().note();
        let read = connection.begin(&beginning(&command), None);
        assert_eq!(code(&Interruption::of(&read, None)), Some(ErrorCode::CLIENT_DISCONNECT));
        drop(read);
        let write = connection.begin(&Beginning { entry: &UPDATE, ..beginning(&command) }, None);
        assert_eq!(code(&Interruption::of(&write, None)), None);
    }

    #[test]
    fn time_runs_out() {
        let clock = Clock::standing(0);
        let operations = Operations::new(clock.clone());
        let connection = operations.register(1, Peer::Tcp(([127, 0, 0, 1], 5).into()));
        let command = DocumentBuf::new().with("find", "c");
        let operation = connection.begin(&beginning(&command), None);
        let interruption = Interruption::of(&operation, Some(operation.started() + Duration::from_millis(2)));
        clock.advance(Duration::from_millis(1));
        assert_eq!(code(&interruption), None);
        clock.advance(Duration::from_millis(1));
        assert_eq!(code(&interruption), Some(ErrorCode::MAX_TIME_MS_EXPIRED));
    }

    #[test]
    fn a_cursor_follows_the_command_that_reads_it() {
        let operations = Operations::new(Clock::standing(0));
        let (opener, reader) = (
            operations.register(1, Peer::Tcp(([127, 0, 0, 1], 5).into())),
            operations.register(2, Peer::Tcp(([127, 0, 0, 1], 6).into())),
        );
        let command = DocumentBuf::new().with("find", "c");
        let find = opener.begin(&beginning(&command), None);
        let interruption = Interruption::of(&find, Some(find.started()));
        drop(find);
        let get_more = reader.begin(&beginning(&command), None);
        interruption.follow(&get_more, None);
        assert_eq!(code(&interruption), None, "the time between the two does not count");
        operations.kill(get_more.opid());
        assert_eq!(code(&interruption), Some(ErrorCode::INTERRUPTED));
    }
}
