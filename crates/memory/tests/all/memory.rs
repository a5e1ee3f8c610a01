//! The memory limit, freeing of memory, and concurrent threads.

use crate::store::{delete, documents, insert, keys, replace, store, used_bytes};
use bunko_bson::ValueRef;
use bunko_store::{Batch, Direction, KeyRange, KeyspaceId, Lsn, RecordId, RecordRange, StorageError, Store};
use std::sync::atomic::{AtomicBool, Ordering};

const RECORDS: KeyspaceId = KeyspaceId(1);
const KEYS: KeyspaceId = KeyspaceId(2);

fn insert_one(store: &Store, record: u64, document: &[u8]) -> Result<Lsn, StorageError> {
    let mut batch = Batch::new();
    insert(&mut batch, RECORDS, KEYS, record, document);
    store.commit(&batch)
}

fn delete_one(store: &Store, record: u64) {
    let mut batch = Batch::new();
    delete(store, &mut batch, RECORDS, KEYS, record);
    store.commit(&batch).expect("a deletion is always admitted");
}

fn status(store: &Store, name: &str) -> i64 {
    let (_, status) = store.engine_status().remove(0);
    match status.as_ref().get(name) {
        Some(ValueRef::Int64(value)) => value,
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn memory_comes_back_as_documents_are_deleted() {
    let store = store(u64::MAX);
    for record in 1..=10_000 {
        insert_one(&store, record, &[1; 500]).expect("room");
    }
    let full = used_bytes(&store);
    for record in (1..=10_000).filter(|record| record % 10 != 0) {
        delete_one(&store, record);
    }
    // Writes alone have forgotten all but the last few versions, without a call of reclaim.
    assert!(used_bytes(&store) < full / 10 + 2000, "{} of {full}", used_bytes(&store));
    store.compact().expect("nothing fails");
    assert_eq!(used_bytes(&store), full / 10);
    assert_eq!((status(&store, "documents"), status(&store, "entriesWithOldVersions")), (1000, 0));
    assert_eq!(documents(store.latest(), RECORDS, RecordRange::ALL, Direction::Forward).len(), 1000);
}

#[test]
fn updates_of_the_same_documents_fill_nothing() {
    let store = store(u64::MAX);
    insert_one(&store, 1, &[1; 500]).expect("room");
    let one = used_bytes(&store);
    for _ in 0..1000 {
        let mut batch = Batch::new();
        replace(&store, &mut batch, RECORDS, 1, &[2; 500]);
        store.commit(&batch).expect("room");
        assert!(used_bytes(&store) < 3 * one);
    }
}

#[test]
fn versions_held_by_a_snapshot_go_when_it_closes() {
    let store = store(u64::MAX);
    for record in 1..=100 {
        insert_one(&store, record, &[1; 500]).expect("room");
    }
    let before = used_bytes(&store);
    let (snapshot, expected) = {
        let snapshot = store.snapshot();
        let expected = documents(&snapshot, RECORDS, RecordRange::ALL, Direction::Forward);
        (snapshot, expected)
    };
    for round in 0..50 {
        for record in 1..=100 {
            let mut batch = Batch::new();
            replace(&store, &mut batch, RECORDS, record, &[round; 500]);
            store.commit(&batch).expect("room");
        }
    }
    // The versions that the snapshot sees and the newest ones are kept; no reader will see those in between.
    let held = used_bytes(&store);
    assert!(held > before && held < 4 * before, "{held} of {before}");
    assert_eq!(documents(&snapshot, RECORDS, RecordRange::ALL, Direction::Forward), expected);
    // The queue has one entry for each record, however many versions the record has.
    assert_eq!(status(&store, "entriesWithOldVersions"), 100);
    drop(snapshot);
    store.compact().expect("nothing fails");
    assert_eq!(used_bytes(&store), before);
}

#[test]
fn a_dropped_collection_goes_once_no_view_sees_it() {
    let store = store(u64::MAX);
    for record in 1..=1000 {
        insert_one(&store, record, &[1; 500]).expect("room");
    }
    let full = used_bytes(&store);
    let snapshot = store.snapshot();
    let mut batch = Batch::new();
    batch.drop_keyspace(RECORDS);
    batch.drop_keyspace(KEYS);
    store.commit(&batch).expect("nothing fails");
    store.compact().expect("nothing fails");
    assert!(documents(store.latest(), RECORDS, RecordRange::ALL, Direction::Forward).is_empty());
    assert_eq!(keys(&snapshot, KEYS, KeyRange::ALL, Direction::Backward).len(), 1000);
    assert_eq!((used_bytes(&store), status(&store, "droppedWaiting")), (full, 2));
    drop(snapshot);
    store.compact().expect("nothing fails");
    assert_eq!((used_bytes(&store), status(&store, "droppedWaiting")), (0, 0));
}

#[test]
fn a_full_engine_refuses_writes_until_something_is_deleted() {
    const LIMIT_BYTES: u64 = 1 << 20;
    for document_bytes in [5, 100, 1000, 30_000] {
        let store = store(LIMIT_BYTES);
        let document = vec![1; document_bytes];
        let mut record = 1;
        let refusal = loop {
            match insert_one(&store, record, &document) {
                Ok(_) => record += 1,
                Err(refusal) => break refusal,
            }
            assert!(used_bytes(&store) <= LIMIT_BYTES);
        };
        let StorageError::OutOfMemory { used_bytes: used, limit_bytes: LIMIT_BYTES } = refusal else {
            panic!("{refusal}");
        };
        assert!(used > LIMIT_BYTES / 2, "{used} bytes used with documents of {document_bytes}");
        // No part of the refused write was kept, and the engine goes on.
        assert_eq!(store.latest().record(RECORDS, RecordId(record), &mut Vec::new()).expect("reads"), None);
        let count = documents(&store.snapshot(), RECORDS, RecordRange::ALL, Direction::Forward).len() as u64;
        assert_eq!(count, record - 1);
        (1..record).step_by(2).for_each(|record| delete_one(&store, record));
        store.compact().expect("nothing fails");
        assert!(used_bytes(&store) <= used / 2 + used / 20);
        insert_one(&store, record, &document).expect("there is room again");
    }
}

#[test]
fn settings_are_refused_by_name() {
    let store = store(u64::MAX);
    let engine = store.engine("memory").expect("is there");
    let settings = bunko_bson::DocumentBuf::new().with("blockCompressor", "zstd");
    assert_eq!(
        engine.check_settings(settings.as_ref()),
        Err("the storage engine 'memory' has no setting 'blockCompressor'".to_owned())
    );
    assert_eq!(engine.check_settings(bunko_bson::DocumentBuf::new().as_ref()), Ok(()));
}

#[test]
fn a_snapshot_stands_still_while_many_threads_write() {
    const THREADS: u64 = 4;
    const RECORDS_EACH: u64 = 500;
    let store = store(u64::MAX);
    for record in 0..THREADS * RECORDS_EACH {
        insert_one(&store, record + 1, &record.to_le_bytes()).expect("room");
    }
    let writes_go_on = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let store = &store;
                scope.spawn(move || {
                    for round in 0..8_u64 {
                        for own in 0..RECORDS_EACH {
                            let record = own * THREADS + thread + 1;
                            let mut batch = Batch::new();
                            // Every other round deletes half of the thread's records, and the next round inserts them
                            // again.
                            match (round % 2, own % 2) {
                                (0, 0) => delete(store, &mut batch, RECORDS, KEYS, record),
                                (1, 0) => insert(&mut batch, RECORDS, KEYS, record, &round.to_le_bytes()),
                                _ => replace(store, &mut batch, RECORDS, record, &round.to_le_bytes()),
                            }
                            store.commit(&batch).expect("room");
                        }
                    }
                })
            })
            .collect();
        let scanner = scope.spawn(|| {
            let mut scans = 0;
            while writes_go_on.load(Ordering::Relaxed) || scans < 2 {
                let snapshot = store.snapshot();
                let found = documents(&snapshot, RECORDS, RecordRange::ALL, Direction::Forward);
                // In one state each record has its key, and each key its record.
                let by_key = keys(&snapshot, KEYS, KeyRange::ALL, Direction::Forward);
                let ids: Vec<u64> = found.iter().map(|(record, _)| *record).collect();
                assert_eq!(by_key.into_iter().map(|(_, record)| record).collect::<Vec<_>>(), ids);
                let mut again = documents(&snapshot, RECORDS, RecordRange::ALL, Direction::Backward);
                again.reverse();
                assert_eq!(again, found);
                scans += 1;
            }
        });
        let outcomes: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        writes_go_on.store(false, Ordering::Relaxed);
        assert!(outcomes.iter().all(Result::is_ok));
        scanner.join().expect("no panic");
    });
    store.compact().expect("nothing fails");
    let all = documents(store.latest(), RECORDS, RecordRange::ALL, Direction::Forward);
    assert_eq!(all.len() as u64, THREADS * RECORDS_EACH);
    assert!(all.iter().all(|(_, document)| **document == 7_u64.to_le_bytes()));
    assert_eq!((status(&store, "entriesWithOldVersions"), status(&store, "keys")), (0, all.len() as i64));
}

/// A thread that writes another record may have taken this one from the queue of garbage, and one that reclaims may have
/// pinned the oldest state.
#[test]
fn versions_that_another_thread_is_forgetting_are_not_kept_for_snapshots() {
    const DOCUMENT_BYTES: usize = 1 << 20;
    let store = store(u64::MAX);
    let large = vec![1; DOCUMENT_BYTES];
    insert_one(&store, 1, &large).expect("room");
    insert_one(&store, 2, &[1]).expect("room");
    let replace_one = |record, document: &[u8]| {
        let mut batch = Batch::new();
        replace(&store, &mut batch, RECORDS, record, document);
        store.commit(&batch).expect("room");
    };
    let ends = AtomicBool::new(false);
    let until_the_end = |work: &dyn Fn()| {
        while !ends.load(Ordering::Relaxed) {
            work();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| until_the_end(&|| replace_one(2, &[2])));
        scope.spawn(|| until_the_end(&|| store.reclaim_all(|| true).expect("nothing fails")));
        let mut kept_bytes = 0;
        for _ in 0..60 {
            let older = [(); 8].map(|()| {
                let snapshot = store.snapshot();
                replace_one(1, &large);
                snapshot
            });
            let newest = store.snapshot();
            replace_one(1, &large);
            drop(older);
            let kept: u64 = store.kept_for_snapshots().iter().map(|(_, kept)| kept.bytes).sum();
            kept_bytes = kept_bytes.max(kept);
            drop(newest);
        }
        ends.store(true, Ordering::Relaxed);
        assert!(kept_bytes < 2 * DOCUMENT_BYTES as u64, "{kept_bytes} bytes are kept");
    });
}
