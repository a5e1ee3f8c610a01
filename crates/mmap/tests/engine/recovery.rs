//! Data files that a crash left behind or ahead of the manifest, and directories that are refused. Tests of recovery that
//! are not this engine's own are in `conformance`.

use crate::*;
use bunko_bson::DocumentBuf;
use bunko_store::{Clock, Location, Opening};

fn numbers(store: &Store) -> Vec<u64> {
    let snapshot = store.snapshot();
    let forward = records(&snapshot, RecordRange::ALL, Direction::Forward).expect("readable");
    assert!(forward.iter().all(|(number, bytes)| *bytes == document(*number)));
    forward.into_iter().map(|(number, _)| number).collect()
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
fn settings_are_refused_by_name() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let engine = (bunko_mmap::kind(MmapOptions::default()).open)(Opening {
        directory: directory.path(),
        log: Arc::default(),
        clock: Clock::machine(),
        note: None,
    })
    .expect("opens");
    assert_eq!(engine.check_settings(DocumentBuf::new().as_ref()), Ok(()));
    assert_eq!(
        engine.check_settings(DocumentBuf::new().with("configString", "x").as_ref()),
        Err("'configString' is not a setting of storage engine 'mmap', which has none".to_owned())
    );
}
