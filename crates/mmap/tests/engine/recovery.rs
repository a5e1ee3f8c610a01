//! Data that survives closing and crashing, and directories that are refused.

use crate::*;
use bunko_bson::DocumentBuf;
use bunko_store::{Location, Opening};

fn numbers(store: &Store) -> Vec<u64> {
    let snapshot = store.snapshot();
    let forward = records(&snapshot, RecordRange::ALL, Direction::Forward).expect("readable");
    assert!(forward.iter().all(|(number, bytes)| *bytes == document(*number)));
    forward.into_iter().map(|(number, _)| number).collect()
}

#[test]
fn what_was_written_is_there_after_a_crash_and_after_a_close() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    insert(&store, 1..101);
    store.checkpoint().expect("checkpoint");
    insert(&store, 101..201);
    let all: Vec<u64> = (1..201).collect();
    let crashed = crash_copy(directory.path());
    let recovered = open(crashed.path()).expect("recovers");
    assert_eq!(numbers(&recovered), all);
    assert_eq!(recovered.entries(RECORDS), 200);
    drop(recovered);
    store.close().expect("closes");
    drop(store);
    let reopened = open(directory.path()).expect("opens again");
    assert_eq!(numbers(&reopened), all);
    let snapshot = reopened.snapshot();
    assert_eq!(snapshot.key(INDEX, b"key00000150").expect("readable"), Some(RecordId(150)));
    assert_eq!(snapshot.key(INDEX, b"key00000999").expect("readable"), None);
}

#[test]
fn a_data_file_ahead_of_the_manifest_is_replayed_over() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    insert(&store, 1..51);
    store.checkpoint().expect("checkpoint");
    let before = crash_copy(directory.path());
    insert(&store, 51..101);
    let mut batch = Batch::new();
    batch.delete_record(RECORDS, RecordId(7), Location { position: 0, length: 0, checksum: 0 });
    commit(&store, &batch);
    store.checkpoint().expect("checkpoint");
    // The crash comes between the data file's commit and the manifest.
    let after = crash_copy(directory.path());
    std::fs::copy(before.path().join("manifest.bson"), after.path().join("manifest.bson")).expect("copied");
    let recovered = open(after.path()).expect("recovers");
    assert_eq!(numbers(&recovered), (1..101).filter(|number| *number != 7).collect::<Vec<_>>());
    // An old data file under a new manifest is refused.
    drop(recovered);
    std::fs::copy(data_file(before.path()), data_file(after.path())).expect("copied");
    std::fs::copy(directory.path().join("manifest.bson"), after.path().join("manifest.bson")).expect("copied");
    assert_refused(after.path(), "an older state than the manifest names");
}

fn assert_refused(directory: &Path, why: &str) {
    match open(directory) {
        Err(StorageError::Corrupt { file, found, .. }) => {
            assert_eq!((file, found.as_str()), (data_file(directory), why));
        }
        other => panic!("expected corruption, got {:?}", other.map(|_| ())),
    }
}

#[test]
fn a_missing_and_a_truncated_data_file_are_named() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    insert(&store, 1..501);
    store.close().expect("closes");
    drop(store);
    let path = data_file(directory.path());
    let bytes = std::fs::read(&path).expect("readable");
    std::fs::write(&path, &bytes[..5 * 4096]).expect("written");
    assert_refused(directory.path(), "ends, though it had 67108864 bytes");
    std::fs::remove_file(&path).expect("removed");
    assert_refused(directory.path(), "is missing, though the manifest names it");
}

#[test]
fn a_new_store_whose_first_process_was_killed_opens() {
    let directory = tempfile::tempdir().expect("temporary directory");
    std::fs::create_dir(directory.path().join("mmap.new")).expect("made");
    std::fs::write(directory.path().join("mmap.new/data.mdb"), b"torn").expect("written");
    let store = open(directory.path()).expect("opens");
    insert(&store, 1..3);
    assert_eq!(numbers(&open(crash_copy(directory.path()).path()).expect("recovers")), [1, 2]);
}

#[test]
fn a_snapshot_stays_while_checkpoints_pass() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    insert(&store, 1..11);
    store.checkpoint().expect("checkpoint");
    insert(&store, 11..21);
    let snapshot = store.snapshot();
    let mut cursor = snapshot.records(RECORDS, RecordRange::ALL, Direction::Forward);
    assert!(cursor.next().expect("readable").is_some());
    let mut bytes = Vec::new();
    for round in 0..10 {
        let mut batch = Batch::new();
        for number in 1..21 {
            let record = RecordId(number);
            let old = store.latest().record(RECORDS, record, &mut bytes).expect("readable").expect("present");
            batch.replace_record(RECORDS, record, vec![round; 3000], old);
        }
        batch.delete_key(INDEX, b"key00000003");
        commit(&store, &batch);
        store.checkpoint().expect("checkpoint");
    }
    let mut batch = Batch::new();
    batch.drop_keyspace(RECORDS);
    batch.drop_keyspace(INDEX);
    commit(&store, &batch);
    store.checkpoint().expect("checkpoint");
    let mut number = 1;
    while let Some((record, _, bytes)) = cursor.next().expect("readable") {
        number += 1;
        assert_eq!((record.0, bytes), (number, document(number).as_slice()));
    }
    assert_eq!(number, 20);
    assert_eq!(snapshot.key(INDEX, b"key00000003").expect("readable"), Some(RecordId(3)));
    let expected: Vec<_> = (1..21).map(|number| (number, document(number))).collect();
    assert_eq!(records(&snapshot, RecordRange::ALL, Direction::Forward).expect("readable"), expected);
    assert!(records(&store.snapshot(), RecordRange::ALL, Direction::Forward).expect("readable").is_empty());
}

#[test]
fn settings_are_refused_by_name() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let engine = (bunko_mmap::kind(MmapOptions::default()).open)(Opening {
        directory: directory.path(),
        log: Arc::default(),
        note: None,
    })
    .expect("opens");
    assert_eq!(engine.check_settings(DocumentBuf::new().as_ref()), Ok(()));
    assert_eq!(
        engine.check_settings(DocumentBuf::new().with("configString", "x").as_ref()),
        Err("'configString' is no setting of storage engine 'mmap', which has none".to_owned())
    );
}
