//! Sizes and counts of one collection, for `collStats` and `$collStats`.
//!
//! All of them are exact and cost no scan. The sizes are those of what is alive: `size` and `storageSize` both are the
//! bytes that the documents take in the log, since the default engine leaves them there as they came, and an index's
//! size is that of its keys. So nothing is ever free for reuse, and the free sizes are 0.

use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_catalog::Collection;

/// What a collection holds; sizes in bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct CollectionStatistics {
    /// Documents.
    pub count: u64,
    /// Bytes of the documents.
    pub data_bytes: u64,
    /// Bytes that the documents take where they are stored.
    pub storage_bytes: u64,
    /// Names and sizes of the indexes.
    pub indexes: Vec<(String, u64)>,
    /// Names of the indexes that are being built.
    pub index_builds: Vec<String>,
}

impl CollectionStatistics {
    /// What a collection holds now.
    pub(crate) fn of(collection: &Collection) -> Self {
        let data_bytes = collection.data_bytes();
        let indexes = collection.indexes();
        Self {
            count: collection.count(),
            data_bytes,
            storage_bytes: data_bytes,
            indexes: indexes.iter().map(|index| (index.name.clone(), collection.index_bytes(index))).collect(),
            index_builds: indexes
                .iter()
                .filter(|index| index.state() == bunko_catalog::IndexState::Building)
                .map(|index| index.name.clone())
                .collect(),
        }
    }

    /// Bytes of all indexes.
    pub(crate) fn index_bytes(&self) -> u64 {
        self.indexes.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Appends the fields from `size` to `scaleFactor`; sizes are divided by `scale` and lose their fractions.
    pub(crate) fn write(&self, reply: &mut Writer<'_>, scale: u64) {
        reply.append("size", smallest_integer(self.data_bytes / scale)).append("count", smallest_integer(self.count));
        if let Some(average) = self.data_bytes.checked_div(self.count) {
            reply.append("avgObjSize", smallest_integer(average));
        }
        reply
            .append("numOrphanDocs", 0)
            .append("storageSize", smallest_integer(self.storage_bytes / scale))
            .append("freeStorageSize", 0)
            .append("capped", false)
            .append("nindexes", self.indexes.len() as i32)
            .begin_document("indexDetails");
        for (name, _) in &self.indexes {
            reply.append(name, DocumentRef::EMPTY);
        }
        reply.end().begin_array("indexBuilds");
        for (position, name) in self.index_builds.iter().enumerate() {
            reply.push(position, name.as_str());
        }
        reply
            .end()
            .append("totalIndexSize", smallest_integer(self.index_bytes() / scale))
            .append("totalSize", smallest_integer((self.storage_bytes + self.index_bytes()) / scale))
            .begin_document("indexSizes");
        for (name, bytes) in &self.indexes {
            reply.append(name, smallest_integer(bytes / scale));
        }
        reply.end().append("scaleFactor", smallest_integer(scale));
    }
}

/// Appends the fields that stand for a collection that does not exist.
pub(crate) fn write_missing(reply: &mut Writer<'_>, scale: u64) {
    for name in ["size", "count", "numOrphanDocs", "storageSize", "totalSize", "nindexes", "totalIndexSize"] {
        reply.append(name, 0);
    }
    reply
        .append("indexDetails", DocumentRef::EMPTY)
        .append("indexSizes", DocumentRef::EMPTY)
        .append("scaleFactor", smallest_integer(scale));
}

/// An int where the number fits, else a long, as the server's statistics have it.
pub(crate) fn smallest_integer(number: u64) -> ValueRef<'static> {
    match i32::try_from(number) {
        Ok(number) => ValueRef::Int32(number),
        Err(_) => ValueRef::Int64(i64::try_from(number).unwrap_or(i64::MAX)),
    }
}
