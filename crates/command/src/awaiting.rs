//! A command that has nothing to say yet, and waits without a thread.
//!
//! A `getMore` that finds no document ends with [`crate::Halt::Awaits`]: its operation and its cursor stay with the
//! connection, and whoever runs the connection listens to the bells. Then it runs the same frame again, as the same
//! operation.

use crate::cursor_store::OpenCursor;
use crate::operations::RunningOperation;
use bunko_catalog::Turn;
use bunko_store::Listening;
use parking_lot::Mutex;
use std::fmt;
use std::time::Instant;

/// What ends the wait of a command.
#[derive(Debug)]
pub struct Await {
    /// Something happened that it waits for.
    pub news: Listening,
    /// It has to stop: it was killed, or its cursor, or the server ends.
    pub stop: Listening,
    /// Then it answers that there is nothing.
    pub until: Instant,
    /// Its place among those who wait for the same, given up with this.
    pub turn: Option<Turn>,
}

/// How far a monitor's `hello` is, which is run before its wait and after it, and again for each reply that follows unasked:
///
/// ```text
///   New ──────────► waits ──► Waited: replies ──► Follows ──► waits, ...
///    └► replies, where the client knows another topology ──────┘
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Heartbeat {
    /// Its request has come.
    #[default]
    New,
    /// The reply before it has told the topology.
    Follows,
    /// It has met the failpoints and waited.
    Waited,
}

/// What a connection keeps of a command that waits.
pub(crate) struct Parked {
    /// The operation, which `currentOp` shows and `killOp` ends.
    pub operation: RunningOperation,
    /// Nobody locks it: a cursor may go from thread to thread, but not be looked at by two, as a connection may.
    pub cursor: Mutex<ParkedCursor>,
}

/// The cursor of a `getMore` that waits; to others it is in use.
pub(crate) struct ParkedCursor {
    pub id: i64,
    pub cursor: Box<OpenCursor>,
    pub until: Instant,
}

impl fmt::Debug for Parked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parked").finish_non_exhaustive()
    }
}
