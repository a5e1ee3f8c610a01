//! Sizes and counts of one collection, for `collStats`, `$collStats`, `dbStats` and `listDatabases`.
//!
//! Counts, and the bytes of documents and index keys, are always exact: they change together with the documents, and a
//! crash does not lose them. Stored sizes come from the storage engine: `storageSize` and `indexSizes` are the live
//! data as stored (compressed, if it is) plus the space that is free for reuse.

use bunko_bson::{DocumentBuf, ValueRef, Writer, number};
use bunko_catalog::{Collection, Index, IndexState};
use bunko_store::{KeyspaceStatistics, Space, Store};
use std::sync::Arc;

/// Statistics of a collection; sizes in bytes.
#[derive(Clone, Debug)]
pub struct CollectionStatistics {
    /// Number of documents.
    pub count: u64,
    /// Bytes of the documents.
    pub data_bytes: u64,
    /// Space that the documents take in storage.
    pub storage: Space,
    /// Limits of a capped collection: documents (0 if there is no such limit) and bytes.
    pub cap: Option<(i64, i64)>,
    /// The indexes, starting with the one on `_id`.
    pub indexes: Vec<IndexStatistics>,
    /// The engine's name.
    pub engine: &'static str,
    /// The engine's settings from when the collection was created.
    pub settings: DocumentBuf,
}

/// Statistics of an index.
#[derive(Clone, Debug)]
pub struct IndexStatistics {
    /// Name of the index.
    pub name: String,
    /// Whether the index is ready or still being built.
    pub state: IndexState,
    /// Number of the index's keys, and their bytes.
    pub keys: KeyspaceStatistics,
    /// Space that the index takes in storage.
    pub storage: Space,
}

/// Bytes in use and bytes free for reuse together.
fn total(space: Space) -> u64 {
    space.used_bytes + space.free_bytes
}

impl CollectionStatistics {
    /// The collection's statistics now.
    pub fn of(collection: &Collection) -> Self {
        let indexes = collection.indexes();
        let spaces = collection.store().space(&collection.keyspaces(&indexes));
        Self::new(collection, &indexes, &mut spaces.into_iter())
    }

    /// The statistics of several collections now, in their order.
    pub fn of_all(store: &Store, collections: &[Arc<Collection>]) -> Vec<Self> {
        let indexes: Vec<_> = collections.iter().map(|collection| collection.indexes()).collect();
        let with_indexes = || collections.iter().zip(&indexes);
        let keyspaces: Vec<_> =
            with_indexes().flat_map(|(collection, indexes)| collection.keyspaces(indexes)).collect();
        let mut spaces = store.space(&keyspaces).into_iter();
        with_indexes().map(|(collection, indexes)| Self::new(collection, indexes, &mut spaces)).collect()
    }

    /// Makes the statistics; takes the spaces of the collection's keyspaces, in their order, from `spaces`.
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

    /// Bytes that the documents take in storage, including space that is free for reuse.
    pub fn storage_bytes(&self) -> u64 {
        total(self.storage)
    }

    /// Bytes that all indexes take in storage, including space that is free for reuse.
    pub fn index_bytes(&self) -> u64 {
        self.indexes.iter().map(|index| total(index.storage)).sum()
    }

    /// Bytes of all indexes that are free for reuse.
    pub fn index_free_bytes(&self) -> u64 {
        self.indexes.iter().map(|index| index.storage.free_bytes).sum()
    }

    /// Bytes of documents and indexes.
    pub fn total_bytes(&self) -> u64 {
        self.storage_bytes() + self.index_bytes()
    }

    /// Bytes that compacting may give back.
    pub fn free_bytes(&self) -> u64 {
        self.storage.free_bytes + self.index_free_bytes()
    }

    /// Appends the fields from `size` to `scaleFactor`. Sizes are divided by `scale` and rounded down.
    pub fn write(&self, reply: &mut Writer<'_>, scale: u64) {
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
        // MongoDB shows `wiredTiger` here; this server shows the engine that holds the collection.
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

    /// The statistics without the index of that name.
    pub(crate) fn without_index(mut self, name: &str) -> Self {
        self.indexes.retain(|index| index.name != name);
        self
    }
}

impl IndexStatistics {
    /// Appends the index's entry of `indexDetails`.
    fn write(&self, reply: &mut Writer<'_>, scale: u64) {
        reply
            .begin_document(&self.name)
            .append("entries", smallest_integer(self.keys.entries))
            .append("keySize", smallest_integer(self.keys.bytes / scale))
            .append("freeStorageSize", smallest_integer(self.storage.free_bytes / scale))
            .end();
    }
}

/// Appends the fields that `collStats` shows for a collection that does not exist.
pub fn write_missing(reply: &mut Writer<'_>, scale: u64) {
    for name in ["size", "count", "numOrphanDocs", "storageSize", "totalSize", "nindexes", "totalIndexSize"] {
        reply.append(name, 0);
    }
    for name in ["indexDetails", "indexSizes"] {
        reply.begin_document(name).end();
    }
    reply.append("scaleFactor", smallest_integer(scale));
}

/// The number as an int if it fits, else as a long: MongoDB's statistics use the smallest type.
pub fn smallest_integer(number: u64) -> ValueRef<'static> {
    match i32::try_from(number) {
        Ok(number) => ValueRef::Int32(number),
        Err(_) => ValueRef::Int64(i64::try_from(number).unwrap_or(i64::MAX)),
    }
}

/// The limits of a capped collection: documents and bytes. `None` for other collections.
fn cap(collection: &Collection) -> Option<(i64, i64)> {
    let options = collection.options();
    let options = (*options).as_ref();
    let limit = |name: &str| options.get(name).and_then(number::as_i64_exact).unwrap_or(0);
    collection.is_capped().then(|| (limit("max"), limit("size")))
}
