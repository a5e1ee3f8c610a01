//! The facts of cursors that `currentOp` and the profiler show.

use bunko_bson::DocumentBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a cursor was opened.
pub struct CursorOrigin {
    /// The command that opened the cursor, without secrets.
    pub command: DocumentBuf,
    /// When the cursor was opened, in milliseconds since 1970.
    pub created_ms: i64,
    /// Whether the cursor is exempt from the idle timeout.
    pub has_no_timeout: bool,
    /// Whether the cursor stays open at the end of the documents.
    pub is_tailable: bool,
    /// Whether a `getMore` waits for more documents there.
    pub awaits_data: bool,
}

/// How much a cursor has returned.
#[derive(Clone, Copy, Debug, Default)]
pub struct CursorProgress {
    /// Documents returned.
    pub documents: u64,
    /// Batches returned.
    pub batches: u64,
}

/// The facts of a cursor, whether it waits or a `getMore` works with it.
#[derive(Clone)]
pub struct CursorTold {
    /// How it was opened.
    pub origin: Arc<CursorOrigin>,
    /// How much it has returned.
    pub progress: CursorProgress,
    /// Time since its last use.
    pub unused_for: Duration,
}
