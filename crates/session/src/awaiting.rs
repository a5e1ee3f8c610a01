//! A command that has no reply yet and waits without a thread.
//!
//! A `getMore` that finds no document ends with an [`Await`]: its operation and its cursor stay with the
//! connection, and the thread that serves the connection listens to the bells. When one rings, it runs the frame again,
//! as the same operation.
//!
//! The first bell belongs to the awaited thing: a capped collection's bell rings after an insert, a drop and a rename;
//! a change stream's bell after a sync; the bell of a statement that met a conflict, the first of its transaction, when
//! its turn comes.
//! The second bell belongs to the operation, and rings when the operation is killed. So a wait holds no thread and no
//! snapshot.

use crate::cursors::OpenCursor;
use crate::operations::RunningOperation;
use bunko_catalog::Turn;
use bunko_store::Listening;
use parking_lot::Mutex;
use std::fmt;
use std::time::Instant;

/// The conditions that end the wait of a command.
#[derive(Debug)]
pub struct Await {
    /// Rings when the awaited thing may have happened.
    pub news: Listening,
    /// Rings when the command must stop: the command or its cursor was killed, or the server is shutting down.
    pub stop: Listening,
    /// When the wait ends without news, and the command replies without results.
    pub until: Instant,
    /// The command's turn among those that wait for the same transaction. Dropping it gives the turn up.
    pub turn: Option<Turn>,
}

/// Progress of a monitor's `hello`, which runs before and after its wait, and again for each further reply that the
/// server sends without a request:
///
/// ```text
///   New ──────────► waits ──► Waited: replies ──► Follows ──► waits, ...
///    └► replies, where the client knows another topology ──────┘
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heartbeat {
    /// The request has arrived.
    #[default]
    New,
    /// The reply before it has reported the topology.
    Follows,
    /// The request has passed the failpoints and waited.
    Waited,
}

/// The reply that follows another without a further request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowUp {
    /// The next batch of a cursor.
    Batch(i64),
    /// The next heartbeat of a monitor, which waits before it is sent.
    Heartbeat,
}

/// The state of a waiting command that its connection keeps.
pub struct Parked {
    /// The operation: `currentOp` shows it and `killOp` ends it.
    pub operation: RunningOperation,
    /// Never locked: the mutex makes the type `Sync`, as a connection must be, although a cursor is only `Send`.
    pub cursor: Mutex<ParkedCursor>,
}

/// The cursor of a waiting `getMore`. Other commands find it in use.
pub struct ParkedCursor {
    /// The cursor's id.
    pub id: i64,
    /// The cursor.
    pub cursor: Box<OpenCursor>,
    /// When the wait ends without news.
    pub until: Instant,
}

impl fmt::Debug for Parked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parked").finish_non_exhaustive()
    }
}
