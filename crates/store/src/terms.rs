//! Terms. A term is the time of one primary. A record of its own begins each term in the log, so every position of the
//! log belongs to the term of the last such record at or below it.
//!
//! The table is in memory. A start takes the terms below the manifest's watermark from the manifest, and the others
//! from the log. Terms below the oldest segment of the log are forgotten, except the one that this segment begins in.
//!
//! **Invariant:** a term begins a new second, so no time of a record that this log had earlier returns.

use crate::Lsn;
use bunko_replica::Terms;
use parking_lot::RwLock;

/// The terms of a log, for all threads.
#[derive(Default)]
pub(crate) struct SharedTerms(RwLock<Terms>);

impl SharedTerms {
    pub fn new(terms: Terms) -> Self {
        Self(RwLock::new(terms))
    }

    /// The term of a record at `lsn`; `None` if no term had begun there.
    pub fn at(&self, lsn: Lsn) -> Option<u64> {
        self.before(Lsn(lsn.0 + 1))
    }

    /// The term of the last record that ends at or below `end`; `None` if no term had begun below. A term that begins
    /// at `end` does not count.
    pub fn before(&self, end: Lsn) -> Option<u64> {
        Some(self.0.read().term_at(end.0)).filter(|term| *term > 0)
    }

    pub fn copy(&self) -> Terms {
        self.0.read().clone()
    }

    /// The last term; 0 before there is one.
    pub fn last(&self) -> u64 {
        self.0.read().last()
    }

    pub fn begin(&self, term: u64, lsn: Lsn) {
        self.0.write().begin(term, lsn.0);
    }

    /// Forgets the terms that began at or after `end`, where the log is truncated.
    pub fn truncate(&self, end: Lsn) {
        self.0.write().truncate(end.0);
    }

    /// The terms that began below `end`.
    pub fn below(&self, end: Lsn) -> Terms {
        let mut terms = self.copy();
        terms.truncate(end.0);
        terms
    }

    /// Forgets terms that ended at or below `oldest`, the beginning of the log.
    pub fn forget_before(&self, oldest: Lsn) {
        self.0.write().forget_before(oldest.0);
    }
}
