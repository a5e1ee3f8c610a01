//! What all writes of documents share: locks, keys, and the record that says which indexes are multikey.

use crate::{Catalog, Collection, Index, IndexState, Multikey, from_storage, persistence};
use bunko_errors::Result;
use bunko_store::{Batch, KeyspaceId, LockTable, Presence, RecordId};
use std::sync::Arc;

/// Puts a key; that of `_id` is the primary key.
pub(crate) fn put_key(batch: &mut Batch<'_>, index: &Index, key: &[u8], record: RecordId, presence: Presence) {
    if index.is_id() {
        batch.put_primary_key(index.keyspace, key, record, presence);
    } else {
        batch.put_key(index.keyspace, key, record);
    }
}

/// The lock of a unique key.
pub(crate) fn key_stripe(keyspace: KeyspaceId, key: &[u8]) -> usize {
    LockTable::stripe((keyspace, key))
}

/// The lock of a record.
pub(crate) fn record_stripe(keyspace: KeyspaceId, record: RecordId) -> usize {
    LockTable::stripe((keyspace, record))
}

/// Whether a second record with one key is refused at once. An index that is being built decides that at its end.
pub(crate) fn is_guarded(index: &Index) -> bool {
    index.is_unique && index.build().is_none()
}

impl Catalog {
    /// Saves that an index became multikey, before any key that makes it so is written. The caller holds the
    /// collection's structure shared.
    pub(crate) fn grow_multikey(
        &self,
        collection: &Collection,
        indexes: &[Arc<Index>],
        grown: &[(usize, Multikey)],
    ) -> Result<()> {
        if !is_growing(indexes, grown) {
            return Ok(());
        }
        // Not the catalog's own lock: whoever changes the set of indexes holds that while waiting for writers.
        let _record = collection.catalog_record_lock.lock();
        // Somebody may have done it meanwhile.
        if !is_growing(indexes, grown) {
            return Ok(());
        }
        let mut batch = Batch::new();
        let multikey = |index: &Arc<Index>| {
            let own = grown.iter().filter(|(position, _)| Arc::ptr_eq(&indexes[*position], index));
            own.fold(index.multikey(), |known, (_, arrays)| Arc::new(known.with(arrays)))
        };
        let record =
            persistence::encode_with(collection, &collection.namespace(), &collection.indexes(), multikey, |index| {
                index.state() == IndexState::Ready
            });
        persistence::put(&self.store, &mut batch, collection.catalog_record, record)?;
        self.store.commit(&batch).map_err(from_storage)?;
        // Only now: who finds them set puts keys into the log that may not stand before them.
        for (position, arrays) in grown {
            indexes[*position].add_multikey(arrays);
        }
        Ok(())
    }
}

/// Whether any of those arrays, by index position, is new.
fn is_growing(indexes: &[Arc<Index>], grown: &[(usize, Multikey)]) -> bool {
    grown.iter().any(|(position, arrays)| !indexes[*position].multikey().covers(arrays))
}
