//! An operation is charged for the memory that it holds, but not for blocks that it reads into caches, nor for memory
//! that it has freed.

#[path = "all/opened/mod.rs"]
mod opened;

use bunko_store::{Batch, Direction, KeyRange, KeyspaceId, RecordId, RecordRange, Store, View};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

// A program has one allocator for all its tests, so this file is a program of its own.
#[global_allocator]
static ALLOCATOR: bunko_heap::Counting<std::alloc::System> = bunko_heap::Counting(std::alloc::System);

const RECORDS: KeyspaceId = KeyspaceId(5);
const INDEX: KeyspaceId = KeyspaceId(6);
const DOCUMENTS: u64 = 5_000;
/// Less than the blocks of one index, and less than a few walks take.
const DRIFT_BYTES_MAX: u64 = 4_000;

fn key(number: u64) -> Vec<u8> {
    format!("a key that is too long to stand in the place of a pointer {number:08}").into_bytes()
}

fn open(path: &Path) -> Arc<Store> {
    opened::open(path, |what, error| panic!("{what}: {error}")).expect("opens")
}

/// A store with everything in tables and empty caches.
fn filled(path: &Path) -> Arc<Store> {
    let store = open(path);
    for part in 0..10 {
        let mut batch = Batch::new();
        for number in part * DOCUMENTS / 10..(part + 1) * DOCUMENTS / 10 {
            batch.insert_record(RECORDS, RecordId(number), vec![number as u8; 100]);
            batch.put_key(INDEX, &key(number), RecordId(number));
        }
        let lsn = store.commit(&batch).expect("committed");
        store.write(lsn).expect("written");
    }
    store.checkpoint().expect("checkpoint");
    store.close().expect("closes");
    drop(store);
    open(path)
}

/// Absolute change of this thread's count during `work`.
fn drift(mut work: impl FnMut()) -> u64 {
    let before = bunko_heap::taken_bytes();
    work();
    before.abs_diff(bunko_heap::taken_bytes())
}

#[test]
fn reading_is_counted_for_nothing_that_stays() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = filled(directory.path());
    let view = store.snapshot();
    let mut document = Vec::with_capacity(200);
    let lookups = drift(|| {
        for number in (0..DOCUMENTS).step_by(7) {
            assert_eq!(view.key(INDEX, &key(number)).expect("readable"), Some(RecordId(number)));
            view.record(RECORDS, RecordId(number), &mut document).expect("readable").expect("there");
        }
    });
    assert!(lookups < DRIFT_BYTES_MAX, "lookups: {lookups} bytes");
    for direction in [Direction::Forward, Direction::Backward] {
        let walks = drift(|| {
            for number in (0..DOCUMENTS).step_by(11) {
                let bound = || Bound::Included(key(number));
                let mut cursor = view.keys(INDEX, KeyRange { start: bound(), end: bound() }, direction);
                assert!(cursor.next().expect("readable").is_some());
            }
        });
        assert!(walks < DRIFT_BYTES_MAX, "short walks, {direction:?}: {walks} bytes");
        let scan = drift(|| {
            let mut keys = view.keys(INDEX, KeyRange { start: Bound::Unbounded, end: Bound::Unbounded }, direction);
            while keys.next().expect("readable").is_some() {}
            let mut records = view.records(RECORDS, RecordRange::ALL, direction);
            while records.next().expect("readable").is_some() {}
        });
        assert!(scan < DRIFT_BYTES_MAX, "a scan, {direction:?}: {scan} bytes");
    }
}
