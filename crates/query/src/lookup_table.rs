//! All documents of a collection by a key, in memory, for a join that has made many lookups in an index.
//!
//! A lookup in a table costs a part of one in an index, but the table is made from all documents. So joins look up in
//! the index at first and make the table when their lookups have cost as much as the table does: however many follow,
//! both together cost at most twice what the better way alone would have cost. No estimate of the number of lookups is
//! needed.

use bunko_bson::DocumentRef;
use bunko_catalog::{Collection, from_storage};
use bunko_errors::Result;
use bunko_operation::{Gatherer, OperationContext};
use bunko_store::{Direction, RecordRange, Snapshot, View};
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Minimum number of lookups before a table is made, however small the collection.
const LOOKUPS_MIN: u64 = 1024;
/// A table costs about as much as looking up one document in this many.
const PART_LOOKED_UP: u64 = 4;

/// Memory for a document in the table, beside its bytes and key: its place, if half of the places are in use.
const PLACE_BYTES: usize = 2 * size_of::<TableSlot>();
const KEY_BYTES_USUAL: usize = 16;
/// Bytes of a record before its key: the key's length, and the start of the next record of the key.
const HEAD_BYTES: usize = size_of::<u32>() + size_of::<u64>();
/// The next record of a key's first one.
const NONE: u64 = u64::MAX;

/// Documents by key.
pub(crate) struct LookupTable {
    places: HashTable<TableSlot>,
    hasher: RandomState,
    /// Records: each is a head, the key, and the document.
    records: Vec<u8>,
}

/// The last record of a key.
#[derive(Clone, Copy)]
struct TableSlot {
    hash: u64,
    start: usize,
}

/// Adds the keys of a document to a table.
pub(crate) struct KeysOf<'t> {
    table: &'t mut LookupTable,
    document: DocumentRef<'t>,
}

impl KeysOf<'_> {
    /// Adds one key.
    pub fn add(&mut self, key: &[u8]) {
        self.table.add(key, self.document);
    }
}

/// How documents are looked up.
pub(crate) enum LookupMethod {
    /// In the index: the number of lookups so far, and of documents that they found.
    OneByOne {
        lookups: u64,
        found: u64,
    },
    Table(LookupTable),
    /// The collection is too large for a table.
    TooLarge,
}

impl LookupMethod {
    /// No lookups yet.
    pub const FIRST: Self = Self::OneByOne { lookups: 0, found: 0 };

    /// Counts a lookup. Makes the table by `make` once it pays.
    /// # Errors
    /// As `make`.
    pub fn count(&mut self, collection: &Collection, make: impl FnOnce() -> Result<Option<LookupTable>>) -> Result<()> {
        let Self::OneByOne { lookups, found } = self else { return Ok(()) };
        *lookups += 1;
        let looked_up = (*lookups).max(*found);
        if *lookups >= LOOKUPS_MIN && looked_up >= collection.count() / PART_LOOKED_UP {
            *self = make()?.map_or(Self::TooLarge, Self::Table);
        }
        Ok(())
    }

    /// Notes the documents that a lookup in the index found.
    pub fn note_found(&mut self, more: usize) {
        if let Self::OneByOne { found, .. } = self {
            *found += more as u64;
        }
    }
}

impl LookupTable {
    /// A table of the documents in a snapshot; `keys` names the keys of each. `None` if it needs more memory than a
    /// stage may use.
    /// # Errors
    /// Failures of the storage, errors of `keys` and of the operation.
    pub fn of(
        collection: &Collection,
        snapshot: &Snapshot,
        operation: &OperationContext,
        keys: &mut dyn FnMut(DocumentRef<'_>, &mut KeysOf<'_>) -> Result<()>,
    ) -> Result<Option<Self>> {
        let bytes_max = operation.stage_bytes_now(Gatherer::Lookup);
        let count = usize::try_from(collection.count()).unwrap_or(usize::MAX);
        let beside = count.saturating_mul(KEY_BYTES_USUAL + HEAD_BYTES);
        let expected = beside.saturating_add(collection.data_bytes() as usize);
        if expected.saturating_add(count.saturating_mul(PLACE_BYTES)) > bytes_max {
            return Ok(None);
        }
        operation.will_take(expected + count * PLACE_BYTES)?;
        let mut table = Self {
            places: HashTable::with_capacity(count),
            hasher: RandomState::default(),
            records: Vec::with_capacity(expected),
        };
        let mut cursor = snapshot.records(collection.records(), RecordRange::ALL, Direction::Forward);
        while let Some((_, _, bytes)) = cursor.next().map_err(from_storage)? {
            operation.work(1 + bytes.len() / 64)?;
            let document = DocumentRef::trusted(bytes);
            keys(document, &mut KeysOf { table: &mut table, document })?;
            if table.records.len() + table.places.len() * PLACE_BYTES > bytes_max {
                return Ok(None);
            }
        }
        Ok(Some(table))
    }

    fn add(&mut self, key: &[u8], document: DocumentRef<'_>) {
        let (hash, start) = (self.hasher.hash_one(key), self.records.len());
        let records = &self.records;
        let is_same = |place: &TableSlot| place.hash == hash && Record::at(records, place.start).key == key;
        let before = match self.places.find_mut(hash, is_same) {
            Some(place) => std::mem::replace(&mut place.start, start) as u64,
            None => {
                self.places.insert_unique(hash, TableSlot { hash, start }, |place| place.hash);
                NONE
            }
        };
        self.records.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.records.extend_from_slice(&before.to_le_bytes());
        self.records.extend_from_slice(key);
        self.records.extend_from_slice(document.as_bytes());
    }

    /// Shows the documents with a key in the order of the collection. `starts` is room for their places.
    /// # Errors
    /// As `visitor`.
    pub fn find(
        &self,
        key: &[u8],
        starts: &mut Vec<usize>,
        visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<()>,
    ) -> Result<()> {
        let hash = self.hasher.hash_one(key);
        let is_same = |place: &TableSlot| place.hash == hash && Record::at(&self.records, place.start).key == key;
        starts.clear();
        let mut next = self.places.find(hash, is_same).map(|place| place.start);
        while let Some(start) = next {
            starts.push(start);
            next = Some(Record::at(&self.records, start).before).filter(|before| *before != NONE).map(|at| at as usize);
        }
        starts.iter().rev().try_for_each(|start| visitor(Record::at(&self.records, *start).document))
    }
}

/// A record of a table, and the start of the record before it with the same key.
struct Record<'t> {
    before: u64,
    key: &'t [u8],
    document: DocumentRef<'t>,
}

impl<'t> Record<'t> {
    fn at(records: &'t [u8], start: usize) -> Self {
        let (head, rest) = records[start..].split_at(HEAD_BYTES);
        let (key_bytes, before) = head.split_at(size_of::<u32>());
        let (key, rest) = rest.split_at(length_at(key_bytes));
        let before = before.first_chunk().map_or(NONE, |before| u64::from_le_bytes(*before));
        Self { before, key, document: DocumentRef::trusted(&rest[..length_at(rest)]) }
    }
}

fn length_at(bytes: &[u8]) -> usize {
    bytes.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize)
}
