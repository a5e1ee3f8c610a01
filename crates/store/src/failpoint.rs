//! Places where threads meet: a test holds one thread there while others go past it.
//!
//! Compiled in only with the feature `failpoints`, which tests have switched on. Without it [`pass`] is nothing.

#[cfg(feature = "failpoints")]
mod hold;
#[cfg(feature = "failpoints")]
pub use hold::{Hold, hold};

/// A place between two steps of one thread. ARCHITECTURE.md says of each what others may do there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failpoint {
    /// A record has its place in the log, and no engine has it yet.
    Appended,
    /// Engines have applied a chain as of the reserved place of its last record, which is not there yet.
    AppliedAhead,
    /// A group was taken out of the log's buffer, and is not yet in the kernel.
    GroupTaken,
    /// The engines are marked for a checkpoint, and nothing is flushed.
    Marked,
    /// The engines are flushed, and the manifest is the one before.
    Flushed,
    /// The manifest is durable, and what only the one before named is still there.
    ManifestWritten,
    /// A start has replayed the log, and has changed nothing.
    Replayed,
    /// A start has cut the log's torn tail, and the manifest is the one before.
    LogStarted,
    /// A point read has found where a primary key leads, and has not yet put it into the row cache.
    RowFound,
    /// A reader has found the segment that a document is in, and has not read it.
    SegmentFound,
    /// A new extent is in the registry, and no manifest names it.
    ExtentRegistered,
    /// A merge has decided what may be forgotten, and has not chosen its tables.
    ThresholdDecided,
    /// A builder has put the last key into its index, which is not yet complete for others.
    IndexFilled,
    /// The store has other indexes of a collection, and the collection has those from before.
    IndexesCommitted,
}

/// A thread comes by: it waits there if a test holds the place.
#[inline]
pub fn pass(point: Failpoint) {
    #[cfg(feature = "failpoints")]
    hold::pass(point);
    #[cfg(not(feature = "failpoints"))]
    let _ = point;
}
