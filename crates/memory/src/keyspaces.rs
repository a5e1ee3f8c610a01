//! All record stores and indexes by keyspace id.

use crate::index::Index;
use crate::records::Records;
use crate::size::Size;
use bunko_store::KeyspaceId;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A record store or an index.
pub(crate) trait Keyspace: Default {
    fn size(&self) -> &Size;
}

impl Keyspace for Records {
    fn size(&self) -> &Size {
        &self.size
    }
}

impl Keyspace for Index {
    fn size(&self) -> &Size {
        &self.size
    }
}

/// The keyspaces of one kind.
#[derive(Default)]
pub(crate) struct Shelf<T>(RwLock<FxHashMap<KeyspaceId, Arc<T>>>);

impl<T: Keyspace> Shelf<T> {
    /// Runs `with` on a keyspace; `None` if nothing was ever put into it.
    pub fn with<R>(&self, keyspace: KeyspaceId, with: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.read().get(&keyspace).map(|found| with(found))
    }

    /// Runs `with` on a keyspace, if a view of everything below `before` sees it.
    pub fn seen<R>(&self, keyspace: KeyspaceId, before: u64, with: impl FnOnce(&Arc<T>) -> R) -> Option<R> {
        self.0.read().get(&keyspace).filter(|found| found.size().is_seen(before)).map(with)
    }

    /// Runs `with` on a keyspace, which is created if it is missing.
    pub fn begun<R>(&self, keyspace: KeyspaceId, with: impl FnOnce(&T) -> R) -> R {
        let keyspaces = self.0.read();
        if let Some(found) = keyspaces.get(&keyspace) {
            return with(found);
        }
        drop(keyspaces);
        let begun = Arc::clone(self.0.write().entry(keyspace).or_default());
        with(&begun)
    }

    pub fn drop_at(&self, keyspace: KeyspaceId, lsn: u64) {
        self.with(keyspace, |dropped| dropped.size().drop_at(lsn));
    }

    pub fn take(&self, keyspace: KeyspaceId) -> Option<Arc<T>> {
        self.0.write().remove(&keyspace)
    }

    /// Bytes that all keyspaces keep for old views.
    pub fn kept_bytes(&self) -> i64 {
        self.0.read().values().map(|keyspace| keyspace.size().kept_bytes()).sum()
    }

    /// Number of keyspaces, and the sum of `count` over them.
    pub fn count(&self, count: impl Fn(&T) -> usize) -> (usize, usize) {
        let keyspaces = self.0.read();
        (keyspaces.len(), keyspaces.values().map(|keyspace| count(keyspace)).sum())
    }
}

/// All keyspaces.
#[derive(Default)]
pub(crate) struct Keyspaces {
    pub records: Shelf<Records>,
    pub indexes: Shelf<Index>,
}

impl Keyspaces {
    /// Memory of a keyspace in bytes.
    pub fn bytes(&self, keyspace: KeyspaceId) -> i64 {
        let records = self.records.with(keyspace, |records| records.size.bytes());
        records.or_else(|| self.indexes.with(keyspace, |index| index.size.bytes())).unwrap_or(0)
    }
}
