//! The commit point, and the work that waits for it.

use crate::engines::fake::fake;
use crate::journal::Journal;
use crate::log::segment_of;
use crate::manifest::Manifest;
use crate::membership::{COMMIT_WAIT_MAX, LOOK_INTERVAL, ROOM_WAIT_MAX};
use crate::{Batch, Clock, EngineTable, KeyspaceId, LogOptions, RecordId, SEGMENT_BYTES, StoreOptions, Survival};
use crate::{Lsn, StorageError, Store};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::atomic::{AtomicBool, AtomicUsize};

fn insert(store: &Store, bytes: usize) -> Lsn {
    let mut batch = Batch::new();
    batch.insert_record(KeyspaceId(7), RecordId(1), vec![7; bytes]);
    let lsn = store.commit(&batch).expect("committed");
    store.write(lsn).expect("written");
    store.visible_end()
}

/// Options of a store with a history, and the number of checkpoints that passed the commit point.
fn options(clock: &Clock) -> (StoreOptions, Arc<AtomicUsize>) {
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
    (options, passed)
}

/// A standalone store, and the number of checkpoints that passed the commit point.
fn open(path: &Path, clock: &Clock) -> (Arc<Store>, Arc<AtomicUsize>) {
    let (own, _) = fake("own", Survival::Durable);
    let (options, passed) = options(clock);
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
    assert_eq!(store.oldest_view(), first);
    // A follower of the history waits, and hears when the commit point has moved.
    store.sync_history().expect("synced");
    assert!(store.durable_history(first).expect("kept").is_none());
    let bell = store.durable_bell().expect("a history is kept");
    let rings = bell.rings();
    store.set_committed(second);
    assert!(bell.rings() > rings);
    assert_eq!(store.durable_history(first).expect("kept").expect("there is more").1, second);
    store.set_committed(first);
    assert_eq!((store.committed(), store.oldest_view()), (second, second));
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

/// As [`open`], as a member that knows of no commit point.
fn open_member(path: &Path, clock: &Clock) -> (Arc<Store>, Arc<AtomicUsize>) {
    let (own, _) = fake("own", Survival::Durable);
    let (options, passed) = options(clock);
    (Store::open_member(path, options, EngineTable::only(own), Lsn(0)).expect("opens"), passed)
}

fn checkpointed(path: &Path) -> Lsn {
    Manifest::read(path).expect("readable").expect("present").watermark
}

/// Does something while so much time passes that no checkpoint waits any longer.
fn beside_time(clock: &Clock, work: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                clock.advance(COMMIT_WAIT_MAX);
                std::thread::sleep(LOOK_INTERVAL);
            }
        });
        work();
        is_over.store(true, Ordering::SeqCst);
    });
}

#[test]
fn only_a_primary_that_goes_on_passes_the_commit_point() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let clock = Clock::standing(1);
    let (store, passed) = open_member(directory.path(), &clock);
    store.begin_term(1).expect("begins");
    let committed = insert(&store, 10);
    store.set_committed(committed);
    let end = insert(&store, 10);
    let stays = |what: &str| {
        assert_eq!(passed.load(Ordering::SeqCst), 0, "a promise is broken: {what}");
        assert!(checkpointed(directory.path()) <= committed, "a promise is broken: {what}");
        assert_eq!(store.places().synced, end, "{what}");
    };
    std::thread::scope(|scope| {
        let checkpoint = scope.spawn(|| store.checkpoint());
        // Nothing shows that a thread waits; a sleep that is too short only makes the test weaker.
        std::thread::sleep(5 * LOOK_INTERVAL);
        assert!(!checkpoint.is_finished());
        store.step_down();
        beside_time(&clock, || checkpoint.join().expect("no panic").expect("given up"));
    });
    stays("a checkpoint that waited while the member stepped down");
    beside_time(&clock, || store.checkpoint().expect("left out"));
    stays("a secondary's");
    store.begin_term(2).expect("begins");
    let end = insert(&store, 10);
    beside_time(&clock, || store.close().expect("closes"));
    assert!(checkpointed(directory.path()) <= committed, "a promise is broken: the last one of a process");
    drop(store);
    let (store, _) = open_member(directory.path(), &clock);
    assert!(store.visible_end() <= committed, "a promise is broken: the rest waits for the commit point");
    assert_eq!(store.places().end, end);
    store.set_committed(end);
    store.apply_committed().expect("applied");
    store.checkpoint().expect("nothing to wait for");
    assert_eq!(checkpointed(directory.path()), end);
    store.close().expect("closes");
}

#[test]
fn a_write_that_waits_for_room_does_not_wait_a_minute_for_the_commit_point() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let clock = Clock::standing(1);
    let (own, told) = fake("own", Survival::Durable);
    let (options, passed) = options(&clock);
    let store = Store::open_member(directory.path(), options, EngineTable::only(own), Lsn(0)).expect("opens");
    store.begin_term(1).expect("begins");
    *told.unflushed_bytes.lock() = 2 << 20;
    *told.is_map_full.lock() = true;
    let mut batch = Batch::new();
    batch.insert_record(KeyspaceId(7), RecordId(1), vec![7; 10]);
    std::thread::scope(|scope| {
        // Another checkpoint waits already.
        let other = scope.spawn(|| store.checkpoint());
        while store.checkpointer.running.try_lock().is_some() {
            std::thread::yield_now();
        }
        let write = scope.spawn(|| store.commit(&batch));
        while passed.load(Ordering::SeqCst) < 2 {
            clock.advance(ROOM_WAIT_MAX / 10);
            std::thread::sleep(LOOK_INTERVAL);
        }
        other.join().expect("no panic").expect("checkpoint");
        let refused = write.join().expect("no panic");
        assert!(matches!(refused, Err(StorageError::MapFull { .. })), "{refused:?}");
    });
    assert!(clock.since_1970() < COMMIT_WAIT_MAX, "a promise is broken");
    *told.unflushed_bytes.lock() = 0;
    store.close().expect("closes");
}
