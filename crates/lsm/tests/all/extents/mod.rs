//! Documents in extents are found, space comes back, and nothing is lost meanwhile.

mod drops;
mod staged;

use crate::opened;
use bunko_store::{
    Batch, Direction, KeyspaceId, Location, Presence, RecordId, RecordRange, Snapshot, StorageError, Store, View,
};
use bunko_testkit::directory::crash_copy;
use bunko_testkit::patience::wait_until;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const RECORDS: KeyspaceId = KeyspaceId(5);
const IDS: KeyspaceId = KeyspaceId(6);
const OTHERS: KeyspaceId = KeyspaceId(7);
/// Maximum number of crashes before the first extent.
const CRASHES: usize = 3;

fn open(path: &Path) -> Result<Arc<Store>, StorageError> {
    opened::open(path, |what, error| panic!("{what}: {error}"))
}

/// 100,000 bytes that compress well but differ by number and version.
fn document(number: u64, version: u64) -> Vec<u8> {
    let mut document = format!("document {number} version {version} ").into_bytes();
    document.resize(100_000, b' ');
    document
}

fn put(store: &Store, keyspace: KeyspaceId, number: u64, version: u64) {
    let mut batch = Batch::new();
    let mut old = Vec::new();
    match store.latest().record(keyspace, RecordId(number), &mut old).expect("readable") {
        Some(replaced) => batch.replace_record(keyspace, RecordId(number), document(number, version), replaced),
        None => batch.insert_record(keyspace, RecordId(number), document(number, version)),
    }
    if keyspace == RECORDS {
        let presence = if old.is_empty() { Presence::New } else { Presence::Moved };
        batch.put_primary_key(IDS, &number.to_be_bytes(), RecordId(number), presence);
    }
    let lsn = store.commit(&batch).expect("committed");
    store.write(lsn).expect("written");
}

fn delete(store: &Store, number: u64) {
    let mut batch = Batch::new();
    let location = location(store, number).expect("there");
    batch.delete_record(RECORDS, RecordId(number), location);
    batch.delete_key(IDS, &number.to_be_bytes());
    let lsn = store.commit(&batch).expect("committed");
    store.write(lsn).expect("written");
}

fn location(store: &Store, number: u64) -> Option<Location> {
    store.latest().record(RECORDS, RecordId(number), &mut Vec::new()).expect("readable")
}

/// Versions by number; every way of reading must show them.
fn versions(view: &dyn View, keyspace: KeyspaceId) -> BTreeMap<u64, u64> {
    let version_of = |bytes: &[u8]| -> u64 {
        let text = String::from_utf8_lossy(&bytes[..60]).into_owned();
        text.split(' ').nth(3).and_then(|version| version.parse().ok()).expect("a document of ours")
    };
    let mut seen = BTreeMap::new();
    let mut cursor = view.records(keyspace, RecordRange::ALL, Direction::Forward);
    while let Some((record, _, bytes)) = cursor.next().expect("readable") {
        let version = version_of(bytes);
        assert_eq!(bytes, document(record.0, version));
        seen.insert(record.0, version);
    }
    if keyspace == RECORDS {
        let mut into = Vec::new();
        for (number, version) in &seen {
            let found = view.record_by_primary_key(IDS, RECORDS, &number.to_be_bytes(), &mut into).expect("readable");
            assert_eq!(found.map(|(record, _)| record), Some(RecordId(*number)));
            assert_eq!(version_of(&into), *version);
        }
    }
    seen
}

fn latest(store: &Store) -> BTreeMap<u64, u64> {
    let snapshot: Snapshot = store.snapshot();
    assert_eq!(versions(store.latest(), RECORDS), versions(&snapshot, RECORDS));
    versions(&snapshot, RECORDS)
}

fn extents(path: &Path) -> Vec<std::path::PathBuf> {
    // The directory is made with the first extent.
    let entries = std::fs::read_dir(path.join("extents")).into_iter().flatten();
    entries.map(|entry| entry.expect("readable").path()).collect()
}

fn extent_bytes(path: &Path) -> u64 {
    extents(path).iter().map(|path| path.metadata().expect("there").len()).sum()
}

#[test]
fn recent_documents_are_moved_only_for_an_engine_at_rest() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    (1..=1000).for_each(|number| put(&store, RECORDS, number, 0));
    // The reclaiming thread looks for work every second. A look that comes late only makes the test weaker.
    std::thread::sleep(Duration::from_millis(2500));
    assert!(extents(directory.path()).is_empty());
    store.flush().expect("flushes");
    wait_until("there is an extent", || !extents(directory.path()).is_empty());
    assert_eq!(latest(&store), (1..=1000).map(|number| (number, 0)).collect());
    store.close().expect("closes");
}

#[test]
fn documents_of_full_segments_move_and_every_reader_finds_them() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    (1..=2000).for_each(|number| put(&store, RECORDS, number, 0));
    let before = store.snapshot();
    (1..=2000).step_by(3).for_each(|number| put(&store, RECORDS, number, 1));
    let first: BTreeMap<u64, u64> = (1..=2000).map(|number| (number, 0)).collect();
    let second: BTreeMap<u64, u64> = (1..=2000).map(|number| (number, u64::from(number % 3 == 1))).collect();
    store.compact().expect("compacts");
    assert!(!extents(directory.path()).is_empty());
    assert!(store.statistics().log.segments <= 3, "{:?}", store.statistics().log);
    assert_eq!(versions(&before, RECORDS), first);
    assert_eq!(latest(&store), second);
    drop(before);
    store.compact().expect("compacts");
    assert_eq!(latest(&store), second);
    let crashed = crash_copy(directory.path());
    assert_eq!(latest(&open(crashed.path()).expect("recovers")), second);
    store.close().expect("closes");
    drop(store);
    assert_eq!(latest(&open(directory.path()).expect("opens")), second);
}

#[test]
fn space_comes_back_after_deletes_and_drops_without_a_restart() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    for number in 1..=1500 {
        put(&store, RECORDS, number, 0);
        put(&store, OTHERS, number, 0);
    }
    store.compact().expect("compacts");
    let full = extent_bytes(directory.path());
    let [records, ids, others] = store.space(&[RECORDS, IDS, OTHERS]).try_into().expect("one each");
    assert!(records.used_bytes > 0 && ids.used_bytes > 0 && records.free_bytes == 0, "{records:?} {ids:?}");
    assert!(others.used_bytes.abs_diff(records.used_bytes) < records.used_bytes / 20);
    (1..=1500).filter(|number| number % 10 != 0).for_each(|number| delete(&store, number));
    store.checkpoint().expect("checkpoint");
    let deleted = store.space(&[RECORDS])[0];
    assert!(deleted.free_bytes > 5 * deleted.used_bytes, "{deleted:?}");
    store.compact().expect("compacts");
    let thinned = extent_bytes(directory.path());
    assert!(thinned * 10 < full * 6, "{thinned} of {full} bytes");
    let mut batch = Batch::new();
    batch.drop_keyspace(OTHERS);
    store.commit(&batch).expect("committed");
    store.compact().expect("compacts");
    let dropped = extent_bytes(directory.path());
    assert!(dropped * 10 < full, "{dropped} of {full} bytes");
    assert_eq!(latest(&store).len(), 150);
    assert_eq!(store.space(&[OTHERS])[0].used_bytes, 0);
    drop(store);
    assert_eq!(latest(&open(directory.path()).expect("opens")).len(), 150);
}

#[test]
fn a_crash_between_move_and_checkpoint_loses_nothing() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    (1..=1500).for_each(|number| put(&store, RECORDS, number, 0));
    store.checkpoint().expect("checkpoint");
    // The reclaiming thread wakes by itself.
    let mut crashes = 0..CRASHES;
    wait_until("there is an extent", || {
        if crashes.next().is_some() {
            let crashed = crash_copy(directory.path());
            assert_eq!(latest(&open(crashed.path()).expect("recovers")).len(), 1500);
        }
        !extents(directory.path()).is_empty()
    });
    (1..=1500).for_each(|number| put(&store, RECORDS, number, 1));
    for _ in 0..3 {
        // The crash may come at any moment; this one is as good as another.
        std::thread::sleep(Duration::from_millis(300));
        let crashed = crash_copy(directory.path());
        let recovered = open(crashed.path()).expect("recovers");
        assert!(latest(&recovered).values().all(|version| *version == 1));
        recovered.compact().expect("compacts");
        assert_eq!(latest(&recovered).len(), 1500);
    }
}

#[test]
fn readers_and_writers_go_on_while_documents_move() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    (1..=600).for_each(|number| put(&store, RECORDS, number, 0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for version in 1..=6 {
                (1..=600).for_each(|number| put(&store, RECORDS, number, version));
            }
        });
        let mut into = Vec::new();
        while !writer.is_finished() {
            for number in (1..=600).step_by(7) {
                let key = u64::to_be_bytes(number);
                store.latest().record_by_primary_key(IDS, RECORDS, &key, &mut into).expect("readable").expect("there");
            }
            assert_eq!(versions(&store.snapshot(), RECORDS).len(), 600);
            store.checkpoint().expect("checkpoint");
        }
    });
    store.compact().expect("compacts");
    assert!(latest(&store).values().all(|version| *version == 6));
}

#[test]
fn damage_is_named_and_not_served() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    (1..=1000).for_each(|number| put(&store, RECORDS, number, 0));
    store.compact().expect("compacts");
    store.close().expect("closes");
    drop(store);
    let path = extents(directory.path()).pop().expect("an extent");
    let whole = std::fs::read(&path).expect("readable");
    let mut flipped = whole.clone();
    flipped[5000] ^= 1;
    std::fs::write(&path, &flipped).expect("written");
    let store = open(directory.path()).expect("opens: blocks are verified when they are read");
    let outcome = {
        let snapshot = store.snapshot();
        let mut cursor = snapshot.records(RECORDS, RecordRange::ALL, Direction::Forward);
        loop {
            match cursor.next() {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        }
    };
    assert!(matches!(outcome, Err(StorageError::Corrupt { file, .. }) if file == path));
    drop(store);
    std::fs::remove_file(&path).expect("removed");
    let error = open(directory.path()).err().expect("refused").to_string();
    assert!(error.contains("missing, though the manifest names it"), "{error}");
    std::fs::write(&path, &whole).expect("written");
    assert_eq!(latest(&open(directory.path()).expect("opens")).len(), 1000);
}
