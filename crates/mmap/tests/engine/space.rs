//! Growth of the file, space of keyspaces, and space that is given back.

use crate::*;
use bunko_bson::{DocumentBuf, ValueRef};

fn status(store: &Store) -> DocumentBuf {
    store.engine_status().remove(0).1
}

fn gauge(store: &Store, name: &str) -> u64 {
    match status(store).as_ref().get(name) {
        Some(ValueRef::Int64(number)) => number as u64,
        other => panic!("{name}: {other:?}"),
    }
}

fn insert_large(store: &Store, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut batch = Batch::new();
        batch.insert_record(RECORDS, RecordId(number), vec![number as u8; 1 << 20]);
        commit(store, &batch);
    }
}

#[test]
fn the_file_grows_ahead_in_steps_and_space_comes_back() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    insert(&store, 1..101);
    assert!(store.statistics().unflushed_bytes > 100 * 150);
    store.checkpoint().expect("checkpoint");
    assert_eq!(store.statistics().unflushed_bytes, 0);
    assert_eq!((gauge(&store, "fileBytes"), gauge(&store, "growthSteps")), (64 << 20, 1));
    insert_large(&store, 101..181);
    store.checkpoint().expect("checkpoint");
    assert_eq!((gauge(&store, "fileBytes"), gauge(&store, "growthSteps")), (256 << 20, 3));

    let space = store.space(&[RECORDS, INDEX, KeyspaceId(99)]);
    assert!((80 << 20..84 << 20).contains(&space[0].used_bytes), "{space:?}");
    assert_eq!((space[1].used_bytes % 4096, space[2].used_bytes), (0, 0));
    assert!((4096..64 << 10).contains(&space[1].used_bytes), "{space:?}");

    let mut batch = Batch::new();
    batch.drop_keyspace(RECORDS);
    commit(&store, &batch);
    let snapshot = store.snapshot();
    store.checkpoint().expect("checkpoint");
    let allocated_bytes = gauge(&store, "allocatedBytes");
    assert!(gauge(&store, "freePagesBytes") > 80 << 20);
    // The view's pages stay even if a caller asks for space.
    store.compact().expect("compacts");
    assert_eq!(records(&snapshot, RecordRange::ALL, Direction::Forward).expect("readable").len(), 180);
    assert!(gauge(&store, "allocatedBytes") > 80 << 20);
    drop(snapshot);
    store.compact().expect("compacts");
    assert!(gauge(&store, "allocatedBytes") + (80 << 20) < allocated_bytes + (1 << 20), "{:?}", status(&store));
    assert_eq!(store.statistics().engines_bytes, gauge(&store, "allocatedBytes"));
    assert_eq!(keys(&store.snapshot(), KeyRange::ALL, Direction::Forward).expect("readable").len(), 100);

    // Space that was given back is used again, and everything written there survives.
    insert_large(&store, 201..251);
    store.checkpoint().expect("checkpoint");
    assert_eq!(gauge(&store, "fileBytes"), 256 << 20);
    store.close().expect("closes");
    drop(store);
    let store = open(directory.path()).expect("opens");
    let found = records(&store.snapshot(), RecordRange::ALL, Direction::Backward).expect("readable");
    assert_eq!(found.len(), 50);
    assert!(
        found.iter().all(|(number, bytes)| bytes.len() == 1 << 20 && bytes.iter().all(|byte| *byte == *number as u8))
    );
}

#[test]
fn a_large_checkpoint_takes_several_transactions() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    let before = gauge(&store, "transactions");
    insert_large(&store, 1..151);
    store.checkpoint().expect("checkpoint");
    assert_eq!(gauge(&store, "transactions") - before, 3);
    assert_eq!(gauge(&store, "checkpoints"), 1);
    let largest = vec![3; (16 << 20) + (16 << 10)];
    let mut batch = Batch::new();
    batch.insert_record(RECORDS, RecordId(1000), largest.as_slice());
    commit(&store, &batch);
    store.checkpoint().expect("checkpoint");
    let mut bytes = Vec::new();
    store.latest().record(RECORDS, RecordId(1000), &mut bytes).expect("readable").expect("present");
    assert!(bytes == largest);
}

#[test]
fn thousands_of_keyspaces_are_one_checkpoint() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    let all = 10..3010_u32;
    for keyspace in all.clone() {
        let mut batch = Batch::new();
        batch.insert_record(KeyspaceId(keyspace), RecordId(1), document(u64::from(keyspace)));
        commit(&store, &batch);
    }
    store.close().expect("closes");
    drop(store);
    let store = open(directory.path()).expect("opens");
    let mut bytes = Vec::new();
    for keyspace in all.clone() {
        store.latest().record(KeyspaceId(keyspace), RecordId(1), &mut bytes).expect("readable").expect("present");
        assert_eq!(bytes, document(u64::from(keyspace)));
    }
    for keyspace in all.clone().step_by(2) {
        let mut batch = Batch::new();
        batch.drop_keyspace(KeyspaceId(keyspace));
        commit(&store, &batch);
    }
    store.checkpoint().expect("checkpoint");
    for keyspace in all {
        let found = store.latest().record(KeyspaceId(keyspace), RecordId(1), &mut bytes).expect("readable");
        assert_eq!(found.is_some(), keyspace % 2 == 1, "{keyspace}");
    }
}

/// Inserts until the engine refuses. Returns the number of inserted records.
fn fill(store: &Store, first: u64, bytes: usize) -> u64 {
    for number in first.. {
        let mut batch = Batch::new();
        batch.insert_record(RECORDS, RecordId(number), vec![number as u8; bytes]);
        match store.commit(&batch) {
            Ok(lsn) => store.write(lsn).expect("written"),
            Err(StorageError::MapFull { path, map_bytes }) => {
                assert!(path.ends_with("mmap/data.mdb") && map_bytes == SMALL_MAP_BYTES);
                return number - first;
            }
            Err(error) => panic!("{error}"),
        }
        // Everything that was acknowledged fits.
        if number % ((4 << 20) / bytes as u64) == 0 {
            store.checkpoint().expect("checkpoint");
        }
    }
    unreachable!("numbers do not end")
}

fn open_small(path: &Path) -> Arc<Store> {
    let options = StoreOptions { unflushed_bytes_max: 1 << 30, ..StoreOptions::at_rest() };
    let engine = bunko_mmap::kind(MmapOptions { map_bytes: SMALL_MAP_BYTES });
    Store::open(path, options, EngineTable::only(engine)).expect("opens")
}

const SMALL_MAP_BYTES: u64 = 64 << 20;

#[test]
fn batches_that_do_not_fit_into_the_map_are_refused_before_they_are_kept() {
    for bytes in [2 << 20, 100 << 10, 1000] {
        let directory = tempfile::tempdir().expect("temporary directory");
        let store = open_small(directory.path());
        let count = fill(&store, 1, bytes);
        assert!(count * bytes as u64 > SMALL_MAP_BYTES / 4, "{count} of {bytes} bytes");
        store.checkpoint().expect("what was acknowledged fits");
        store.close().expect("closes");
        drop(store);
        let store = open_small(directory.path());
        let found = records(&store.snapshot(), RecordRange::ALL, Direction::Forward).expect("readable");
        assert_eq!(found.len() as u64, count);
        // Deletions are not refused, and make room.
        for (number, _) in found {
            let mut batch = Batch::new();
            let location = store.latest().record(RECORDS, RecordId(number), &mut Vec::new()).expect("readable");
            batch.delete_record(RECORDS, RecordId(number), location.expect("present"));
            commit(&store, &batch);
        }
        store.checkpoint().expect("checkpoint");
        store.compact().expect("compacts");
        let small = bytes.min(100 << 10);
        assert!(fill(&store, 1 << 20, small) * small as u64 > SMALL_MAP_BYTES / 8, "after {bytes}");
        store.checkpoint().expect("checkpoint");
        store.close().expect("closes");
    }
}
