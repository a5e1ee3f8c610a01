//! Index keys that are longer than LMDB's limit.

use crate::*;
use std::ops::Bound;

/// Keys of 4 to 5 KB in three groups, each with a common prefix of 4 KB, and short keys before, between and after
/// them.
fn sorted_keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for group in [b'b', b'c', b'd'] {
        let prefix = vec![group; 4096];
        keys.push(prefix.clone());
        keys.extend([510, 511, 512].map(|length| vec![group; length]));
        keys.push(vec![group]);
        keys.extend((0..40_u8).map(|tail| [&prefix[..], &[tail; 900]].concat()));
    }
    keys.extend([b"a".to_vec(), b"bz".to_vec(), b"e".to_vec()]);
    keys.sort();
    keys
}

fn put(store: &Store, keys: &[Vec<u8>], which: impl Fn(usize) -> bool) {
    let mut batch = Batch::new();
    for (number, key) in keys.iter().enumerate().filter(|(number, _)| which(*number)) {
        batch.put_key(INDEX, key, RecordId(number as u64));
    }
    commit(store, &batch);
}

#[test]
fn long_keys_are_exact_and_in_order() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    let sorted = sorted_keys();
    // Some keys in the data file, some added to the same entries by a second checkpoint, some in the memtable.
    put(&store, &sorted, |number| number % 3 == 0);
    store.checkpoint().expect("checkpoint");
    put(&store, &sorted, |number| number % 3 == 1);
    store.checkpoint().expect("checkpoint");
    put(&store, &sorted, |number| number % 3 == 2);
    assert_all(&store, &sorted, |_| true);
    store.checkpoint().expect("checkpoint");
    assert_all(&store, &sorted, |_| true);
    let mut batch = Batch::new();
    for key in sorted.iter().step_by(2) {
        batch.delete_key(INDEX, key);
    }
    commit(&store, &batch);
    assert_all(&store, &sorted, |number| number % 2 == 1);
    store.checkpoint().expect("checkpoint");
    assert_all(&store, &sorted, |number| number % 2 == 1);
    let mut batch = Batch::new();
    for key in &sorted {
        batch.delete_key(INDEX, key);
    }
    commit(&store, &batch);
    store.checkpoint().expect("checkpoint");
    assert_all(&store, &sorted, |_| false);
}

fn assert_all(store: &Store, sorted: &[Vec<u8>], is_there: impl Fn(usize) -> bool) {
    let snapshot = store.snapshot();
    let entry = |number: usize| (sorted[number].clone(), number as u64);
    let all: Vec<_> = (0..sorted.len()).filter(|number| is_there(*number)).map(entry).collect();
    for (number, key) in sorted.iter().enumerate() {
        let expected = is_there(number).then_some(RecordId(number as u64));
        assert_eq!(snapshot.key(INDEX, key).expect("readable"), expected);
    }
    for start in (0..sorted.len()).step_by(7) {
        let end = (start + 31).min(sorted.len() - 1);
        let ranges: [(Bound<usize>, Bound<usize>); 4] = [
            (Bound::Unbounded, Bound::Unbounded),
            (Bound::Included(start), Bound::Excluded(end)),
            (Bound::Excluded(start), Bound::Included(end)),
            (Bound::Excluded(start), Bound::Unbounded),
        ];
        for (from, to) in ranges {
            let within = |number: &u64| (from, to).contains_number(*number as usize);
            let mut expected: Vec<_> = all.iter().filter(|(_, number)| within(number)).cloned().collect();
            let range = || KeyRange {
                start: from.map(|number| sorted[number].clone()),
                end: to.map(|number| sorted[number].clone()),
            };
            assert!(keys(&snapshot, range(), Direction::Forward).expect("readable") == expected, "{from:?} {to:?}");
            expected.reverse();
            assert!(keys(&snapshot, range(), Direction::Backward).expect("readable") == expected, "{from:?} {to:?}");
        }
    }
}

/// `RangeBounds::contains` for a pair of bounds by value.
trait ContainsNumber {
    fn contains_number(&self, number: usize) -> bool;
}

impl ContainsNumber for (Bound<usize>, Bound<usize>) {
    fn contains_number(&self, number: usize) -> bool {
        std::ops::RangeBounds::contains(self, &number)
    }
}
