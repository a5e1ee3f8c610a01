//! Repeated lookups by `_id` on one snapshot. At first each lookup reads the index. After enough lookups to pay for it,
//! they use a table of the whole collection, if the table fits into the stage's memory.

use bunko_bson::{DocumentRef, ValueRef};
use bunko_catalog::{Collection, from_storage};
use bunko_errors::Result;
use bunko_operation::{Gatherer, OperationContext};
use bunko_store::{Direction, RecordRange, Snapshot, View};
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Minimum number of lookups before a table is made, however small the collection.
const LOOKUPS_MIN: u64 = 1024;
/// A table costs about as much as looking up one document in this many.
const PART_LOOKED_UP: u64 = 4;

/// Memory for a document in the table, beside its bytes and key: its place, if half of the places are in use.
const PLACE_BYTES: usize = 2 * size_of::<TableSlot>();
const KEY_BYTES_USUAL: usize = 16;

/// Looks documents of one collection up by `_id`.
pub struct IdJoin {
    collection: Arc<Collection>,
    snapshot: Arc<Snapshot>,
    operation: Arc<OperationContext>,
    state: LookupMethod,
    key: Vec<u8>,
    document: Vec<u8>,
}

enum LookupMethod {
    /// Number of lookups made in the index so far.
    OneByOne(u64),
    Table(Table),
    /// The collection is too large for a table.
    TooLarge,
}

/// All documents of a collection.
struct Table {
    places: HashTable<TableSlot>,
    hasher: RandomState,
    /// Records: each is the key's length, the key, and the document.
    records: Vec<u8>,
}

#[derive(Clone, Copy)]
struct TableSlot {
    hash: u64,
    start: usize,
}

impl IdJoin {
    /// Lookups by an operation, over a snapshot of a collection.
    pub fn new(collection: Arc<Collection>, snapshot: Arc<Snapshot>, operation: Arc<OperationContext>) -> Self {
        Self {
            collection,
            snapshot,
            operation,
            state: LookupMethod::OneByOne(0),
            key: Vec::new(),
            document: Vec::new(),
        }
    }

    /// Shows the document with this `_id`, if there is one. Returns false if the value can match several `_id`s.
    /// # Errors
    /// Errors of storage, of the visitor and of the operation.
    pub fn find(&mut self, id: ValueRef<'_>, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<()>) -> Result<bool> {
        if matches!(id, ValueRef::Array(_) | ValueRef::Null | ValueRef::Undefined | ValueRef::Regex { .. }) {
            return Ok(false);
        }
        if let LookupMethod::OneByOne(lookups) = &mut self.state {
            *lookups += 1;
            let lookups = *lookups;
            if lookups >= LOOKUPS_MIN && lookups >= self.collection.count() / PART_LOOKED_UP {
                self.state = self.table()?.map_or(LookupMethod::TooLarge, LookupMethod::Table);
            }
        }
        if let LookupMethod::Table(table) = &self.state {
            self.key.clear();
            self.collection.append_id_key(&mut self.key, id);
            if let Some(document) = table.find(&self.key) {
                visitor(document)?;
            }
            return Ok(true);
        }
        if self.collection.find_id_at(&self.snapshot, id, &mut self.document)? {
            visitor(DocumentRef::trusted(&self.document))?;
        }
        Ok(true)
    }

    /// Builds a table of the snapshot; `None` if it needs more memory than a stage may use.
    fn table(&mut self) -> Result<Option<Table>> {
        let bytes_max = self.operation.stage_bytes_now(Gatherer::Lookup);
        let count = usize::try_from(self.collection.count()).unwrap_or(usize::MAX);
        let expected = count.saturating_mul(KEY_BYTES_USUAL).saturating_add(self.collection.data_bytes() as usize);
        if expected.saturating_add(count.saturating_mul(PLACE_BYTES)) > bytes_max {
            return Ok(None);
        }
        self.operation.will_take(expected + count * PLACE_BYTES)?;
        let mut table = Table {
            places: HashTable::with_capacity(count),
            hasher: RandomState::default(),
            records: Vec::with_capacity(expected),
        };
        let mut cursor = self.snapshot.records(self.collection.records(), RecordRange::ALL, Direction::Forward);
        while let Some((_, _, bytes)) = cursor.next().map_err(from_storage)? {
            let document = DocumentRef::trusted(bytes);
            self.operation.work(1 + bytes.len() / 64)?;
            let Some(id) = document.get("_id") else { continue };
            self.key.clear();
            self.collection.append_id_key(&mut self.key, id);
            table.add(&self.key, document);
            if table.records.len() + table.places.len() * PLACE_BYTES > bytes_max {
                return Ok(None);
            }
        }
        Ok(Some(table))
    }
}

impl Table {
    fn add(&mut self, key: &[u8], document: DocumentRef<'_>) {
        let (hash, start) = (self.hasher.hash_one(key), self.records.len());
        self.records.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.records.extend_from_slice(key);
        self.records.extend_from_slice(document.as_bytes());
        self.places.insert_unique(hash, TableSlot { hash, start }, |place| place.hash);
    }

    fn find(&self, key: &[u8]) -> Option<DocumentRef<'_>> {
        let hash = self.hasher.hash_one(key);
        let place = self.places.find(hash, |place| place.hash == hash && self.record(*place).0 == key)?;
        let rest = self.record(*place).1;
        let length = rest.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize);
        Some(DocumentRef::trusted(&rest[..length]))
    }

    /// The key at a place, and the bytes behind the key.
    fn record(&self, place: TableSlot) -> (&[u8], &[u8]) {
        let record = &self.records[place.start..];
        let length = record.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize);
        record[size_of::<u32>()..].split_at(length)
    }
}
