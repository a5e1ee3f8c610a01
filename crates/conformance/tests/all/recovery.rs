//! A store with each durable engine: data that survives closing, crashing, tearing and corruption, and snapshots that
//! stay as they are.

use bunko_conformance::directory::Directory;
use bunko_conformance::roster::each_durable_engine;
use bunko_conformance::subject;
use bunko_engines::Entry;
use bunko_store::{
    Batch, Direction, KeyRange, KeyspaceId, Location, Lsn, RecordId, RecordRange, StorageError, Store, View, segment_of,
};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

const RECORDS: KeyspaceId = KeyspaceId(5);
const INDEX: KeyspaceId = KeyspaceId(6);

fn open(path: &Path, own: &Entry) -> Arc<Store> {
    subject::open(path, own).expect("opens")
}

fn document(number: u64) -> Vec<u8> {
    format!("document {number} ").repeat(10).into_bytes()
}

fn commit(store: &Store, batch: &Batch<'_>) {
    let lsn = store.commit(batch).expect("committed");
    store.write(lsn).expect("written");
}

fn insert(store: &Store, numbers: Range<u64>) {
    for number in numbers {
        let mut batch = Batch::new();
        batch.insert_record(RECORDS, RecordId(number), document(number));
        batch.put_key(INDEX, format!("key{number:08}").as_bytes(), RecordId(number));
        commit(store, &batch);
    }
}

fn records(view: &dyn View, direction: Direction) -> Vec<u64> {
    let mut cursor = view.records(RECORDS, RecordRange::ALL, direction);
    let mut seen = Vec::new();
    while let Some((record, _, bytes)) = cursor.next().expect("readable") {
        assert_eq!(bytes, document(record.0));
        seen.push(record.0);
    }
    seen
}

fn old(store: &Store, number: u64) -> Location {
    store.latest().record(RECORDS, RecordId(number), &mut Vec::new()).expect("readable").expect("present")
}

#[test]
fn data_is_there_after_a_crash_and_after_a_close() {
    each_durable_engine(|own| {
        let directory = Directory::default();
        let store = open(directory.path(), own);
        insert(&store, 1..101);
        store.checkpoint().expect("checkpoint");
        insert(&store, 101..201);
        let all: Vec<u64> = (1..201).collect();
        let crashed = Directory::copy_of(directory.path());
        let recovered = open(crashed.path(), own);
        assert_eq!(records(&recovered.snapshot(), Direction::Forward), all);
        assert_eq!(recovered.entries(RECORDS), 200);
        drop(recovered);
        store.close().expect("closes");
        drop(store);
        let reopened = open(directory.path(), own);
        let snapshot = reopened.snapshot();
        assert_eq!(records(&snapshot, Direction::Backward), all.iter().rev().copied().collect::<Vec<_>>());
        assert_eq!(snapshot.key(INDEX, b"key00000150").expect("readable"), Some(RecordId(150)));
        assert_eq!(snapshot.key(INDEX, b"key00000999").expect("readable"), None);
        let mut keys = snapshot.keys(INDEX, KeyRange::ALL, Direction::Forward);
        assert_eq!(keys.next().expect("readable"), Some((b"key00000001".as_slice(), RecordId(1))));
    });
}

#[test]
fn a_snapshot_stays_while_writes_and_checkpoints_pass() {
    each_durable_engine(|own| {
        let directory = Directory::default();
        let store = open(directory.path(), own);
        insert(&store, 1..11);
        store.checkpoint().expect("checkpoint");
        insert(&store, 11..21);
        let snapshot = store.snapshot();
        let mut cursor = snapshot.records(RECORDS, RecordRange::ALL, Direction::Forward);
        assert!(cursor.next().expect("readable").is_some());
        for round in 0..10 {
            let mut batch = Batch::new();
            for number in 1..20 {
                batch.replace_record(RECORDS, RecordId(number), vec![round; 3000], old(&store, number));
            }
            if round == 0 {
                batch.delete_record(RECORDS, RecordId(20), old(&store, 20));
            }
            batch.delete_key(INDEX, b"key00000003");
            commit(&store, &batch);
            store.checkpoint().expect("checkpoint");
        }
        let (after, mut bytes) = (store.snapshot(), Vec::new());
        after.record(RECORDS, RecordId(1), &mut bytes).expect("readable").expect("present");
        assert_eq!(bytes, vec![9; 3000]);
        assert!(after.record(RECORDS, RecordId(20), &mut bytes).expect("readable").is_none());
        assert_eq!(store.entries(RECORDS), 19);
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
        assert_eq!(records(&snapshot, Direction::Forward), (1..21).collect::<Vec<_>>());
        assert_eq!(store.entries(RECORDS), 0);
    });
}

#[test]
fn a_torn_tail_is_cut_and_a_flipped_byte_is_named() {
    each_durable_engine(|own| {
        let directory = Directory::default();
        let store = open(directory.path(), own);
        insert(&store, 1..51);
        let durable = Lsn(store.statistics().log.next_lsn);
        let (sender, receiver) = std::sync::mpsc::channel();
        store.on_durable(Lsn(durable.0 - 1), Box::new(move |outcome| sender.send(outcome.is_ok()).expect("received")));
        assert!(receiver.recv().expect("called back"));
        insert(&store, 51..101);
        let end = store.statistics().log.next_lsn;
        let segment = |copy: &Directory| copy.path().join("log/000000000000.segment");
        let opened = |path: &Path| std::fs::OpenOptions::new().read(true).write(true).open(path).expect("opens");

        let copy = Directory::copy_of(directory.path());
        opened(&segment(&copy)).write_all_at(&[0xff; 100], end - 100).expect("written");
        let recovered = open(copy.path(), own);
        assert_eq!(records(&recovered.snapshot(), Direction::Forward), (1..100).collect::<Vec<_>>());
        insert(&recovered, 100..103);
        drop(recovered);
        assert_eq!(records(&open(copy.path(), own).snapshot(), Direction::Forward).len(), 102);

        let copy = Directory::copy_of(directory.path());
        let (file, mut byte) = (opened(&segment(&copy)), [0]);
        file.read_exact_at(&mut byte, 3000).expect("read");
        file.write_all_at(&[byte[0] ^ 1], 3000).expect("written");
        match subject::open(copy.path(), own) {
            Err(StorageError::Corrupt { file, offset_bytes, .. }) => {
                assert_eq!(file, segment(&copy));
                assert!((64..=3000).contains(&offset_bytes), "offset {offset_bytes}");
            }
            other => panic!("expected corruption, got {:?}", other.map(|_| ())),
        }
    });
}

#[test]
fn the_log_goes_on_over_many_segments_and_dead_ones_are_recycled() {
    each_durable_engine(|own| {
        let directory = Directory::default();
        let store = open(directory.path(), own);
        let big = vec![7_u8; 12 << 20];
        for record in 1..=12_u64 {
            let mut batch = Batch::new();
            batch.insert_record(RECORDS, RecordId(record), big.as_slice());
            commit(&store, &batch);
        }
        assert!(segment_of(store.statistics().log.next_lsn) >= 2);
        let crashed = Directory::copy_of(directory.path());
        assert_eq!(open(crashed.path(), own).entries(RECORDS), 12);
        let mut batch = Batch::new();
        batch.drop_keyspace(RECORDS);
        store.commit(&batch).expect("committed");
        store.compact().expect("compacts");
        assert_eq!(store.statistics().log.segments, 1);
        store.close().expect("closes");
        drop(store);
        assert_eq!(open(directory.path(), own).entries(RECORDS), 0);
    });
}

#[test]
fn a_second_process_is_refused() {
    each_durable_engine(|own| {
        let directory = Directory::default();
        let store = open(directory.path(), own);
        assert!(matches!(subject::open(directory.path(), own), Err(StorageError::Locked { .. })));
        drop(store);
        open(directory.path(), own);
    });
}
