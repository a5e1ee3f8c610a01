//! The store with its default engine: data that survives closing, crashing, tearing and corruption.

use crate::opened;
use bunko_store::{
    Batch, Direction, KeyRange, KeyspaceId, Location, Lsn, RecordId, RecordRange, StorageError, Store, View,
};
use bunko_testkit::directory::crash_copy;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

const RECORDS: KeyspaceId = KeyspaceId(5);
const INDEX: KeyspaceId = KeyspaceId(6);

fn open(path: &Path) -> Result<Arc<Store>, StorageError> {
    opened::open(path, |what, error| panic!("{what}: {error}"))
}

fn document(number: u64) -> Vec<u8> {
    format!("document {number} ").repeat(10).into_bytes()
}

fn insert(store: &Store, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut batch = Batch::new();
        batch.insert_record(RECORDS, RecordId(number), document(number));
        batch.put_key(INDEX, format!("key{number:08}").as_bytes(), RecordId(number));
        let lsn = store.commit(&batch).expect("committed");
        store.write(lsn).expect("written");
    }
}

fn records(store: &Store, direction: Direction) -> Vec<u64> {
    let snapshot = store.snapshot();
    let mut cursor = snapshot.records(RECORDS, RecordRange::ALL, direction);
    let mut seen = Vec::new();
    while let Some((record, _, bytes)) = cursor.next().expect("readable") {
        assert_eq!(bytes, document(record.0));
        seen.push(record.0);
    }
    seen
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
    assert_eq!(records(&recovered, Direction::Forward), all);
    assert_eq!(recovered.entries(RECORDS), 200);
    drop(recovered);
    store.close().expect("closes");
    drop(store);
    let reopened = open(directory.path()).expect("opens again");
    assert_eq!(records(&reopened, Direction::Backward), all.iter().rev().copied().collect::<Vec<_>>());
    let snapshot = reopened.snapshot();
    assert_eq!(snapshot.key(INDEX, b"key00000150").expect("readable"), Some(RecordId(150)));
    let mut keys = snapshot.keys(INDEX, KeyRange::ALL, Direction::Forward);
    assert_eq!(keys.next().expect("readable"), Some((b"key00000001".as_slice(), RecordId(1))));
}

#[test]
fn a_snapshot_does_not_see_later_writes() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    insert(&store, 1..3);
    let before = store.snapshot();
    let mut bytes = Vec::new();
    let old: Location = store.latest().record(RECORDS, RecordId(1), &mut bytes).expect("readable").expect("present");
    let mut batch = Batch::new();
    batch.replace_record(RECORDS, RecordId(1), b"new".as_slice(), old);
    batch.delete_record(RECORDS, RecordId(2), old);
    store.commit(&batch).expect("committed");
    store.checkpoint().expect("checkpoint");
    before.record(RECORDS, RecordId(1), &mut bytes).expect("readable").expect("present");
    assert_eq!(bytes, document(1));
    assert!(before.record(RECORDS, RecordId(2), &mut bytes).expect("readable").is_some());
    let after = store.snapshot();
    after.record(RECORDS, RecordId(1), &mut bytes).expect("readable").expect("present");
    assert_eq!(bytes, b"new");
    assert!(after.record(RECORDS, RecordId(2), &mut bytes).expect("readable").is_none());
    assert_eq!(store.entries(RECORDS), 1);
}

#[test]
fn a_torn_tail_is_cut_and_a_flipped_byte_is_named() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    insert(&store, 1..51);
    let durable = Lsn(store.statistics().log.next_lsn);
    let (sender, receiver) = std::sync::mpsc::channel();
    store.on_durable(Lsn(durable.0 - 1), Box::new(move |outcome| sender.send(outcome.is_ok()).expect("received")));
    assert!(receiver.recv().expect("called back"));
    insert(&store, 51..101);
    let end = store.statistics().log.next_lsn;
    let copy = crash_copy(directory.path());
    let segment = copy.path().join("log/000000000000.segment");

    let file = std::fs::OpenOptions::new().read(true).write(true).open(&segment).expect("opens");
    file.write_all_at(&[0xff; 100], end - 100).expect("written");
    let recovered = open(copy.path()).expect("a torn tail does not stop the start");
    assert_eq!(records(&recovered, Direction::Forward), (1..100).collect::<Vec<_>>());
    insert(&recovered, 100..103);
    drop(recovered);
    assert_eq!(records(&open(copy.path()).expect("opens"), Direction::Forward).len(), 102);

    let copy = crash_copy(directory.path());
    let segment = copy.path().join("log/000000000000.segment");
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&segment).expect("opens");
    let mut byte = [0];
    file.read_exact_at(&mut byte, 3000).expect("read");
    file.write_all_at(&[byte[0] ^ 1], 3000).expect("written");
    match open(copy.path()) {
        Err(StorageError::Corrupt { file, offset_bytes, .. }) => {
            assert_eq!(file, segment);
            assert!((64..=3000).contains(&offset_bytes), "offset {offset_bytes}");
        }
        other => panic!("expected corruption, got {:?}", other.map(|_| ())),
    }
}

#[test]
fn the_log_goes_on_over_many_segments_and_dead_ones_are_recycled() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    let big = vec![7_u8; 12 << 20];
    for record in 1..=12_u64 {
        let mut batch = Batch::new();
        batch.insert_record(RECORDS, RecordId(record), big.as_slice());
        let lsn = store.commit(&batch).expect("committed");
        store.write(lsn).expect("written");
    }
    assert!(store.statistics().log.segments >= 3);
    let crashed = crash_copy(directory.path());
    assert_eq!(open(crashed.path()).expect("recovers").entries(RECORDS), 12);
    let mut batch = Batch::new();
    batch.drop_keyspace(RECORDS);
    store.commit(&batch).expect("committed");
    store.compact().expect("compacts");
    assert_eq!(store.statistics().log.segments, 1);
    store.close().expect("closes");
    drop(store);
    assert_eq!(open(directory.path()).expect("opens").entries(RECORDS), 0);
}

#[test]
fn a_second_process_is_refused() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    assert!(matches!(open(directory.path()), Err(StorageError::Locked { .. })));
    drop(store);
    open(directory.path()).expect("released");
}

#[test]
fn what_an_earlier_process_left_goes_though_nothing_is_reclaimed() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    insert(&store, 1..3);
    store.close().expect("closes");
    drop(store);
    // Files of a process that was killed while it wrote them.
    let left =
        ["extents/000000000007.tmp", "trees/tables/77", "trees/.tmpAbCdEf"].map(|name| directory.path().join(name));
    for path in &left {
        std::fs::create_dir_all(path.parent().expect("below")).expect("made");
        std::fs::write(path, "half of it").expect("written");
    }
    let store = open(directory.path()).expect("opens");
    insert(&store, 3..4);
    store.close().expect("closes");
    assert_eq!(left.each_ref().map(|path| path.exists()), [false; 3]);
    assert!(!directory.path().join("trees/unnamed").exists());
    assert_eq!(records(&store, Direction::Forward), [1, 2, 3]);
}
