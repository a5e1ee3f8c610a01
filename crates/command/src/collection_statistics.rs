//! Sizes and counts of one collection, for `collStats`, `$collStats`, `dbStats` and `listDatabases`.
//!
//! Counts, and the bytes of documents and index keys, are exact at every moment: they change in the same step as what
//! they count, and are there again after a crash. What is stored takes what the engine that holds it says: `storageSize`
//! and `indexSizes` are what is alive as it is stored, compressed where it is, and what is free for reuse.

use crate::capped_options::is_capped;
use crate::storage_engine_option::MMAP;
use bunko_bson::{DocumentBuf, ValueRef, Writer, number};
use bunko_catalog::{Collection, Index, IndexState};
use bunko_store::{KeyspaceStatistics, Space, Store};
use std::sync::Arc;

/// What a collection holds; sizes in bytes.
#[derive(Clone, Debug)]
pub(crate) struct CollectionStatistics {
    /// Documents.
    pub count: u64,
    /// Bytes of the documents.
    pub data_bytes: u64,
    /// What the documents take where they are stored.
    pub storage: Space,
    /// Of a capped collection what it may hold: documents, 0 where nothing is said, and bytes.
    pub cap: Option<(i64, i64)>,
    /// The indexes, that on `_id` first.
    pub indexes: Vec<IndexStatistics>,
    /// The engine's name.
    pub engine: &'static str,
    /// What the engine was told when the collection was made.
    pub settings: DocumentBuf,
}

/// What an index holds.
#[derive(Clone, Debug)]
pub(crate) struct IndexStatistics {
    pub name: String,
    pub state: IndexState,
    pub keys: KeyspaceStatistics,
    /// What it takes where it is stored.
    pub storage: Space,
}

/// Bytes that are somebody's, whether they hold something or not.
fn total(space: Space) -> u64 {
    space.used_bytes + space.free_bytes
}

impl CollectionStatistics {
    /// What a collection holds now.
    pub(crate) fn of(collection: &Collection) -> Self {
        let indexes = collection.indexes();
        let spaces = collection.store().space(&collection.keyspaces(&indexes));
        Self::new(collection, &indexes, &mut spaces.into_iter())
    }

    /// What each of some collections holds now.
    pub(crate) fn of_all(store: &Store, collections: &[Arc<Collection>]) -> Vec<Self> {
        let indexes: Vec<_> = collections.iter().map(|collection| collection.indexes()).collect();
        let with_indexes = || collections.iter().zip(&indexes);
        let keyspaces: Vec<_> =
            with_indexes().flat_map(|(collection, indexes)| collection.keyspaces(indexes)).collect();
        let mut spaces = store.space(&keyspaces).into_iter();
        with_indexes().map(|(collection, indexes)| Self::new(collection, indexes, &mut spaces)).collect()
    }

    /// Takes from `spaces` what it asked for with its keyspaces.
    fn new(collection: &Collection, indexes: &[Arc<Index>], spaces: &mut impl Iterator<Item = Space>) -> Self {
        let storage = spaces.next().unwrap_or_default();
        Self {
            count: collection.count(),
            data_bytes: collection.data_bytes(),
            storage,
            cap: cap(collection),
            indexes: indexes
                .iter()
                .zip(spaces)
                .map(|(index, storage)| IndexStatistics {
                    name: index.name.clone(),
                    state: index.state(),
                    keys: collection.index_statistics(index),
                    storage,
                })
                .collect(),
            engine: collection.store().engine_name_of(collection.records()),
            settings: collection.engine.settings.clone(),
        }
    }

    /// Bytes that the documents take, those included that are free for reuse.
    pub(crate) fn storage_bytes(&self) -> u64 {
        total(self.storage)
    }

    /// The same of all indexes.
    pub(crate) fn index_bytes(&self) -> u64 {
        self.indexes.iter().map(|index| total(index.storage)).sum()
    }

    /// Bytes of all indexes that are free for reuse.
    pub(crate) fn index_free_bytes(&self) -> u64 {
        self.indexes.iter().map(|index| index.storage.free_bytes).sum()
    }

    /// Bytes of documents and indexes.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.storage_bytes() + self.index_bytes()
    }

    /// Bytes that compacting may give back.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.storage.free_bytes + self.index_free_bytes()
    }

    /// Whether it is in the engine whose file all databases share.
    pub(crate) fn is_in_shared_file(&self) -> bool {
        self.engine == MMAP
    }

    /// Appends the fields from `size` to `scaleFactor`; sizes are divided by `scale` and lose their fractions.
    pub(crate) fn write(&self, reply: &mut Writer<'_>, scale: u64) {
        reply.append("size", smallest_integer(self.data_bytes / scale)).append("count", smallest_integer(self.count));
        if let Some(average) = self.data_bytes.checked_div(self.count) {
            reply.append("avgObjSize", smallest_integer(average));
        }
        reply
            .append("numOrphanDocs", 0)
            .append("storageSize", smallest_integer(self.storage_bytes() / scale))
            .append("freeStorageSize", smallest_integer(self.storage.free_bytes / scale))
            .append("capped", self.cap.is_some());
        if let Some((documents, bytes)) = self.cap {
            reply.append("max", smallest_integer(documents.unsigned_abs()));
            reply.append("maxSize", smallest_integer(bytes.unsigned_abs() / scale));
        }
        // Where MongoDB shows `wiredTiger`, what is known of the engine that holds the collection.
        reply.begin_document(self.engine).append("settings", &self.settings).end();
        reply.append("nindexes", self.indexes.len() as i32).begin_document("indexDetails");
        for index in &self.indexes {
            index.write(reply, scale);
        }
        reply.end().begin_array("indexBuilds");
        let builds = self.indexes.iter().filter(|index| index.state == IndexState::Building);
        for (position, index) in builds.enumerate() {
            reply.push(position, index.name.as_str());
        }
        reply
            .end()
            .append("totalIndexSize", smallest_integer(self.index_bytes() / scale))
            .append("totalSize", smallest_integer(self.total_bytes() / scale))
            .begin_document("indexSizes");
        for index in &self.indexes {
            reply.append(&index.name, smallest_integer(total(index.storage) / scale));
        }
        reply.end().append("scaleFactor", smallest_integer(scale));
    }

    /// The same without the index of that name.
    pub fn without_index(mut self, name: &str) -> Self {
        self.indexes.retain(|index| index.name != name);
        self
    }
}

impl IndexStatistics {
    /// Appends what `indexDetails` shows.
    fn write(&self, reply: &mut Writer<'_>, scale: u64) {
        reply
            .begin_document(&self.name)
            .append("entries", smallest_integer(self.keys.entries))
            .append("keySize", smallest_integer(self.keys.bytes / scale))
            .append("freeStorageSize", smallest_integer(self.storage.free_bytes / scale))
            .end();
    }
}

/// Appends the fields that stand for a collection that does not exist.
pub(crate) fn write_missing(reply: &mut Writer<'_>, scale: u64) {
    for name in ["size", "count", "numOrphanDocs", "storageSize", "totalSize", "nindexes", "totalIndexSize"] {
        reply.append(name, 0);
    }
    for name in ["indexDetails", "indexSizes"] {
        reply.begin_document(name).end();
    }
    reply.append("scaleFactor", smallest_integer(scale));
}

/// An int where the number fits, else a long, as the server's statistics have it.
pub(crate) fn smallest_integer(number: u64) -> ValueRef<'static> {
    match i32::try_from(number) {
        Ok(number) => ValueRef::Int32(number),
        Err(_) => ValueRef::Int64(i64::try_from(number).unwrap_or(i64::MAX)),
    }
}

/// What a capped collection may hold.
fn cap(collection: &Collection) -> Option<(i64, i64)> {
    let options = collection.options();
    let options = (*options).as_ref();
    let limit = |name: &str| options.get(name).and_then(number::as_i64_exact).unwrap_or(0);
    is_capped(collection).then(|| (limit("max"), limit("size")))
}
