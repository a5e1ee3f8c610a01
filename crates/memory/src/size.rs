//! The memory of one keyspace.

use crate::cost::Costs;
use bunko_versions::{Forgotten, Rest};
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
    /// forget wait for, `None` if none are left.
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

    /// Notes the LSN of the drop.
    pub fn drop_at(&self, lsn: u64) {
        self.dropped_at.store(lsn, Ordering::Relaxed);
    }

    /// Whether a view of everything below `before` sees the keyspace.
    pub fn is_seen(&self, before: u64) -> bool {
        before <= self.dropped_at.load(Ordering::Relaxed)
    }
}
