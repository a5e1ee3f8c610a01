//! All record stores and indexes by their numbers.

use crate::cost::Costs;
use crate::index::Index;
use crate::records::Records;
use bunko_store::KeyspaceId;
use bunko_versions::{Forgotten, Rest};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// What a keyspace takes, and when it was dropped.
pub(crate) struct Size {
    bytes: AtomicI64,
    /// The part of it that stands behind newer versions.
    old_bytes: AtomicI64,
    /// Views of what is before that LSN, or before a smaller one, still see the keyspace.
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

    /// Counts by how much it grew, and how much of that is what stands behind newer versions now.
    pub fn add(&self, growth: i64, old: i64) {
        if growth != 0 {
            self.bytes.fetch_add(growth, Ordering::Relaxed);
        }
        if old != 0 {
            self.old_bytes.fetch_add(old, Ordering::Relaxed);
        }
    }

    /// What is kept for views of what was: all of it where it is dropped.
    pub fn kept_bytes(&self) -> i64 {
        let is_dropped = self.dropped_at.load(Ordering::Relaxed) != u64::MAX;
        if is_dropped { self.bytes() } else { self.old_bytes.load(Ordering::Relaxed) }
    }

    /// Counts what went: by how much the keyspace grew, and until when there is more to forget of the key.
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

/// A kind of keyspace.
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
    /// Runs `with` on a keyspace; `None` where nothing was ever put into it.
    pub fn with<R>(&self, keyspace: KeyspaceId, with: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.read().get(&keyspace).map(|found| with(found))
    }

    /// Runs `with` on a keyspace that a view of all before that LSN sees.
    pub fn seen<R>(&self, keyspace: KeyspaceId, before: u64, with: impl FnOnce(&Arc<T>) -> R) -> Option<R> {
        self.0.read().get(&keyspace).filter(|found| found.size().is_seen(before)).map(with)
    }

    /// Runs `with` on a keyspace, which begins with it unless it is there.
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

    /// What all of them keep for views of what was.
    pub fn kept_bytes(&self) -> i64 {
        self.0.read().values().map(|keyspace| keyspace.size().kept_bytes()).sum()
    }

    /// How many keyspaces there are, and the sum of what `count` says of each.
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
    /// What a keyspace takes, in bytes.
    pub fn bytes(&self, keyspace: KeyspaceId) -> i64 {
        let records = self.records.with(keyspace, |records| records.size.bytes());
        records.or_else(|| self.indexes.with(keyspace, |index| index.size.bytes())).unwrap_or(0)
    }
}
