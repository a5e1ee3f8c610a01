//! Documents that are written ahead of the log.

use super::*;
use bunko_store::Staged;

fn stage(store: &Store, numbers: std::ops::Range<u64>) -> Staged {
    let documents: Vec<_> = numbers.map(|number| (RecordId(number), document(number, 0))).collect();
    let mut lent = documents.iter().map(|(record, document)| (*record, document.as_slice()));
    store.stage(RECORDS, &mut lent).expect("written").expect("the engine has extents")
}

fn adopt(store: &Store, staged: &Staged) {
    let mut batch = Batch::new();
    staged.adopt(&mut batch);
    store.commit(&batch).expect("committed");
}

/// Places the staged documents with those numbers; the first staged document has the number `first`.
fn place(store: &Store, staged: &Staged, first: u64, numbers: impl Iterator<Item = u64>) {
    let mut batch = Batch::new();
    for number in numbers {
        batch.place_record(RECORDS, RecordId(number), staged.locations()[(number - first) as usize]);
        batch.put_primary_key(IDS, &number.to_be_bytes(), RecordId(number), Presence::New);
    }
    let lsn = store.commit(&batch).expect("committed");
    store.write(lsn).expect("written");
}

fn unchanged(numbers: impl Iterator<Item = u64>) -> BTreeMap<u64, u64> {
    numbers.map(|number| (number, 0)).collect()
}

#[test]
fn they_are_seen_once_they_are_placed_and_stay_through_crashes_and_checkpoints() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    put(&store, RECORDS, 1, 0);
    let staged = stage(&store, 10..110);
    adopt(&store, &staged);
    assert_eq!(latest(&store), unchanged(1..2));
    place(&store, &staged, 10, 10..60);
    let between = store.snapshot();
    place(&store, &staged, 10, 60..110);
    let all = unchanged((1..2).chain(10..110));
    assert_eq!(latest(&store), all);
    assert_eq!(versions(&between, RECORDS), unchanged((1..2).chain(10..60)));
    // The documents' bytes are not in the log.
    let log = store.statistics().log;
    assert!(log.next_lsn < 1 << 20, "{log:?}");
    drop((staged, between));
    let crashed = crash_copy(directory.path());
    assert_eq!(latest(&open(crashed.path()).expect("opens")), all);
    store.checkpoint().expect("done");
    let crashed = crash_copy(directory.path());
    let again = open(crashed.path()).expect("opens");
    assert_eq!(latest(&again), all);
    again.compact().expect("compacts");
    assert_eq!(latest(&again), all);
}

#[test]
fn reclaiming_leaves_them_alone_until_the_last_is_placed() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    let staged = stage(&store, 1..201);
    adopt(&store, &staged);
    place(&store, &staged, 1, 1..11);
    // Nearly all of the extent looks dead.
    store.compact().expect("compacts");
    let view = store.snapshot();
    place(&store, &staged, 1, 11..101);
    drop(staged);
    // The oldest view is older than the last placements.
    store.compact().expect("compacts");
    assert_eq!(latest(&store), unchanged(1..101));
    drop(view);
    let before = extent_bytes(directory.path());
    store.compact().expect("compacts");
    // Half of the documents were never placed, and are dead.
    assert!(extent_bytes(directory.path()) < before * 2 / 3, "{before}");
    assert_eq!(latest(&store), unchanged(1..101));
    drop(store);
    assert_eq!(latest(&open(directory.path()).expect("opens")), unchanged(1..101));
}

#[test]
fn deleted_ones_give_their_space_back() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    let staged = stage(&store, 1..301);
    adopt(&store, &staged);
    place(&store, &staged, 1, 1..301);
    drop(staged);
    let before = extent_bytes(directory.path());
    (1..=250).for_each(|number| delete(&store, number));
    store.compact().expect("compacts");
    assert!(extent_bytes(directory.path()) < before / 3, "{before}");
    assert_eq!(latest(&store), unchanged(251..301));
    let crashed = crash_copy(directory.path());
    assert_eq!(latest(&open(crashed.path()).expect("opens")), unchanged(251..301));
}

#[test]
fn unnamed_extents_are_removed() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    drop(stage(&store, 1..11));
    assert_eq!(extents(directory.path()), Vec::<std::path::PathBuf>::new());
    // A crash before the adoption leaves the file; the next start removes it.
    let held = stage(&store, 1..11);
    let crashed = crash_copy(directory.path());
    assert_eq!(extents(crashed.path()).len(), 1);
    let again = open(crashed.path()).expect("opens");
    again.compact().expect("compacts");
    assert_eq!(extents(crashed.path()), Vec::<std::path::PathBuf>::new());
    drop(held);
}

#[test]
fn an_extent_that_the_log_names_and_is_gone_stops_the_start() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    let staged = stage(&store, 1..11);
    adopt(&store, &staged);
    place(&store, &staged, 1, 1..11);
    let crashed = crash_copy(directory.path());
    let [extent] = <[_; 1]>::try_from(extents(crashed.path())).expect("one extent");
    std::fs::remove_file(&extent).expect("removed");
    let Err(StorageError::Corrupt { file, .. }) = open(crashed.path()).map(drop) else { panic!("it opened") };
    assert_eq!(file, extent);
}
