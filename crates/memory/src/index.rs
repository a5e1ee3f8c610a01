//! An index: keys in order, each leading to a record.

use crate::cost::Costs;
use crate::garbage::Begins;
use crate::key::{IndexKey, PackedRecordId};
use crate::size::Size;
use bunko_store::RecordId;
use bunko_versions::{Before, Known, VersionedMap, Views};
use std::sync::Arc;

/// One index.
#[derive(Default)]
pub(crate) struct Index {
    pub keys: Arc<VersionedMap<IndexKey, PackedRecordId>>,
    pub size: Size,
}

impl Index {
    /// Puts or deletes a key. Returns the growth of the index, and whether the key begins to wait for versions to be
    /// forgotten.
    pub fn put(&self, key: IndexKey, lsn: u64, target: Option<PackedRecordId>, views: Views<'_>) -> (i64, Begins) {
        let costs = Costs::of_key(&key);
        let put = self.keys.put(key, lsn, target, views);
        let growth = costs.added(&put, |_| 0);
        self.size.add(growth, if put.before == Before::Nothing { 0 } else { growth });
        (growth, Begins::from(&put, target.is_none()))
    }

    pub fn get(&self, key: &[u8], before: u64) -> Option<RecordId> {
        match self.keys.get(&IndexKey::from(key), before)? {
            Known::Value(target) => Some(target.record()),
            Known::Deleted => None,
        }
    }

    /// Forgets a key's versions that no view from `oldest_view` on can see. Returns the growth of the index (never
    /// positive), and the LSN that the next versions to forget wait for, `None` if none are left.
    pub fn forget(&self, key: &IndexKey, oldest_view: u64) -> (i64, Option<u64>) {
        let Some((forgotten, rest)) = self.keys.forget(key, oldest_view) else { return (0, None) };
        let costs = Costs::of_key(key);
        self.size.forgot(&costs, forgotten.as_ref(), rest, |_| 0)
    }
}
