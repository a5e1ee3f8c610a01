//! The list of a table's blocks, where long keys make it larger than a share of its cache.

use crate::opened;
use bunko_store::{Batch, Direction, KeyRange, KeyspaceId, RecordId, Store, View};
use std::ops::Bound;
use std::sync::Arc;

const INDEX: KeyspaceId = KeyspaceId(6);
const KEYS: u64 = 8_000;
const KEY_BYTES: usize = 3_000;
const BATCH_KEYS: u64 = 1_000;
const READERS: u64 = 8;

fn key(number: u64) -> Vec<u8> {
    let mut key = format!("{number:06}").into_bytes();
    key.resize(KEY_BYTES, b'x');
    key
}

fn read_one(store: &Store, number: u64) {
    let view = store.snapshot();
    let key = key(number);
    let range = KeyRange { start: Bound::Included(key.clone()), end: Bound::Unbounded };
    let mut cursor = view.keys(INDEX, range, Direction::Forward);
    let (found, record) = cursor.next().expect("readable").expect("there");
    assert_eq!((found, record), (key.as_slice(), RecordId(number)));
}

#[test]
fn readers_at_once_decode_a_long_list_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let store: Arc<Store> = opened::open(directory.path(), |_, _| {}).expect("opens");
    for first in (0..KEYS).step_by(BATCH_KEYS as usize) {
        let mut batch = Batch::new();
        for number in first..first + BATCH_KEYS {
            batch.put_key(INDEX, &key(number), RecordId(number));
        }
        store.commit(&batch).expect("committed");
    }
    store.checkpoint().expect("checkpoint");
    let of_tree = store.pinned_bytes();
    assert!(of_tree > KEYS * KEY_BYTES as u64 / 2, "{of_tree}");
    std::thread::scope(|scope| {
        for reader in 0..READERS {
            let store = &store;
            scope.spawn(move || read_one(store, reader * (KEYS / READERS)));
        }
    });
    let with_lists = store.pinned_bytes();
    assert!(with_lists > of_tree && with_lists < of_tree * 5 / 2, "{of_tree} of the tree, {with_lists} with lists");
    read_one(&store, KEYS / 3);
    assert_eq!(store.pinned_bytes(), with_lists, "a list that was decoded stays in the cache");
    store.close().expect("closes");
}
