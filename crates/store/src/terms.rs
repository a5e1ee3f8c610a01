//! Terms: the times of one primary each. A record of its own begins a term in the log, so every position of the log
//! belongs to the term of the last such record at or below it.
//!
//! The table is in memory. A start takes the terms below the manifest's watermark from the manifest, and the others from
//! the log. Terms below the oldest segment of the log are forgotten, except the one that this segment begins in.
//!
//! **Invariant:** a term begins a new second, so no time of a record that this log had earlier returns.
//! **Invariant:** terms and the positions of their records ascend.

use crate::Lsn;
use parking_lot::RwLock;

/// A term, and the record that began it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermStart {
    /// The term, from 1.
    pub term: u64,
    /// Position of the record.
    pub lsn: Lsn,
}

/// The terms of a log, ascending.
#[derive(Default)]
pub(crate) struct Terms(RwLock<Vec<TermStart>>);

impl Terms {
    pub fn new(starts: Vec<TermStart>) -> Self {
        Self(RwLock::new(starts))
    }

    /// The term of a record at `lsn`; `None` if no term had begun there.
    pub fn at(&self, lsn: Lsn) -> Option<u64> {
        let starts = self.0.read();
        let behind = starts.partition_point(|start| start.lsn <= lsn);
        Some(starts.get(behind.checked_sub(1)?)?.term)
    }

    /// The term of the last record that ends at or below `end`; `None` if no term had begun below. A term that begins
    /// at `end` does not count.
    pub fn before(&self, end: Lsn) -> Option<u64> {
        self.at(Lsn(end.0.checked_sub(1)?))
    }

    pub fn last(&self) -> Option<u64> {
        self.0.read().last().map(|start| start.term)
    }

    pub fn begin(&self, start: TermStart) {
        self.0.write().push(start);
    }

    /// Forgets the terms that began at or behind `end`, where the log is truncated.
    pub fn truncate(&self, end: Lsn) {
        self.0.write().retain(|start| start.lsn < end);
    }

    /// The terms that began below `end`.
    pub fn below(&self, end: Lsn) -> Vec<TermStart> {
        self.0.read().iter().copied().filter(|start| start.lsn < end).collect()
    }

    /// Forgets terms that ended at or below `oldest`, the beginning of the log.
    pub fn forget_before(&self, oldest: Lsn) {
        let mut starts = self.0.write();
        let behind = starts.partition_point(|start| start.lsn <= oldest);
        starts.drain(..behind.saturating_sub(1));
    }
}
