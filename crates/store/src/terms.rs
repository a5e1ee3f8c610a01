//! Terms: the times of one primary each. A record of its own begins a term in the log, so every position of the log
//! belongs to the term of the last such record at or below it.
//!
//! The table is in memory. A start takes the terms below the manifest's watermark from the manifest, and the others from
//! the log. Terms below the oldest segment of the log are forgotten, except the one that this segment begins in.
//!
//! **Invariant:** a term begins a new second, so no time of a record that this log had earlier returns.
//! **Invariant:** terms and the positions of their records ascend.

use crate::role::Role;
use crate::store::Applying;
use crate::{Batch, Lsn, Result, Statement, Store};
use parking_lot::RwLock;
use std::sync::atomic::Ordering;

/// A term, and the record that began it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermStart {
    /// The term, from 1.
    pub term: u64,
    /// Position of the record.
    pub lsn: Lsn,
}

impl TermStart {
    /// The contents of the record.
    pub(crate) fn batch(term: u64) -> Batch<'static> {
        let mut batch = Batch::new();
        batch.note(&term.to_le_bytes());
        batch
    }

    /// Reads the statements of the record at `lsn`; `None` if they name no term.
    pub(crate) fn read<'a>(lsn: Lsn, mut statements: impl Iterator<Item = Statement<'a>>) -> Option<Self> {
        match statements.next() {
            Some(Statement::Note(content)) => Some(Self { term: u64::from_le_bytes(content.try_into().ok()?), lsn }),
            _ => None,
        }
    }
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

impl Store {
    /// Writes the record that begins a term, and makes the store a primary's. All later records have times in a later
    /// second than all earlier ones. The vote for the term must have been saved before.
    ///
    /// # Errors
    /// As [`Store::commit`] and [`Store::checkpoint`].
    /// # Panics
    /// If the term is not above the last one.
    pub fn begin_term(&self, term: u64) -> Result<Lsn> {
        if self.is_of_older_format.load(Ordering::Relaxed) {
            // A version that does not know such records would take them for the end of the log. The checkpoint's
            // manifest makes it refuse the directory.
            self.checkpoint()?;
        }
        let batch = TermStart::batch(term);
        let draw = Self::draw(std::slice::from_ref(&batch), 0);
        self.with_relief(draw, || {
            let _no_open_chain = self.chain.lock();
            let _no_batch_in_flight = self.gate.write();
            assert!(Some(term) > self.terms.last(), "terms ascend");
            let now_ms = self.options.clock.now_ms();
            let in_order = |moment| self.watermark.appended(moment);
            let lsn = self.journal.append_term(&batch, draw, now_ms, in_order)?.lsn;
            self.terms.begin(TermStart { term, lsn });
            drop(Applying { store: self, lsn });
            self.role.set(Role::Primary { term });
            Ok(lsn)
        })
    }

    /// The term of a record at a position of the log; `None` if no term had begun there, as on a standalone server.
    pub fn term_at(&self, lsn: Lsn) -> Option<u64> {
        self.terms.at(lsn)
    }

    /// The last term and the end of the log. The greater of two members' pairs belongs to the log that has all that is
    /// committed.
    pub fn last_position(&self) -> (Option<u64>, Lsn) {
        // If a term begins between the two loads, the pair is that of the moment before, or the longer one.
        let end = self.journal.end();
        (self.terms.at(end), end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::fake::fake;
    use crate::journal::Journal;
    use crate::log::first_record;
    use crate::{EngineTable, KeyspaceId, RecordId, SEGMENT_BYTES, StoreOptions, Survival};
    use std::path::Path;
    use std::sync::Arc;

    fn start(term: u64, lsn: u64) -> TermStart {
        TermStart { term, lsn: Lsn(lsn) }
    }

    fn open(path: &Path) -> Arc<Store> {
        let (own, _) = fake("own", Survival::Durable);
        Store::open(path, StoreOptions::at_rest(), EngineTable::only(own)).expect("opens")
    }

    fn insert(store: &Store, bytes: usize) -> Lsn {
        let mut batch = Batch::new();
        batch.insert_record(KeyspaceId(7), RecordId(1), vec![7; bytes]);
        store.commit(&batch).expect("committed")
    }

    #[test]
    fn a_position_belongs_to_the_last_term_that_began_before_it() {
        let terms = Terms::new(vec![start(2, 100), start(5, 200), start(6, 300)]);
        let found = [0, 99, 100, 199, 200, 299, 300, 9000].map(|lsn| terms.at(Lsn(lsn)));
        assert_eq!(found, [None, None, Some(2), Some(2), Some(5), Some(5), Some(6), Some(6)]);
        assert_eq!(terms.below(Lsn(200)), [start(2, 100)]);
        for (oldest, left) in [(99, 3), (199, 3), (200, 2), (299, 2), (300, 1), (9000, 1)] {
            let terms = Terms::new(terms.below(Lsn(u64::MAX)));
            terms.forget_before(Lsn(oldest));
            assert_eq!(terms.below(Lsn(u64::MAX)).len(), left, "before {oldest}");
            assert_eq!(
                terms.at(Lsn(oldest)),
                Terms::new(vec![start(2, 100), start(5, 200), start(6, 300)]).at(Lsn(oldest))
            );
        }
    }

    #[test]
    fn terms_are_found_again_in_log_and_manifest_and_begin_new_seconds() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let store = open(directory.path());
        let before = insert(&store, 10);
        assert_eq!(store.last_position().0, None);
        let mut seconds = vec![store.newest_time().seconds];
        let mut placed = Vec::new();
        for term in [1, 2, 7] {
            let began = store.begin_term(term).expect("begins");
            seconds.push(store.newest_time().seconds);
            placed.push((term, began, insert(&store, 10)));
            assert_eq!(store.newest_time().seconds, *seconds.last().expect("one"), "the clock stands still");
        }
        assert!(seconds.is_sorted_by(|earlier, later| earlier < later), "a promise is broken: {seconds:?}");
        let check = |store: &Store| {
            assert_eq!(store.term_at(before), None);
            for (term, began, inserted) in &placed {
                assert_eq!((store.term_at(*began), store.term_at(*inserted)), (Some(*term), Some(*term)));
            }
            assert_eq!(store.last_position(), (Some(7), store.visible_end()));
        };
        check(&store);
        store.write(placed[2].2).expect("written");
        // The log alone has them, then the manifest alone, then both.
        let copied = bunko_testkit::directory::crash_copy(directory.path());
        let again = open(copied.path());
        check(&again);
        again.close().expect("closes");
        drop(again);
        let again = open(copied.path());
        assert_eq!(again.recovery().expect("has a log").replayed_records, 0);
        check(&again);
        again.begin_term(9).expect("begins");
        let last = insert(&again, 10);
        again.write(last).expect("written");
        let copied = bunko_testkit::directory::crash_copy(copied.path());
        drop(again);
        let again = open(copied.path());
        assert_eq!((again.term_at(placed[2].1), again.term_at(last)), (Some(7), Some(9)));
        // A store in memory has terms too, for its life.
        let (own, _) = fake("own", Survival::Volatile);
        let volatile = Store::open(Path::new("none"), StoreOptions::at_rest(), EngineTable::only(own)).expect("opens");
        let began = volatile.begin_term(3).expect("begins");
        assert_eq!((volatile.term_at(began), volatile.last_position().0), (Some(3), Some(3)));
    }

    #[test]
    fn terms_of_reclaimed_segments_are_forgotten_but_for_the_one_that_the_log_begins_in() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let store = open(directory.path());
        for term in [1, 2] {
            store.begin_term(term).expect("begins");
        }
        for _ in 0..3 {
            insert(&store, SEGMENT_BYTES as usize / 2);
        }
        store.checkpoint().expect("checkpoint");
        store.checkpoint().expect("the second writes what the first forgot");
        let Journal::Log(log) = &store.journal else { panic!("it has a log") };
        let oldest = Lsn(first_record(log.segment_numbers()[0]));
        assert!(oldest > Lsn(first_record(0)));
        let manifest = crate::manifest::Manifest::read(directory.path()).expect("readable").expect("present");
        assert_eq!(manifest.terms.iter().map(|start| start.term).collect::<Vec<_>>(), [2]);
        assert_eq!(store.term_at(oldest), Some(2));
        store.close().expect("closes");
    }
}
