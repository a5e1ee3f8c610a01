//! The cache of the log: it stays within its limit, drops segments that leave the log, and never returns wrong bytes.

use crate::opened;
use bunko_bson::ValueRef;
use bunko_store::{Batch, KeyspaceId, RecordId, Store};
use std::path::Path;
use std::sync::Arc;

const RECORDS: KeyspaceId = KeyspaceId(5);
const OTHERS: KeyspaceId = KeyspaceId(6);
/// More documents than the tests' cache keeps of the log.
const DOCUMENTS: u64 = 10_000;
/// A twentieth of that cache.
const KEPT_BYTES_MAX: i64 = (8 << 20) / 20;

fn open(path: &Path) -> Arc<Store> {
    opened::open(path, |what, error| panic!("{what}: {error}")).expect("opens")
}

fn document(number: u64) -> Vec<u8> {
    format!("document {number} ").repeat(5 + number as usize % 7).into_bytes()
}

fn insert(store: &Store, numbers: std::ops::Range<u64>) {
    let mut batch = Batch::new();
    for number in numbers {
        batch.insert_record(RECORDS, RecordId(number), document(number));
    }
    let lsn = store.commit(&batch).expect("committed");
    store.write(lsn).expect("written");
}

/// Makes the log go on in another segment, so that documents in the full one can be moved.
fn fill_segment(store: &Store) {
    for number in 0..6 {
        let mut batch = Batch::new();
        batch.insert_record(OTHERS, RecordId(number), vec![b' '; 12 << 20]);
        let lsn = store.commit(&batch).expect("committed");
        store.write(lsn).expect("written");
    }
}

/// Reads documents one by one and together, and compares them with the written ones.
fn read(store: &Store, numbers: impl Iterator<Item = u64> + Clone) {
    let view = store.latest();
    let mut into = Vec::new();
    for number in numbers.clone() {
        view.record(RECORDS, RecordId(number), &mut into).expect("readable").expect("there");
        assert_eq!(into, document(number));
    }
    let records: Vec<RecordId> = numbers.map(RecordId).collect();
    let mut seen = vec![false; records.len()];
    let take = &mut |number: usize, _, found: &[u8]| {
        assert_eq!(found, document(records[number].0));
        seen[number] = true;
    };
    assert_eq!(view.some_records(RECORDS, &records, usize::MAX, take).expect("readable"), records.len());
    assert!(seen.iter().all(|seen| *seen));
}

fn kept_bytes(store: &Store) -> i64 {
    let status = store.engine_status().remove(0).1;
    let cache = status.as_ref().get("cache").and_then(ValueRef::as_document).expect("there");
    match cache.get("logBytes") {
        Some(ValueRef::Int64(bytes)) => bytes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_log_is_kept_within_a_bound_until_it_is_moved() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path());
    insert(&store, 0..DOCUMENTS);
    let counted = |store: &Store| {
        read(store, (0..DOCUMENTS).step_by(400));
        kept_bytes(store)
    };
    let before = counted(&store);
    for _ in 0..20 {
        read(&store, (0..DOCUMENTS).step_by(400));
    }
    let some = kept_bytes(&store);
    assert!(before < some && some <= KEPT_BYTES_MAX, "{before}, then {some}");
    for _ in 0..10 {
        read(&store, 0..DOCUMENTS);
    }
    let most = kept_bytes(&store);
    assert!(most <= KEPT_BYTES_MAX, "{most}");
    // Reads after the last full stretch work although that part has not been completely written.
    insert(&store, DOCUMENTS..DOCUMENTS + 3);
    for _ in 0..20 {
        read(&store, DOCUMENTS - 3..DOCUMENTS + 3);
    }
    fill_segment(&store);
    store.compact().expect("compacts");
    read(&store, 0..DOCUMENTS + 3);
    assert_eq!(kept_bytes(&store), 0, "all documents are in extents");
}

#[test]
fn readers_and_writers_agree_while_it_changes() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path());
    insert(&store, 0..DOCUMENTS / 2);
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..30 {
                    read(store, (reader + round..DOCUMENTS / 2).step_by(5 + round as usize));
                }
            });
        }
        for part in DOCUMENTS / 200..DOCUMENTS / 100 {
            insert(&store, part * 100..(part + 1) * 100);
        }
        fill_segment(&store);
        store.compact().expect("compacts");
        insert(&store, DOCUMENTS..DOCUMENTS + 100);
    });
    read(&store, 0..DOCUMENTS + 100);
    assert!(kept_bytes(&store) <= KEPT_BYTES_MAX);
}
