//! Long scans go by leaves. Whatever happened to the records, they show the model's records, and a scan in the other
//! direction, which the tree merges, shows these too.

use crate::seeded::{open, reopen};
use bunko_store::{Batch, Direction, KeyspaceId, RecordCursor, RecordId, RecordRange, Snapshot, Store, View};
use bunko_testkit::random::Random;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Collections with consecutive record ids, with gaps, and with ids far apart.
const COLLECTIONS: [(KeyspaceId, u64); 3] = [(KeyspaceId(5), 1), (KeyspaceId(6), 7), (KeyspaceId(9), 5000)];
const FILLER: KeyspaceId = KeyspaceId(11);

/// The version of each record, for each collection.
type Model = [BTreeMap<u64, u64>; 3];

fn document(record: u64, version: u64) -> Vec<u8> {
    format!("record {record} version {version}").into_bytes()
}

/// A snapshot, the records that it must show, and an open scan over it.
struct Held {
    snapshot: Snapshot,
    model: Model,
    collection: usize,
    cursor: Box<dyn RecordCursor>,
    rest: std::vec::IntoIter<(u64, u64)>,
}

impl Held {
    fn new(store: &Store, model: &Model, random: &mut Random) -> Self {
        let (snapshot, collection) = (store.snapshot(), random.below(3) as usize);
        let cursor = snapshot.records(COLLECTIONS[collection].0, RecordRange::ALL, Direction::Forward);
        let rest = model[collection].clone().into_iter().collect::<Vec<_>>().into_iter();
        Self { snapshot, model: model.clone(), collection, cursor, rest }
    }

    fn advance(&mut self, steps: u64) {
        for _ in 0..steps {
            let expected = self.rest.next();
            let found = self.cursor.next().expect("readable").map(|(record, _, bytes)| (record.0, bytes.to_vec()));
            let expected = expected.map(|(record, version)| (record, document(record, version)));
            assert_eq!(found, expected, "a walk over collection {} that was held open", self.collection);
        }
    }
}

fn walk(view: &dyn View, keyspace: KeyspaceId, range: RecordRange, direction: Direction) -> Vec<(u64, Vec<u8>)> {
    let mut cursor = view.records(keyspace, range, direction);
    let mut found = Vec::new();
    while let Some((record, _, bytes)) = cursor.next().expect("readable") {
        found.push((record.0, bytes.to_vec()));
    }
    assert!(cursor.next().expect("readable").is_none(), "a walk stays at its end");
    found
}

fn check(view: &dyn View, model: &Model, random: &mut Random) {
    for ((keyspace, step), model) in COLLECTIONS.into_iter().zip(model) {
        let documents = |(record, version): (&u64, &u64)| (*record, document(*record, *version));
        let expected: Vec<_> = model.iter().map(documents).collect();
        let forward = walk(view, keyspace, RecordRange::ALL, Direction::Forward);
        assert!(forward == expected, "a scan of {keyspace:?} differs: {:?}", first_difference(&forward, &expected));
        let mut backward = walk(view, keyspace, RecordRange::ALL, Direction::Backward);
        backward.reverse();
        assert!(backward == expected, "a scan back differs: {:?}", first_difference(&backward, &expected));
        let highest = model.keys().next_back().copied().unwrap_or(1) + 2 * step;
        let (one, other) = (random.below(highest), random.below(highest));
        let (first, last) = (one.min(other), one.max(other));
        let start = if random.one_in(2) { Bound::Included(RecordId(first)) } else { Bound::Excluded(RecordId(first)) };
        let end = match random.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(RecordId(last)),
            _ => Bound::Excluded(RecordId(last)),
        };
        let range = RecordRange { start, end };
        if first < last {
            let bounds = (start.map(|record| record.0), end.map(|record| record.0));
            let expected: Vec<_> = model.range(bounds).map(documents).collect();
            let found = walk(view, keyspace, range, Direction::Forward);
            assert!(found == expected, "{range:?} differs: {:?}", first_difference(&found, &expected));
        }
    }
}

fn first_difference<T: PartialEq + Clone>(one: &[T], other: &[T]) -> (usize, usize, Option<T>, Option<T>) {
    let at = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    (one.len(), other.len(), one.get(at).cloned(), other.get(at).cloned())
}

/// Inserts, replaces and deletes records, some of them far behind the newest.
fn change(store: &Store, model: &mut Model, next: &mut [u64; 3], version: u64, random: &mut Random) {
    for (index, (keyspace, step)) in COLLECTIONS.into_iter().enumerate() {
        let mut batch = Batch::new();
        let location = |record| store.latest().record(keyspace, RecordId(record), &mut Vec::new()).expect("readable");
        let mut changed = std::collections::BTreeSet::new();
        let known = next[index];
        if known > 1 {
            let from = random.below(known);
            let (changes, spread) = (random.below(400), 1 + random.below(20));
            for number in 0..changes {
                let record = 1 + ((from + number * spread) % known) * step;
                let Some(old) = location(record).filter(|_| changed.insert(record)) else { continue };
                if random.one_in(3) {
                    batch.delete_record(keyspace, RecordId(record), old);
                    model[index].remove(&record);
                } else {
                    batch.replace_record(keyspace, RecordId(record), document(record, version), old);
                    model[index].insert(record, version);
                }
            }
        }
        for _ in 0..random.below(700) {
            let record = 1 + next[index] * step;
            next[index] += 1;
            batch.insert_record(keyspace, RecordId(record), document(record, version));
            model[index].insert(record, version);
        }
        if !batch.is_empty() {
            let lsn = store.commit(&batch).expect("committed");
            store.write(lsn).expect("written");
        }
    }
}

/// Fills the log, so that documents move into extents.
fn fill(store: &Store, number: &mut u64) {
    for _ in 0..70 {
        let mut batch = Batch::new();
        *number += 1;
        batch.insert_record(FILLER, RecordId(*number), vec![b' '; 1 << 20]);
        store.commit(&batch).expect("committed");
    }
}

fn run(seed: u64, rounds: u64) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut random = Random(seed);
    let mut store = open(directory.path());
    let (mut model, mut next, mut filled) = (Model::default(), [0; 3], 0);
    let mut held: Vec<Held> = Vec::new();
    for round in 1..=rounds {
        change(&store, &mut model, &mut next, round, &mut random);
        if random.one_in(2) {
            held.push(Held::new(&store, &model, &mut random));
        }
        for held in &mut held {
            held.advance(random.below(600));
        }
        match random.below(12) {
            0..5 => store.checkpoint().expect("checkpoint"),
            5 => store.compact().expect("compacts"),
            6 if filled < 300 => {
                fill(&store, &mut filled);
                store.reclaim_all(|| true).expect("reclaims");
            }
            7 => {
                held.clear();
                store = reopen(store, directory.path());
            }
            _ => {}
        }
        check(&store.snapshot(), &model, &mut random);
        if held.len() > 3 {
            held.swap_remove(random.below(3) as usize);
        }
        for held in &mut held {
            held.advance(random.below(300));
            check(&held.snapshot, &held.model, &mut random);
        }
    }
    for held in &mut held {
        held.advance(held.rest.len() as u64 + 2);
    }
}

#[test]
fn a_scan_by_leaves_shows_what_the_tree_shows() {
    for seed in 1..=2 {
        run(seed, 40);
    }
}

#[test]
fn a_scan_while_others_write_and_checkpoint_shows_its_snapshot() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path());
    let (mut model, mut next, mut random) = (Model::default(), [0; 3], Random(77));
    for version in 1..=5 {
        change(&store, &mut model, &mut next, version, &mut random);
        store.checkpoint().expect("checkpoint");
    }
    let (snapshot, expected) = (store.snapshot(), model.clone());
    std::thread::scope(|threads| {
        let writer = threads.spawn(|| {
            for version in 6..=40 {
                change(&store, &mut model, &mut next, version, &mut random);
                match version % 5 {
                    0 => store.compact().expect("compacts"),
                    _ => store.checkpoint().expect("checkpoint"),
                }
            }
        });
        let mut random = Random(78);
        while !writer.is_finished() {
            check(&snapshot, &expected, &mut random);
        }
        writer.join().expect("writes");
    });
    check(&store.snapshot(), &model, &mut random);
}
