//! The commit point: the end of the part of the log that no election can take back.
//!
//! On a standalone server and in a set of one member it follows the watermark: all that readers see is committed. In a
//! set of several members it stands where a majority of the members has the log. Checkpoints, reclaiming, the end of
//! segments, change streams and reads with the concern `majority` ask for it here, and nowhere else.
//!
//! A checkpoint waits for the commit point, because what is in the engines' files cannot be taken back without an
//! initial sync. It waits [`COMMIT_WAIT_MAX`] at most, and only while the log above the commit point is smaller than the
//! bytes that engines may hold unflushed: a primary whose secondaries are down must go on. The log above the commit
//! point is kept in any case.
//!
//! **Invariant:** the commit point never goes back while it is held, and readers see all below it.

use crate::checkpoint::Checkpointer;
use crate::planted::{self, Bug};
use crate::{History, Lsn, Result, Snapshot, StorageError, Store};
use bunko_bson::Timestamp;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Longest time that a checkpoint waits for the commit point.
const COMMIT_WAIT_MAX: Duration = Duration::from_mins(1);
/// How often a checkpoint that waits looks whether it must go on.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// The commit point follows the watermark.
const FOLLOWS: u64 = u64::MAX;

/// Where the commit point stands.
pub(crate) struct CommitPoint {
    /// [`FOLLOWS`], or its position.
    held: AtomicU64,
    /// Older states cannot be read: a start does not keep the versions that it replays.
    readable_from: Lsn,
    /// Locked by a checkpoint that waits for `raised`.
    waiting: Mutex<()>,
    raised: Condvar,
}

impl CommitPoint {
    /// `held` is the position that the manifest names; the log ends at `end`.
    pub fn new(held: Option<Lsn>, end: Lsn) -> Self {
        Self {
            held: AtomicU64::new(held.map_or(FOLLOWS, |held| held.0)),
            readable_from: end,
            waiting: Mutex::default(),
            raised: Condvar::new(),
        }
    }

    /// The position, unless it follows the watermark.
    pub fn held(&self) -> Option<Lsn> {
        Some(self.held.load(Ordering::Acquire)).filter(|held| *held != FOLLOWS).map(Lsn)
    }
}

impl Store {
    /// Position below which all is committed. Readers see all of it.
    pub fn committed(&self) -> Lsn {
        Lsn(self.commit_point.held.load(Ordering::Acquire)).min(self.watermark.visible())
    }

    /// Whether the commit point is held, so that readers may see more than is committed.
    pub fn is_commit_held(&self) -> bool {
        self.commit_point.held().is_some()
    }

    /// Holds the commit point where it is, until [`Store::set_committed`] raises it.
    pub fn hold_committed(&self) {
        // Under this lock no version of the state is dropped, and none of a later one from here on.
        let (_, _pin) = self.snapshots.pin(|| {
            let visible = self.watermark.visible();
            let follows =
                self.commit_point.held.compare_exchange(FOLLOWS, visible.0, Ordering::AcqRel, Ordering::Acquire);
            Lsn(follows.map_or_else(|held| held, |_| visible.0)).min(visible)
        });
    }

    /// Raises a held commit point to `lsn`, which ends a record; a lower position changes nothing.
    pub fn set_committed(&self, lsn: Lsn) {
        let raise = |held| (held != FOLLOWS && lsn.0 > held).then_some(lsn.0);
        if self.commit_point.held.fetch_update(Ordering::AcqRel, Ordering::Acquire, raise).is_ok() {
            self.tell_of_commit();
        }
    }

    /// Lets the commit point follow the watermark: the member is a majority by itself.
    pub fn commit_what_is_visible(&self) {
        self.commit_point.held.store(FOLLOWS, Ordering::Release);
        self.tell_of_commit();
    }

    fn tell_of_commit(&self) {
        drop(self.commit_point.waiting.lock());
        self.commit_point.raised.notify_all();
        if let Some(bell) = self.durable_bell() {
            bell.ring();
        }
    }

    /// A snapshot of the committed state; `None` after a start, while the commit point is below the end that the log
    /// had then.
    pub fn committed_snapshot(&self) -> Option<Snapshot> {
        // As in [`Store::snapshot`].
        let _gate = self.gate.read();
        let seen = || if planted::active(Bug::UncommittedRead) { self.watermark.visible() } else { self.committed() };
        let (lsn, pin) = self.snapshots.pin(seen);
        let is_readable = lsn >= self.commit_point.readable_from;
        is_readable.then(|| Snapshot { view: self.engines.view(lsn), lsn, _pin: Some(pin) })
    }

    /// Time and term of the newest committed record. The time is null before there is one, and where the log does not
    /// reach back to it.
    ///
    /// # Errors
    /// As reading the history.
    pub fn committed_time(&self) -> Result<(Timestamp, Option<u64>)> {
        let end = self.committed();
        let term = self.terms.at(end);
        if !self.is_commit_held() {
            return Ok((self.newest_time(), term));
        }
        let mut history = self.history_before(end);
        let moment = match history.as_mut().map_or(Ok(None), History::next_record) {
            Err(StorageError::HistoryLost) => None,
            newest => newest?.map(|record| record.chained.map_or(record.moment, |chained| chained.last)),
        };
        Ok((moment.map_or(Timestamp { seconds: 0, increment: 0 }, |moment| moment.timestamp(0)), term))
    }

    /// Waits until all below `end` is committed, or until a checkpoint may wait no longer.
    pub(crate) fn await_commit(&self, checkpointer: &Checkpointer, end: Lsn) {
        if self.committed() >= end {
            return;
        }
        let until = self.options.clock.now() + COMMIT_WAIT_MAX;
        let mut waiting = self.commit_point.waiting.lock();
        while self.committed() < end {
            let behind_bytes = self.journal.end().0 - self.committed().0;
            let is_over = self.options.clock.now() >= until || behind_bytes > self.options.unflushed_bytes_max;
            if is_over || checkpointer.is_closing() || self.is_closing.load(Ordering::Relaxed) {
                (self.options.on_commit_passed)(self.committed(), end);
                return;
            }
            self.commit_point.raised.wait_for(&mut waiting, LOOK_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::fake::fake;
    use crate::journal::Journal;
    use crate::log::segment_of;
    use crate::{Batch, Clock, EngineTable, KeyspaceId, LogOptions, RecordId, SEGMENT_BYTES, StoreOptions, Survival};
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    fn insert(store: &Store, bytes: usize) -> Lsn {
        let mut batch = Batch::new();
        batch.insert_record(KeyspaceId(7), RecordId(1), vec![7; bytes]);
        let lsn = store.commit(&batch).expect("committed");
        store.write(lsn).expect("written");
        store.visible_end()
    }

    /// A store with a history, and the number of checkpoints that passed the commit point.
    fn open(path: &Path, clock: &Clock) -> (Arc<Store>, Arc<AtomicUsize>) {
        let (own, _) = fake("own", Survival::Durable);
        let passed = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&passed);
        let options = StoreOptions {
            clock: clock.clone(),
            log: LogOptions { history_bytes_max: Some(1), ..LogOptions::default() },
            on_commit_passed: Arc::new(move |committed, end| {
                assert!(committed < end);
                counted.fetch_add(1, Ordering::SeqCst);
            }),
            unflushed_bytes_max: SEGMENT_BYTES,
            ..StoreOptions::at_rest()
        };
        (Store::open(path, options, EngineTable::only(own)).expect("opens"), passed)
    }

    #[test]
    fn the_commit_point_follows_readers_until_it_is_held_and_never_goes_back() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (store, _) = open(directory.path(), &Clock::standing(1));
        let first = insert(&store, 10);
        store.set_committed(Lsn(1));
        assert_eq!((store.committed(), store.is_commit_held()), (first, false), "it is not held");
        assert_eq!(store.committed_time().expect("readable").0, store.newest_time());
        store.hold_committed();
        let time = store.newest_time();
        let second = insert(&store, 10);
        let seen = store.committed_snapshot().expect("readable").lsn();
        assert_eq!((store.committed(), seen), (first, first), "a promise is broken");
        assert_eq!(store.committed_time().expect("readable").0, time);
        assert!(store.newest_time() > time);
        // All states from the commit point on may be read later.
        assert_eq!(store.oldest_snapshot(), first);
        // A follower of the history waits, and hears when the commit point has moved.
        store.sync_history().expect("synced");
        assert!(store.durable_history(first).expect("kept").is_none());
        let bell = store.durable_bell().expect("a history is kept");
        let rings = bell.rings();
        store.set_committed(second);
        assert!(bell.rings() > rings);
        assert_eq!(store.durable_history(first).expect("kept").expect("there is more").1, second);
        store.set_committed(first);
        assert_eq!((store.committed(), store.oldest_snapshot()), (second, second));
        store.hold_committed();
        let third = insert(&store, 10);
        assert_eq!(store.committed(), second, "it is held already");
        store.commit_what_is_visible();
        assert_eq!(store.committed(), third);
        store.close().expect("closes");
    }

    #[test]
    fn a_checkpoint_waits_for_the_commit_point_up_to_its_limits() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let clock = Clock::standing(1);
        let (store, passed) = open(directory.path(), &clock);
        insert(&store, 10);
        store.hold_committed();
        let end = insert(&store, 10);
        let checkpoint = |meanwhile: &dyn Fn()| {
            std::thread::scope(|scope| {
                let checkpoint = scope.spawn(|| store.checkpoint());
                // Nothing shows that a thread waits; a sleep that is too short only makes the test weaker.
                std::thread::sleep(5 * LOOK_INTERVAL);
                assert!(!checkpoint.is_finished());
                meanwhile();
                checkpoint.join().expect("no panic").expect("checkpoint");
            });
        };
        checkpoint(&|| store.set_committed(end));
        assert_eq!(passed.load(Ordering::SeqCst), 0);
        insert(&store, 10);
        checkpoint(&|| clock.advance(COMMIT_WAIT_MAX));
        assert_eq!(passed.load(Ordering::SeqCst), 1, "it waits for a minute");
        insert(&store, 10);
        checkpoint(&|| {
            for _ in 0..2 {
                insert(&store, SEGMENT_BYTES as usize - 4096);
            }
        });
        assert_eq!(passed.load(Ordering::SeqCst), 2, "the log has become too long");
        store.checkpoint().expect("it does not wait at all");
        // The history may be one byte long, and yet the log above the commit point stays, over restarts too.
        let first = segment_of(end.0);
        let segments = |store: &Store| match &store.journal {
            Journal::Log(log) => log.segment_numbers(),
            Journal::None(_) => Vec::new(),
        };
        assert_eq!(segments(&store)[0], first, "a promise is broken");
        store.close().expect("it does not wait either");
        drop(store);
        let (store, _) = open(directory.path(), &clock);
        assert_eq!((store.committed(), store.is_commit_held(), segments(&store)[0]), (end, true, first));
        assert!(store.committed_snapshot().is_none(), "versions of that state were not kept");
        store.checkpoint().expect("checkpoint");
        assert_eq!(segments(&store)[0], first);
        store.set_committed(store.visible_end());
        assert_eq!(store.committed_snapshot().map(|state| state.lsn()), Some(store.visible_end()));
        store.checkpoint().expect("checkpoint");
        store.checkpoint().expect("checkpoint");
        assert!(segments(&store)[0] > first, "nothing needs it any more");
        store.close().expect("closes");
    }
}
