//! After any steps in any order, views show the contents of a plain map, and memory is counted exactly.

use crate::store::{documents, keys, store, used_bytes};
use bunko_store::{Batch, Direction, KeyRange, KeyspaceId, RecordId, RecordRange, Snapshot, Store, View};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;

const RECORDS_MAX: u64 = 300;

/// One record store and one index; a drop replaces both by new ones.
#[derive(Clone)]
struct Model {
    records: KeyspaceId,
    index: KeyspaceId,
    documents: BTreeMap<u64, Vec<u8>>,
    keys: BTreeMap<Vec<u8>, u64>,
}

#[derive(Clone, Debug)]
enum Step {
    /// In one batch: for each record, the length of its new document, or a deletion.
    Records(BTreeMap<u64, Option<usize>>),
    /// In one batch: for each key, its new record, or a deletion.
    Keys(BTreeMap<Vec<u8>, Option<u64>>),
    OpenSnapshot,
    /// Closes the open snapshot with that number, if there is one.
    CloseSnapshot(usize),
    Drop,
    Reclaim,
    /// Compares a view: the snapshot with that number, or the latest state.
    Look {
        view: usize,
        records: (Bound<u64>, Bound<u64>),
        keys: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    },
}

fn bound<T: Clone + std::fmt::Debug>(of: impl Strategy<Value = T> + Clone) -> impl Strategy<Value = Bound<T>> {
    prop_oneof![of.clone().prop_map(Bound::Included), of.prop_map(Bound::Excluded), Just(Bound::Unbounded)]
}

/// Few different keys, so that they meet often; some are too long to be stored without an allocation.
fn key() -> impl Strategy<Value = Vec<u8>> + Clone {
    (0..60_u8, prop_oneof![Just(0_usize), Just(3), Just(30)]).prop_map(|(first, more)| {
        let mut key = vec![first];
        key.resize(1 + more, first);
        key
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let record = 1..RECORDS_MAX;
    let document = proptest::option::weighted(0.6, 0..200_usize);
    let step = prop_oneof![
        8 => proptest::collection::btree_map(record.clone(), document, 1..20).prop_map(Step::Records),
        6 => proptest::collection::btree_map(key(), proptest::option::weighted(0.6, record.clone()), 1..20)
            .prop_map(Step::Keys),
        2 => Just(Step::OpenSnapshot),
        2 => (0..8_usize).prop_map(Step::CloseSnapshot),
        1 => Just(Step::Drop),
        1 => Just(Step::Reclaim),
        4 => (0..8_usize, (bound(record.clone()), bound(record)), (bound(key()), bound(key())))
            .prop_map(|(view, records, keys)| Step::Look { view, records, keys }),
    ];
    proptest::collection::vec(step, 1..120)
}

impl Model {
    fn empty(keyspace: u32) -> Self {
        let (records, index) = (KeyspaceId(keyspace), KeyspaceId(keyspace + 1));
        Self { records, index, documents: BTreeMap::new(), keys: BTreeMap::new() }
    }

    fn put_records(&mut self, store: &Store, changes: &BTreeMap<u64, Option<usize>>) {
        let mut batch = Batch::new();
        for (&record, length) in changes {
            let replaced = store.latest().record(self.records, RecordId(record), &mut Vec::new()).expect("reads");
            assert_eq!(replaced.is_some(), self.documents.contains_key(&record));
            let Some(length) = length else {
                if let Some(replaced) = replaced {
                    batch.delete_record(self.records, RecordId(record), replaced);
                    self.documents.remove(&record);
                }
                continue;
            };
            let document = vec![(record + *length as u64) as u8; *length];
            match replaced {
                Some(replaced) => batch.replace_record(self.records, RecordId(record), document.clone(), replaced),
                None => batch.insert_record(self.records, RecordId(record), document.clone()),
            }
            self.documents.insert(record, document);
        }
        store.commit(&batch).expect("room");
    }

    fn put_keys(&mut self, store: &Store, changes: &BTreeMap<Vec<u8>, Option<u64>>) {
        let mut batch = Batch::new();
        for (key, record) in changes {
            if let Some(record) = record {
                batch.put_key(self.index, key, RecordId(*record));
                self.keys.insert(key.clone(), *record);
            } else {
                batch.delete_key(self.index, key);
                self.keys.remove(key);
            }
        }
        store.commit(&batch).expect("room");
    }

    /// Compares everything that a view shows with the model.
    fn check(&self, view: &dyn View, records: (Bound<u64>, Bound<u64>), keyed: &(Bound<Vec<u8>>, Bound<Vec<u8>>)) {
        let is_in = |record: u64| std::ops::RangeBounds::contains(&records, &record);
        let mut expected: Vec<_> = self.documents.clone().into_iter().filter(|(record, _)| is_in(*record)).collect();
        let range = RecordRange { start: records.0.map(RecordId), end: records.1.map(RecordId) };
        assert_eq!(documents(view, self.records, range, Direction::Forward), expected);
        expected.reverse();
        assert_eq!(documents(view, self.records, range, Direction::Backward), expected);

        let is_in = |key: &Vec<u8>| std::ops::RangeBounds::contains(keyed, key);
        let mut expected: Vec<_> = self.keys.clone().into_iter().filter(|(key, _)| is_in(key)).collect();
        let range = || KeyRange { start: keyed.0.clone(), end: keyed.1.clone() };
        assert_eq!(keys(view, self.index, range(), Direction::Forward), expected);
        expected.reverse();
        assert_eq!(keys(view, self.index, range(), Direction::Backward), expected);

        let mut into = Vec::new();
        for record in 1..RECORDS_MAX {
            let found = view.record(self.records, RecordId(record), &mut into).expect("reads").map(|_| &into);
            assert_eq!(found, self.documents.get(&record));
        }
        for (key, record) in &self.keys {
            assert_eq!(view.key(self.index, key).expect("reads"), Some(RecordId(*record)));
        }
    }

    fn check_all(&self, view: &dyn View) {
        self.check(view, (Bound::Unbounded, Bound::Unbounded), &(Bound::Unbounded, Bound::Unbounded));
    }

    /// Memory of these contents in a new engine.
    fn bytes_alone(&self) -> u64 {
        let store = store(u64::MAX);
        let mut batch = Batch::new();
        for (record, document) in &self.documents {
            batch.insert_record(self.records, RecordId(*record), document.clone());
        }
        for (key, record) in &self.keys {
            batch.put_key(self.index, key, RecordId(*record));
        }
        store.commit(&batch).expect("room");
        used_bytes(&store)
    }
}

fn run(steps: &[Step]) {
    let store = store(u64::MAX);
    let mut model = Model::empty(1);
    let mut snapshots: Vec<(Snapshot, Model)> = Vec::new();
    for step in steps {
        match step {
            Step::Records(changes) => model.put_records(&store, changes),
            Step::Keys(changes) => model.put_keys(&store, changes),
            Step::OpenSnapshot => snapshots.push((store.snapshot(), model.clone())),
            Step::CloseSnapshot(which) => {
                if *which < snapshots.len() {
                    snapshots.remove(*which);
                }
            }
            Step::Drop => {
                let mut batch = Batch::new();
                batch.drop_keyspace(model.records);
                batch.drop_keyspace(model.index);
                store.commit(&batch).expect("room");
                let dropped = std::mem::replace(&mut model, Model::empty(0));
                Model { documents: BTreeMap::new(), keys: BTreeMap::new(), ..dropped.clone() }
                    .check_all(store.latest());
                model = Model::empty(dropped.index.0 + 1);
            }
            Step::Reclaim => store.compact().expect("nothing fails"),
            Step::Look { view, records, keys } => match snapshots.get(*view) {
                Some((snapshot, model)) => model.check(snapshot, *records, keys),
                None => model.check(store.latest(), *records, keys),
            },
        }
    }
    for (snapshot, model) in &snapshots {
        model.check_all(snapshot);
    }
    drop(snapshots);
    model.check_all(store.latest());
    store.compact().expect("nothing fails");
    model.check_all(&store.snapshot());
    let space: u64 = store.space(&[model.records, model.index]).iter().map(|space| space.used_bytes).sum();
    assert_eq!((space, used_bytes(&store)), (model.bytes_alone(), model.bytes_alone()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn views_show_what_a_plain_map_would(steps in steps()) {
        run(&steps);
    }
}
