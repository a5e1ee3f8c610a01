//! A store in memory, and operations on it for the tests.

use bunko_memory::{MemoryOptions, kind};
use bunko_store::{
    Batch, Direction, EngineTable, KeyRange, KeyspaceId, Presence, RecordId, RecordRange, Store, StoreOptions, View,
};
use std::path::Path;
use std::sync::Arc;

pub fn store(limit_bytes: u64) -> Arc<Store> {
    // The store in memory writes nothing there, so the path need not exist.
    let path = Path::new("/nonexistent/bunko");
    Store::open(path, StoreOptions::at_rest(), EngineTable::only(kind(MemoryOptions { limit_bytes }))).expect("opens")
}

pub fn used_bytes(store: &Store) -> u64 {
    store.statistics().engines_bytes
}

/// Puts a document, with the record's number as primary key.
pub fn insert(batch: &mut Batch<'_>, records: KeyspaceId, keys: KeyspaceId, record: u64, document: &[u8]) {
    batch.insert_record(records, RecordId(record), document.to_vec());
    batch.put_primary_key(keys, &record.to_be_bytes(), RecordId(record), Presence::New);
}

/// Replaces an existing document.
pub fn replace(store: &Store, batch: &mut Batch<'_>, records: KeyspaceId, record: u64, document: &[u8]) {
    let replaced = store.latest().record(records, RecordId(record), &mut Vec::new()).expect("reads").expect("is there");
    batch.replace_record(records, RecordId(record), document.to_vec(), replaced);
}

/// Deletes an existing document and its primary key.
pub fn delete(store: &Store, batch: &mut Batch<'_>, records: KeyspaceId, keys: KeyspaceId, record: u64) {
    let replaced = store.latest().record(records, RecordId(record), &mut Vec::new()).expect("reads").expect("is there");
    batch.delete_record(records, RecordId(record), replaced);
    batch.delete_key(keys, &record.to_be_bytes());
}

pub fn documents(
    view: &dyn View,
    records: KeyspaceId,
    range: RecordRange,
    direction: Direction,
) -> Vec<(u64, Vec<u8>)> {
    let mut cursor = view.records(records, range, direction);
    let mut found = Vec::new();
    while let Some((record, location, document)) = cursor.next().expect("walks") {
        assert_eq!(location.length as usize, document.len());
        found.push((record.0, document.to_vec()));
    }
    found
}

pub fn keys(view: &dyn View, keyspace: KeyspaceId, range: KeyRange, direction: Direction) -> Vec<(Vec<u8>, u64)> {
    let mut cursor = view.keys(keyspace, range, direction);
    let mut found = Vec::new();
    while let Some((key, record)) = cursor.next().expect("walks") {
        found.push((key.to_vec(), record.0));
    }
    found
}
