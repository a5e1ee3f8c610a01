//! Places in the code where a test can hold a thread while other threads go on.
//!
//! Compiled in only with the feature `failpoints`, which tests switch on. Without it [`pass`] does nothing.

#[cfg(feature = "failpoints")]
mod hold;
#[cfg(feature = "failpoints")]
pub use hold::{Hold, hold};

/// A place between two steps of a thread. ARCHITECTURE.md says what other threads may do meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failpoint {
    /// A record has its position in the log, and no engine has applied it.
    Appended,
    /// Engines have applied a chain at the reserved position of its last record, which has not been placed.
    AppliedAhead,
    /// A group was taken from the log's buffer, and has not been written to the kernel.
    GroupTaken,
    /// The engines are marked for a checkpoint, and nothing has been flushed.
    Marked,
    /// The engines are flushed, and the manifest is still the previous one.
    Flushed,
    /// The manifest is durable, and files that only the previous one named still exist.
    ManifestWritten,
    /// A start has replayed the log, and has changed nothing.
    Replayed,
    /// A start has cut the log's torn tail, and the manifest is still the previous one.
    LogStarted,
    /// A point read has found a primary key's row, and has not put it into the row cache.
    RowFound,
    /// A reader has found a document's segment, and has not read it.
    SegmentFound,
    /// A new extent is in the registry, and no manifest names it.
    ExtentRegistered,
    /// A merge has decided its threshold, and has not chosen its tables.
    ThresholdDecided,
    /// An index build has put the last key, and the index is not yet complete for other threads.
    IndexFilled,
    /// The store has a collection's new indexes, and the collection still has the old ones.
    IndexesCommitted,
}

/// Passes a failpoint; waits there if a test holds it.
#[inline]
pub fn pass(point: Failpoint) {
    #[cfg(feature = "failpoints")]
    hold::pass(point);
    #[cfg(not(feature = "failpoints"))]
    let _ = point;
}
