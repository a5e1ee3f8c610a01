//! Random operations against a model, with checkpoints, snapshots, drops, crashes and long keys.

use crate::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

#[derive(Clone, Debug)]
enum Operation {
    Put(u64, usize),
    Delete(u64),
    PutKey(Vec<u8>, u64),
    DeleteKey(Vec<u8>),
    Checkpoint,
    Snapshot,
    DropBoth,
    Crash,
    Compact,
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    // Lengths around LMDB's limit, and few distinct bytes, so that prefixes collide.
    let length = prop_oneof![3 => 1..5_usize, 1 => 508..515_usize, 1 => 1000..1004_usize];
    (length, 0..3_u8, 0..3_u8).prop_map(|(length, first, last)| {
        let mut key = vec![7; length];
        key[0] = first;
        key[length - 1] = last;
        key
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    let length = prop_oneof![4 => 0..300_usize, 1 => 3000..6000_usize];
    prop_oneof![
        10 => (1..60_u64, length).prop_map(|(record, length)| Operation::Put(record, length)),
        4 => (1..60_u64).prop_map(Operation::Delete),
        10 => (key(), 1..60_u64).prop_map(|(key, record)| Operation::PutKey(key, record)),
        4 => key().prop_map(Operation::DeleteKey),
        3 => Just(Operation::Checkpoint),
        2 => Just(Operation::Snapshot),
        1 => Just(Operation::DropBoth),
        1 => Just(Operation::Crash),
        1 => Just(Operation::Compact),
    ]
}

#[derive(Clone, Default)]
struct Model {
    /// Number of drops so far. Each generation has its own keyspaces, because ids are never reused.
    generation: u32,
    records: BTreeMap<u64, Vec<u8>>,
    keys: BTreeMap<Vec<u8>, u64>,
}

impl Model {
    fn keyspaces(&self) -> (KeyspaceId, KeyspaceId) {
        (KeyspaceId(100 + 2 * self.generation), KeyspaceId(101 + 2 * self.generation))
    }

    fn assert_seen(&self, view: &dyn View) {
        let (records, keys) = self.keyspaces();
        for direction in [Direction::Forward, Direction::Backward] {
            let mut cursor = view.records(records, RecordRange::ALL, direction);
            let mut expected: VecDeque<_> = self.records.iter().collect();
            while let Some((record, location, bytes)) = cursor.next().expect("readable") {
                let (id, document) = take(&mut expected, direction).expect("no more than there are");
                assert_eq!((record.0, bytes), (*id, document.as_slice()));
                assert_eq!(location.length as usize, bytes.len());
            }
            assert!(expected.is_empty());
            for range in [(Bound::Unbounded, Bound::Unbounded), self.middle_range()] {
                let mut expected: VecDeque<_> =
                    self.keys.range::<Vec<u8>, _>((range.0.as_ref(), range.1.as_ref())).collect();
                let mut cursor = view.keys(keys, KeyRange { start: range.0.clone(), end: range.1.clone() }, direction);
                while let Some((key, record)) = cursor.next().expect("readable") {
                    let (expected_key, expected_record) =
                        take(&mut expected, direction).expect("no more than there are");
                    assert_eq!((key, record.0), (expected_key.as_slice(), *expected_record));
                }
                assert!(expected.is_empty());
            }
        }
        let mut bytes = Vec::new();
        for record in 1..60 {
            let found = view.record(records, RecordId(record), &mut bytes).expect("readable");
            assert_eq!(found.is_some().then_some(&bytes), self.records.get(&record));
        }
        for (key, record) in &self.keys {
            assert_eq!(view.key(keys, key).expect("readable"), Some(RecordId(*record)));
            let absent = [key.as_slice(), b"?"].concat();
            assert_eq!(view.key(keys, &absent).expect("readable"), None);
        }
    }

    /// From the second key, excluded, to the second-last, included.
    fn middle_range(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let keys: Vec<_> = self.keys.keys().cloned().collect();
        if keys.len() < 4 {
            return (Bound::Unbounded, Bound::Unbounded);
        }
        (Bound::Excluded(keys[1].clone()), Bound::Included(keys[keys.len() - 2].clone()))
    }
}

fn take<T>(expected: &mut VecDeque<T>, direction: Direction) -> Option<T> {
    match direction {
        Direction::Forward => expected.pop_front(),
        Direction::Backward => expected.pop_back(),
    }
}

fn run(operations: Vec<Operation>) {
    let mut directory = tempfile::tempdir().expect("temporary directory");
    let mut store = open(directory.path()).expect("opens");
    let mut model = Model::default();
    let mut snapshots = VecDeque::new();
    let mut bytes = Vec::new();
    for (step, operation) in operations.into_iter().enumerate() {
        let (records, keys) = model.keyspaces();
        let mut batch = Batch::new();
        match operation {
            Operation::Put(record, length) => {
                let document = vec![step as u8; length];
                match store.latest().record(records, RecordId(record), &mut bytes).expect("readable") {
                    Some(old) => batch.replace_record(records, RecordId(record), document.clone(), old),
                    None => batch.insert_record(records, RecordId(record), document.clone()),
                }
                model.records.insert(record, document);
            }
            Operation::Delete(record) => {
                if let Some(old) = store.latest().record(records, RecordId(record), &mut bytes).expect("readable") {
                    batch.delete_record(records, RecordId(record), old);
                    model.records.remove(&record);
                }
            }
            Operation::PutKey(key, record) => {
                batch.put_key(keys, &key, RecordId(record));
                model.keys.insert(key, record);
            }
            Operation::DeleteKey(key) => {
                batch.delete_key(keys, &key);
                model.keys.remove(&key);
            }
            Operation::Checkpoint => store.checkpoint().expect("checkpoint"),
            Operation::Compact => store.compact().expect("compacts"),
            Operation::Snapshot => {
                snapshots.push_back((store.snapshot(), model.clone()));
                if snapshots.len() > 4 {
                    snapshots.pop_front();
                }
            }
            Operation::DropBoth => {
                batch.drop_keyspace(records);
                batch.drop_keyspace(keys);
                model = Model { generation: model.generation + 1, ..Model::default() };
            }
            Operation::Crash => {
                snapshots.clear();
                let copy = crash_copy(directory.path());
                store = open(copy.path()).expect("recovers");
                directory = copy;
            }
        }
        if !batch.is_empty() {
            commit(&store, &batch);
        }
        if step % 8 == 0 {
            model.assert_seen(store.latest());
        }
    }
    for (snapshot, model) in &snapshots {
        model.assert_seen(snapshot);
    }
    model.assert_seen(&store.snapshot());
    drop(snapshots);
    store.close().expect("closes");
    drop(store);
    model.assert_seen(open(directory.path()).expect("opens").latest());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_does_what_the_model_does(operations in prop::collection::vec(operation(), 1..160)) {
        run(operations);
    }
}
