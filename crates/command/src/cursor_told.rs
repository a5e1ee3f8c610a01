//! The facts of cursors that `currentOp` and the profiler show.

use bunko_bson::DocumentBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a cursor was opened, for `currentOp` and the profiler.
pub struct CursorOrigin {
    /// The command, without secrets.
    pub command: DocumentBuf,
    /// When, in milliseconds since 1970.
    pub created_ms: i64,
    /// Whether the idle timeout spares it.
    pub has_no_timeout: bool,
    /// Whether it stays open at the end of the documents.
    pub is_tailable: bool,
    /// Whether a `getMore` waits there.
    pub awaits_data: bool,
}

/// How far a cursor is.
#[derive(Clone, Copy, Debug, Default)]
pub struct CursorProgress {
    /// Documents that it has returned.
    pub documents: u64,
    /// In how many batches.
    pub batches: u64,
}

/// The facts of a cursor, whether it waits or a `getMore` has it.
#[derive(Clone)]
pub(crate) struct CursorTold {
    pub origin: Arc<CursorOrigin>,
    pub progress: CursorProgress,
    pub unused_for: Duration,
}
