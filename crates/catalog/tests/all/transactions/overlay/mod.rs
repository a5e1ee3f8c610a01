//! The view of an overlay, compared with maps.

use bunko_engines::{ENGINES, EngineOptions, Entry};
use bunko_store::{
    Batch, Direction, KeyRange, KeyspaceId, Location, Overlay, Presence, RecordId, RecordRange, Snapshot, Store,
    StoreOptions, View,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

const RECORDS: KeyspaceId = KeyspaceId(900);
const IDS: KeyspaceId = KeyspaceId(901);
const KEYS: KeyspaceId = KeyspaceId(902);

/// Documents by record, and records by key.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    records: BTreeMap<u64, Vec<u8>>,
    keys: BTreeMap<Vec<u8>, u64>,
}

#[derive(Clone, Debug)]
enum Step {
    /// Inserts, replaces or deletes a record.
    Record(u64, Option<u8>),
    /// Puts or deletes a key.
    Key(u8, Option<u64>),
    /// Takes a snapshot and keeps it.
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..12_u64, proptest::option::weighted(0.7, any::<u8>())).prop_map(|(record, to)| Step::Record(record, to)),
        4 => (0..10_u8, proptest::option::weighted(0.6, 1..12_u64)).prop_map(|(key, to)| Step::Key(key, to)),
        1 => Just(Step::Look),
    ]
}

fn id(record: u64) -> Vec<u8> {
    record.to_be_bytes().to_vec()
}

fn key(number: u8) -> Vec<u8> {
    // Some are too long for a key without an allocation.
    [vec![b'k', number], vec![number; usize::from(number % 3) * 20]].concat()
}

/// Applies a step, if it changes anything, to a batch and to the model.
fn put(batch: &mut Batch<'_>, model: &mut Model, step: &Step, location_of: impl Fn(u64) -> Option<Location>) {
    match step {
        Step::Record(record, to) => {
            let document = to.map(|byte| vec![byte; usize::from(byte) + 5]);
            let before = location_of(*record);
            match (&document, before) {
                (Some(document), None) => {
                    batch.insert_record(RECORDS, RecordId(*record), document.clone());
                    batch.put_primary_key(IDS, &id(*record), RecordId(*record), Presence::New);
                }
                (Some(document), Some(before)) => {
                    batch.replace_record(RECORDS, RecordId(*record), document.clone(), before);
                    batch.put_primary_key(IDS, &id(*record), RecordId(*record), Presence::Moved);
                }
                (None, Some(before)) => {
                    batch.delete_key(IDS, &id(*record));
                    batch.delete_record(RECORDS, RecordId(*record), before);
                }
                (None, None) => {}
            }
            match document {
                Some(document) => model.records.insert(*record, document),
                None => model.records.remove(record),
            };
        }
        Step::Key(number, to) => {
            let key = key(*number);
            match (to, model.keys.contains_key(&key)) {
                // A key that leads to a record is deleted first.
                (Some(record), false) => {
                    batch.put_key(KEYS, &key, RecordId(*record));
                    model.keys.insert(key, *record);
                }
                (None, true) => {
                    batch.delete_key(KEYS, &key);
                    model.keys.remove(&key);
                }
                _ => {}
            }
        }
        Step::Look => {}
    }
}

fn location_in(view: &dyn View, record: u64) -> Option<Location> {
    view.record(RECORDS, RecordId(record), &mut Vec::new()).expect("readable")
}

fn assert_same(view: &dyn View, model: &Model) {
    for direction in [Direction::Forward, Direction::Backward] {
        for (start, end) in [(None, None), (Some(3), None), (None, Some(7)), (Some(4), Some(9)), (Some(5), Some(5))] {
            let is_in = |value: u64| start.is_none_or(|start| start <= value) && end.is_none_or(|end| value < end);
            let range = RecordRange {
                start: start.map_or(Bound::Unbounded, |start| Bound::Included(RecordId(start))),
                end: end.map_or(Bound::Unbounded, |end| Bound::Excluded(RecordId(end))),
            };
            let mut cursor = view.records(RECORDS, range, direction);
            let mut found = Vec::new();
            while let Some((record, _, document)) = cursor.next().expect("readable") {
                found.push((record.0, document.to_vec()));
            }
            let mut wanted: Vec<_> = model.records.clone().into_iter().filter(|(record, _)| is_in(*record)).collect();
            let bound = |number: Option<u64>| number.map(|number| key(number as u8));
            let range = KeyRange {
                start: bound(start).map_or(Bound::Unbounded, Bound::Excluded),
                end: bound(end).map_or(Bound::Unbounded, Bound::Included),
            };
            let (from, to) = (bound(start), bound(end));
            let is_in =
                |key: &Vec<u8>| from.as_ref().is_none_or(|from| from < key) && to.as_ref().is_none_or(|to| key <= to);
            let mut cursor = view.keys(KEYS, range, direction);
            let mut found_keys = Vec::new();
            while let Some((key, record)) = cursor.next().expect("readable") {
                found_keys.push((key.to_vec(), record.0));
            }
            let mut wanted_keys: Vec<_> = model.keys.clone().into_iter().filter(|(key, _)| is_in(key)).collect();
            if direction == Direction::Backward {
                wanted.reverse();
                wanted_keys.reverse();
            }
            assert_eq!((found, found_keys), (wanted, wanted_keys));
        }
    }
    let mut document = Vec::new();
    for record in 0..13 {
        let found = view.record(RECORDS, RecordId(record), &mut document).expect("readable");
        assert_eq!(found.map(|_| &document), model.records.get(&record));
        let found = view.record_by_primary_key(IDS, RECORDS, &id(record), &mut document).expect("readable");
        assert_eq!(found.map(|(record, _)| record.0), model.records.contains_key(&record).then_some(record));
    }
    for number in 0..10 {
        let found = view.key(KEYS, &key(number)).expect("readable");
        assert_eq!(found.map(|record| record.0), model.keys.get(&key(number)).copied());
        let is_vacant = view.is_vacant(KEYS, &key(number), &key(number)).expect("readable");
        assert!(!is_vacant || found.is_none());
    }
}

fn run(engine: &Entry, before: &[Step], steps: &[Step], part_bytes: usize) {
    let directory = tempfile::tempdir().expect("a directory");
    let table = bunko_engines::table(engine, &EngineOptions::default());
    let store = Store::open(directory.path(), StoreOptions::at_rest(), table).expect("opens");
    let mut model = Model::default();
    for (number, step) in before.iter().enumerate() {
        let mut batch = Batch::new();
        put(&mut batch, &mut model, step, |record| location_in(store.latest(), record));
        store.commit(&batch).expect("committed");
        if number == before.len() / 2 {
            store.checkpoint().expect("flushed");
        }
    }
    let (base, base_model) = (Arc::new(store.snapshot()), model.clone());
    let overlay = Arc::new(Overlay::default());
    let mut looks: Vec<(Snapshot, Model)> = Vec::new();
    for step in steps {
        let view = base.with(&overlay);
        let mut batch = Batch::new();
        put(&mut batch, &mut model, step, |record| location_in(&view, record));
        overlay.absorb(&batch);
        if matches!(step, Step::Look) {
            looks.push((base.with(&overlay), model.clone()));
        }
    }
    looks.push((base.with(&overlay), model.clone()));
    for (view, model) in &looks {
        assert_same(view, model);
    }
    assert_same(store.latest(), &base_model);
    let net = overlay.net();
    let mut parts = vec![Batch::new()];
    net.put_into(&mut parts, part_bytes);
    match parts.as_slice() {
        [batch] => drop(store.commit(batch).expect("committed")),
        chain => drop(store.commit_chain(chain).expect("committed")),
    }
    assert_same(&store.snapshot(), &model);
    let counts = [RECORDS, IDS, KEYS].map(|keyspace| store.entries(keyspace));
    let records = model.records.len() as u64;
    assert_eq!(counts, [records, records, model.keys.len() as u64]);
    store.close().expect("closes");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_overlay_is_a_map_over_maps(
        before in proptest::collection::vec(step(), 0..30),
        steps in proptest::collection::vec(step(), 0..60),
        is_chain in proptest::bool::ANY,
    ) {
        for engine in ENGINES {
            run(engine, &before, &steps, if is_chain { 60 } else { usize::MAX });
        }
    }
}
