//! Walks over index keys in any mix of tables and memtables show the keys of a model, in both directions, within any
//! range, and in any open snapshot.

use crate::seeded::{open, reopen};
use bunko_store::{Batch, Direction, KeyCursor, KeyRange, KeyspaceId, RecordId, Snapshot, Store, View};
use bunko_testkit::random::Random;
use std::collections::BTreeMap;
use std::ops::Bound;

/// In the tree, all keys of the second keyspace stand after those of the first.
const KEYSPACES: [KeyspaceId; 2] = [KeyspaceId(5), KeyspaceId(6)];
const KEYS: u64 = 4000;

type Model = [BTreeMap<Vec<u8>, u64>; 2];

/// Keys of several lengths, so that some keys begin with others.
fn key(number: u64) -> Vec<u8> {
    let mut key = (number / 3).to_be_bytes()[5..].to_vec();
    key.extend(std::iter::repeat_n(b'x', (number % 3) as usize));
    key
}

fn walk(view: &dyn View, keyspace: KeyspaceId, range: KeyRange, direction: Direction) -> Vec<(Vec<u8>, u64)> {
    let mut cursor = view.keys(keyspace, range, direction);
    let mut found = Vec::new();
    while let Some((key, record)) = cursor.next().expect("readable") {
        found.push((key.to_vec(), record.0));
    }
    assert!(cursor.next().expect("readable").is_none(), "a walk stays at its end");
    found
}

fn bound(random: &mut Random, key: Vec<u8>) -> Bound<Vec<u8>> {
    match random.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

fn check(view: &dyn View, model: &Model, random: &mut Random) {
    for (keyspace, model) in KEYSPACES.into_iter().zip(model) {
        for _ in 0..12 {
            let first = random.below(KEYS);
            let width = [1, 2, 30, KEYS][random.below(4) as usize];
            let last = (first + 1 + random.below(width)).min(KEYS);
            let range = KeyRange { start: bound(random, key(first)), end: bound(random, key(last)) };
            let bounds = (range.start.as_ref().map(Vec::as_slice), range.end.as_ref().map(Vec::as_slice));
            let expected: Vec<_> = model.range::<[u8], _>(bounds).map(|(key, record)| (key.clone(), *record)).collect();
            let forward = walk(view, keyspace, range.clone(), Direction::Forward);
            assert!(forward == expected, "{range:?} of {keyspace:?}: {} for {}", forward.len(), expected.len());
            let mut backward = walk(view, keyspace, range.clone(), Direction::Backward);
            backward.reverse();
            assert!(backward == expected, "{range:?} of {keyspace:?} back: {} for {}", backward.len(), expected.len());
        }
    }
}

/// One cursor shows range after range, whether or not each is walked to its end.
fn check_ranges(view: &dyn View, model: &Model, random: &mut Random) {
    for (keyspace, model) in KEYSPACES.into_iter().zip(model) {
        let mut first = random.below(KEYS / 4);
        let mut cursor: Option<Box<dyn KeyCursor>> = None;
        while first < KEYS {
            let width = [2, 20, 400][random.below(3) as usize];
            let last = first + 1 + random.below(width);
            let (start, end) = (key(first), key(last));
            let walk = match cursor.take() {
                None => view.keys(keyspace, between(&start, &end), Direction::Forward),
                Some(mut cursor) => {
                    assert!(cursor.go_to(&start, &end), "a walk in ascending order goes on");
                    cursor
                }
            };
            let walk = cursor.insert(walk);
            let wanted = if random.one_in(3) { random.below(5) as usize } else { usize::MAX };
            let mut found = Vec::new();
            while found.len() < wanted
                && let Some((key, record)) = walk.next().expect("readable")
            {
                found.push((key.to_vec(), record.0));
            }
            let bounds = (Bound::Included(start.as_slice()), Bound::Excluded(end.as_slice()));
            let expected = model.range::<[u8], _>(bounds).map(|(key, record)| (key.clone(), *record));
            let expected: Vec<_> = expected.take(wanted).collect();
            assert!(found == expected, "{start:?} to {end:?}: {} for {}", found.len(), expected.len());
            let gap = [1, 2, 50, 900][random.below(4) as usize];
            first = last + random.below(gap);
        }
    }
}

fn between(start: &[u8], end: &[u8]) -> KeyRange {
    KeyRange { start: Bound::Included(start.to_vec()), end: Bound::Excluded(end.to_vec()) }
}

/// An open cursor, which sees what its snapshot sees, whatever is flushed and merged meanwhile.
struct HeldWalk {
    _snapshot: Snapshot,
    cursor: Box<dyn KeyCursor>,
    keys: std::iter::Peekable<std::vec::IntoIter<(Vec<u8>, u64)>>,
}

impl HeldWalk {
    fn new(store: &Store, model: &Model, random: &mut Random) -> Self {
        let (snapshot, number) = (store.snapshot(), random.below(2) as usize);
        let cursor = snapshot.keys(KEYSPACES[number], KeyRange::ALL, Direction::Forward);
        let keys: Vec<_> = model[number].clone().into_iter().collect();
        Self { _snapshot: snapshot, cursor, keys: keys.into_iter().peekable() }
    }

    fn advance(&mut self, steps: u64, random: &mut Random) {
        if random.one_in(4)
            && let Some((start, _)) = self.keys.peek().cloned()
        {
            assert!(self.cursor.go_to(&start, &[0xff]));
        }
        for _ in 0..steps {
            let shown = self.cursor.next().expect("readable").map(|(key, record)| (key.to_vec(), record.0));
            assert_eq!(shown, self.keys.next());
        }
    }
}

/// Puts keys, gives them other records, and deletes them: a few scattered ones, or all of a stretch.
fn change(store: &Store, model: &mut Model, version: u64, random: &mut Random) {
    for (keyspace, model) in KEYSPACES.into_iter().zip(model) {
        let mut batch = Batch::new();
        let (start, step) = (random.below(KEYS), 1 + random.below(7));
        let is_deletion = random.one_in(3);
        for count in 0..random.below(600) {
            let key = key((start + count * step) % KEYS);
            if is_deletion {
                if model.remove(&key).is_some() {
                    batch.delete_key(keyspace, &key);
                }
            } else if model.insert(key.clone(), version).is_none_or(|before| before != version) {
                batch.put_key(keyspace, &key, RecordId(version));
            }
        }
        if !batch.is_empty() {
            let lsn = store.commit(&batch).expect("committed");
            store.write(lsn).expect("written");
        }
    }
}

#[test]
fn walks_show_what_a_model_has() {
    for seed in 1..=2 {
        let directory = tempfile::tempdir().expect("temporary directory");
        let mut random = Random(seed);
        let mut store = open(directory.path());
        let mut model = Model::default();
        let mut held: Vec<(Snapshot, Model)> = Vec::new();
        let mut walks: Vec<HeldWalk> = Vec::new();
        for round in 1..=30 {
            change(&store, &mut model, round, &mut random);
            if random.one_in(3) {
                held.push((store.snapshot(), model.clone()));
            }
            match random.below(10) {
                0..5 => store.checkpoint().expect("checkpoint"),
                5 => store.compact().expect("compacts"),
                6 => {
                    held.clear();
                    walks.clear();
                    store = reopen(store, directory.path());
                }
                _ => {}
            }
            check(&store.snapshot(), &model, &mut random);
            check_ranges(&store.snapshot(), &model, &mut random);
            for (snapshot, model) in &held {
                check(snapshot, model, &mut random);
                check_ranges(snapshot, model, &mut random);
            }
            walks.push(HeldWalk::new(&store, &model, &mut random));
            for walk in &mut walks {
                let steps = random.below(400);
                walk.advance(steps, &mut random);
            }
            if walks.len() > 4 {
                walks.swap_remove(random.below(4) as usize);
            }
            if held.len() > 3 {
                held.swap_remove(random.below(3) as usize);
            }
        }
    }
}
