//! All record stores and indexes by keyspace id.

use crate::cost::Costs;
use crate::index::Index;
use crate::records::Records;
use bunko_store::KeyspaceId;
use bunko_versions::{Forgotten, Rest};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Memory of a keyspace, and when it was dropped.
pub(crate) struct Size {
    bytes: AtomicI64,
    /// Part of `bytes` that stands behind newer versions.
    old_bytes: AtomicI64,
    /// LSN of the drop, or `u64::MAX`. Views of states up to that LSN still see the keyspace.
    dropped_at: AtomicU64,
}

impl Default for Size {
    fn default() -> Self {
        Self { bytes: AtomicI64::new(0), old_bytes: AtomicI64::new(0), dropped_at: AtomicU64::new(u64::MAX) }
    }
}

impl Size {
    pub fn bytes(&self) -> i64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds the growth of the keyspace, and the growth of its old versions.
    pub fn add(&self, growth: i64, old: i64) {
        if growth != 0 {
            self.bytes.fetch_add(growth, Ordering::Relaxed);
        }
        if old != 0 {
            self.old_bytes.fetch_add(old, Ordering::Relaxed);
        }
    }

    /// Bytes that are kept for old views: all bytes of a dropped keyspace, else its old versions.
    pub fn kept_bytes(&self) -> i64 {
        let is_dropped = self.dropped_at.load(Ordering::Relaxed) != u64::MAX;
        if is_dropped { self.bytes() } else { self.old_bytes.load(Ordering::Relaxed) }
    }

    /// Counts forgotten versions. Returns the growth of the keyspace, and the LSN that the key's next versions to
    /// forget wait for.
    pub fn forgot<V>(
        &self,
        costs: &Costs,
        forgotten: Option<&Forgotten<V>>,
        rest: Rest,
        value_bytes: impl Fn(&V) -> i64,
    ) -> (i64, Option<u64>) {
        let freed = forgotten.map_or(0, |forgotten| costs.freed(forgotten, value_bytes));
        let (entry, waits_for) = match rest {
            Rest::Nothing => (costs.entry, None),
            Rest::Value => (0, None),
            Rest::Waiting { lsn } => (0, Some(lsn)),
        };
        self.add(-freed - entry, -freed);
        (-freed - entry, waits_for)
    }

    fn is_seen(&self, before: u64) -> bool {
        before <= self.dropped_at.load(Ordering::Relaxed)
    }
}

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
        self.with(keyspace, |dropped| dropped.size().dropped_at.store(lsn, Ordering::Relaxed));
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
