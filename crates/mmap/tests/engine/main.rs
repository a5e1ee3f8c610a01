//! The engine in a store: data that survives, data that is visible, and damage that is noticed.

mod bus_error;
mod damage;
mod keys;
mod model;
mod recovery;
mod space;

use bunko_mmap::MmapOptions;
use bunko_store::{
    Batch, Direction, EngineTable, KeyRange, KeyspaceId, RecordId, RecordRange, StorageError, Store, StoreOptions, View,
};
use bunko_testkit::directory::crash_copy;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const RECORDS: KeyspaceId = KeyspaceId(5);
const INDEX: KeyspaceId = KeyspaceId(6);

fn open(path: &Path) -> Result<Arc<Store>, StorageError> {
    let options = StoreOptions { unflushed_bytes_max: 1 << 30, ..StoreOptions::at_rest() };
    Store::open(path, options, EngineTable::only(bunko_mmap::kind(MmapOptions::default())))
}

fn data_file(directory: &Path) -> PathBuf {
    directory.join("mmap/data.mdb")
}

fn commit(store: &Store, batch: &Batch<'_>) {
    let lsn = store.commit(batch).expect("committed");
    store.write(lsn).expect("written");
}

fn document(number: u64) -> Vec<u8> {
    format!("document {number} ").repeat(10).into_bytes()
}

fn insert(store: &Store, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut batch = Batch::new();
        batch.insert_record(RECORDS, RecordId(number), document(number));
        batch.put_key(INDEX, format!("key{number:08}").as_bytes(), RecordId(number));
        commit(store, &batch);
    }
}

/// Records of a view in a range, with their documents.
fn records(view: &dyn View, range: RecordRange, direction: Direction) -> Result<Vec<(u64, Vec<u8>)>, StorageError> {
    let mut cursor = view.records(RECORDS, range, direction);
    let mut seen = Vec::new();
    while let Some((record, _, bytes)) = cursor.next()? {
        seen.push((record.0, bytes.to_vec()));
    }
    Ok(seen)
}

/// Keys of a view in a range.
fn keys(view: &dyn View, range: KeyRange, direction: Direction) -> Result<Vec<(Vec<u8>, u64)>, StorageError> {
    let mut cursor = view.keys(INDEX, range, direction);
    let mut seen = Vec::new();
    while let Some((key, record)) = cursor.next()? {
        seen.push((key.to_vec(), record.0));
    }
    Ok(seen)
}
