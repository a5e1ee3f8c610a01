//! Places in the code where a test can hold a thread while other threads go on.
//!
//! Each place lies between two steps that other threads may come between, and [`Failpoint`] says what stays true
//! meanwhile; `crates/faults/tests/meetings.rs` holds a thread at each and checks that. Compiled in only with debug
//! assertions: in a release build [`pass`] does nothing.
//!
//! Code with only a lock, a condition and a few atomics has a model instead (`sync`).

#[cfg(debug_assertions)]
mod hold;
#[cfg(debug_assertions)]
pub use hold::{Hold, hold};

/// A place between two steps of a thread, with the guarantee that holds whatever other threads do meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failpoint {
    /// A record has its position in the log, and no engine has applied it. No reader sees it or any later record, and
    /// no checkpoint is marked.
    Appended,
    /// Engines have applied a chain at the reserved position of its last record, which has not been placed. No reader
    /// sees the chain, readers see the records that other writers append before that position, and no checkpoint is
    /// marked.
    AppliedAhead,
    /// A group was taken from the log's buffer, and has not been written to the kernel. A stop waits for it.
    GroupTaken,
    /// The engines are marked for a checkpoint, and nothing has been flushed. A write goes into the memtable after the
    /// mark, and into the log above the manifest's watermark.
    Marked,
    /// The engines are flushed, and the manifest is still the previous one. As [`Self::Marked`].
    Flushed,
    /// The manifest is durable, and files that only the previous one named still exist. As [`Self::Marked`].
    ManifestWritten,
    /// A start has replayed the log, and has changed nothing. If the process ends here, the next start finds all that
    /// it needs.
    Replayed,
    /// A start has cut the log's torn tail, and the manifest is still the previous one. As [`Self::Replayed`].
    LogStarted,
    /// A point read has found a primary key's row, and has not put it into the row cache. It fills no slot that a write
    /// has touched since.
    RowFound,
    /// A reader has found a document's segment, and has not read it. The file is not used again before the reader has
    /// gone.
    SegmentFound,
    /// A new extent is in the registry, and no manifest names it. Its segments stay.
    ExtentRegistered,
    /// A merge has decided its threshold, and has not chosen its tables. No flush adds a table.
    ThresholdDecided,
    /// An index build has put the last key, and the index is not yet complete for other threads. Writers put keys, and
    /// a duplicate of theirs refuses the build.
    IndexFilled,
    /// The store has a collection's new indexes, and the collection still has the old ones. A query that would use an
    /// index waits, and is planned again.
    IndexesCommitted,
}

/// Passes a failpoint; waits there if a test holds it.
#[inline]
pub fn pass(point: Failpoint) {
    #[cfg(debug_assertions)]
    hold::pass(point);
    #[cfg(not(debug_assertions))]
    let _ = point;
}
