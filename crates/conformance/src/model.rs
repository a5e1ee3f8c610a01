//! The expected contents of a store: the catalog's collections, in maps.

use crate::document::{Document, key};
use bunko_store::{KeyspaceId, KeyspaceStatistics, Survival};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// One state of a store, cheap to copy.
#[derive(Clone, Debug)]
pub struct Model {
    /// Collections by number.
    pub collections: BTreeMap<u32, Arc<Collection>>,
    next_collection: u32,
}

/// A record store, an index of primary keys and an index of other keys, all in one engine.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Name of the engine.
    pub engine: &'static str,
    /// Whether its contents survive a restart.
    pub survival: Survival,
    /// The record store.
    pub records: KeyspaceId,
    /// The index of primary keys.
    pub ids: KeyspaceId,
    /// The index of other keys, each followed by its record's id.
    pub values: KeyspaceId,
    /// Documents by record id.
    pub documents: BTreeMap<u64, Stored>,
    /// Records by primary key.
    pub by_id: BTreeMap<Vec<u8>, u64>,
    /// Records by other key.
    pub by_value: BTreeMap<Vec<u8>, u64>,
    /// The record id of the next document.
    pub next_record: u64,
}

/// A document and its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The document.
    pub document: Document,
    /// Number of the primary key.
    pub id: u8,
    /// Number of the other key.
    pub value: u8,
}

/// The other key of a record, as a non-unique index stores it.
pub fn value_key(number: u8, record: u64) -> Vec<u8> {
    let mut key = key(number);
    key.extend_from_slice(&record.to_be_bytes());
    key
}

impl Default for Model {
    /// A store with only the catalog, which is collection 0.
    fn default() -> Self {
        Self { collections: BTreeMap::new(), next_collection: 1 }
    }
}

impl Model {
    /// Adds an empty collection and returns its number.
    pub fn create(&mut self, engine: &'static str, survival: Survival) -> u32 {
        let number = self.next_collection;
        self.next_collection += 1;
        let collection = Collection {
            engine,
            survival,
            records: KeyspaceId(3 * number),
            ids: KeyspaceId(3 * number + 1),
            values: KeyspaceId(3 * number + 2),
            documents: BTreeMap::new(),
            by_id: BTreeMap::new(),
            by_value: BTreeMap::new(),
            next_record: 1,
        };
        self.collections.insert(number, Arc::new(collection));
        number
    }

    /// The collection with index `number` modulo their count; `None` if there are none.
    pub fn pick(&self, number: usize) -> Option<u32> {
        let count = self.collections.len();
        self.collections.keys().nth(number.checked_rem(count)?).copied()
    }

    /// The collection, for changing it.
    pub fn collection_mut(&mut self, number: u32) -> &mut Collection {
        Arc::make_mut(self.collections.get_mut(&number).expect("a collection that is there"))
    }

    /// Restarts the model: volatile collections lose their documents. The catalog finds the next record id by looking
    /// at the last record.
    pub fn restart(&mut self) {
        for collection in self.collections.values_mut() {
            let collection = Arc::make_mut(collection);
            if collection.survival == Survival::Volatile {
                collection.documents.clear();
                collection.by_id.clear();
                collection.by_value.clear();
            }
            collection.next_record = collection.documents.last_key_value().map_or(1, |(last, _)| last + 1);
        }
    }
}

impl Collection {
    /// The record with index `number` modulo their count; `None` if there are none.
    pub fn pick(&self, number: usize) -> Option<(u64, Stored)> {
        let count = self.documents.len();
        self.documents.iter().nth(number.checked_rem(count)?).map(|(&record, &stored)| (record, stored))
    }

    /// Adds a document under the next record id.
    pub fn insert(&mut self, stored: Stored) -> u64 {
        let record = self.next_record;
        self.next_record += 1;
        self.documents.insert(record, stored);
        self.by_id.insert(key(stored.id), record);
        self.by_value.insert(value_key(stored.value, record), record);
        record
    }

    /// Replaces a document; its primary key stays.
    pub fn replace(&mut self, record: u64, stored: Stored) {
        if let Some(old) = self.documents.insert(record, stored) {
            self.by_value.remove(&value_key(old.value, record));
        }
        self.by_value.insert(value_key(stored.value, record), record);
    }

    /// Removes a document.
    pub fn delete(&mut self, record: u64) {
        if let Some(old) = self.documents.remove(&record) {
            self.by_id.remove(&key(old.id));
            self.by_value.remove(&value_key(old.value, record));
        }
    }

    /// Counts that the store should have.
    pub fn statistics(&self) -> [(KeyspaceId, KeyspaceStatistics); 3] {
        let keys = |keys: &BTreeMap<Vec<u8>, u64>| KeyspaceStatistics {
            entries: keys.len() as u64,
            bytes: keys.keys().map(|key| key.len() as u64).sum(),
        };
        let documents = KeyspaceStatistics {
            entries: self.documents.len() as u64,
            bytes: self.documents.values().map(|stored| u64::from(stored.document.length)).sum(),
        };
        [(self.records, documents), (self.ids, keys(&self.by_id)), (self.values, keys(&self.by_value))]
    }
}

/// The part of a map in a range, which may be empty: a B-tree would panic on a range that ends before it begins.
pub fn in_range<'m, K: Ord, V>(
    map: &'m BTreeMap<K, V>,
    start: &'m Bound<K>,
    end: &'m Bound<K>,
) -> impl DoubleEndedIterator<Item = (&'m K, &'m V)> {
    let is_empty = match (start, end) {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => start >= end,
        _ => false,
    };
    let range = (!is_empty).then(|| map.range((start.as_ref(), end.as_ref())));
    range.into_iter().flatten()
}
