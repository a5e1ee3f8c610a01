//! A cursor that is open.

use super::source::CursorSource;
use super::tally::QueryTally;
use super::told::{CursorOrigin, CursorProgress};
use crate::operations::Context;
use crate::sessions::SessionId;
use bunko_bson::DocumentBuf;
use bunko_catalog::Namespace;
use bunko_request::Peer;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A cursor with everything that `getMore` needs.
pub struct OpenCursor {
    /// The namespace that the cursor reads.
    pub namespace: Namespace,
    /// The source of the cursor's documents.
    pub source: Box<dyn CursorSource>,
    /// A document that did not fit into the last batch.
    pub pending: Option<DocumentBuf>,
    /// The session that opened the cursor.
    pub session: Option<SessionId>,
    /// The number of the transaction that opened the cursor.
    pub transaction: Option<i64>,
    /// The client that opened the cursor.
    pub peer: Peer,
    /// Whether the next batch may take long to fill.
    pub is_long: bool,
    /// Whether the cursor is exempt from the idle timeout.
    pub has_no_timeout: bool,
    /// Time left of the opening command's `maxTimeMS`. Time between batches does not count.
    pub time_left: Option<Duration>,
    /// Length of the last `nextBatch`, in bytes.
    pub batch_bytes: usize,
    /// Documents and batches that the cursor has returned.
    pub progress: CursorProgress,
    /// When the cursor was last used.
    pub last_use: Instant,
    /// The operation in which the source counts its work, for the command that reads the cursor.
    pub context: Context,
    /// Sums up the query over its batches, if it is counted.
    pub tally: Option<Box<dyn QueryTally>>,
    /// How the cursor was opened.
    pub origin: Arc<CursorOrigin>,
}
