//! What all writes of documents share: locks, keys, and the record that says which indexes are multikey.

use crate::index_keys::own_part;
use crate::{Catalog, Collection, Index, IndexState, Multikey, RetryableWrite, Transaction, from_storage, persistence};
use bunko_errors::Result;
use bunko_operation::{OperationSource, Place};
use bunko_store::{Batch, Direction, KeyRange, KeyspaceId, Lag, LockTable, Lsn, Presence, RecordId, View};
use std::ops::Bound;
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

/// Whether a key is locked before it is put, so that nobody else puts the same.
pub(crate) fn locks_keys(index: &Index) -> bool {
    index.is_unique || index.prepares_unique
}

/// The lock of a stored key of an index that [`locks_keys`].
pub(crate) fn stored_key_stripe(index: &Index, key: &[u8]) -> usize {
    key_stripe(index.keyspace, own_part(index, key))
}

/// Whether a second record with one key is refused at once. An index that is being built decides that at its end.
pub(crate) fn is_guarded(index: &Index) -> bool {
    locks_keys(index) && index.build().is_none()
}

/// A record that has that key already, if there is one.
pub(crate) fn holder(view: &dyn View, index: &Index, key: &[u8]) -> bunko_store::Result<Option<RecordId>> {
    if !index.ends_with_record() {
        return view.key(index.keyspace, key);
    }
    // No whole key is the beginning of another, so that what begins with it is it, with a record behind.
    let own = own_part(index, key);
    let with_record = |record: u64| [own, record.to_be_bytes().as_slice()].concat();
    let range = KeyRange { start: Bound::Included(with_record(0)), end: Bound::Included(with_record(u64::MAX)) };
    let mut cursor = view.keys(index.keyspace, range, Direction::Forward);
    while let Some((key, record)) = cursor.next()? {
        // A shortened key may begin with any other.
        if own_part(index, key) == own {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

impl Catalog {
    /// Commits a batch of a writer, which has called [`Self::keep_pace`] before it locked anything.
    /// Where the operation's writes belong to a retryable one, the batch gets the record of what it does; where they belong
    /// to a transaction, that takes the batch in, and nothing is committed.
    pub(crate) fn commit(&self, batch: &mut Batch<'_>, operation: &dyn OperationSource) -> Result<Lsn> {
        let committed = match operation.unit() {
            None => self.store.commit(batch),
            Some(unit) => match (unit.downcast_ref::<RetryableWrite>(), unit.downcast_ref::<Transaction>()) {
                (Some(write), _) => write.commit(self, batch),
                (None, Some(transaction)) => return transaction.absorb(batch),
                (None, None) => self.store.commit(batch),
            },
        };
        committed.map_err(from_storage)
    }

    /// Waits, between two batches, where the engines are behind. On a thread that serves others the reply waits instead, which
    /// holds no thread; what one such command writes is little. The caller has nothing locked that others wait for.
    pub(crate) fn keep_pace(&self, operation: &dyn OperationSource) {
        match self.store.lag() {
            Lag::None => {}
            // Others wait for what it has changed, and engines get nothing of it before its commit.
            _ if Transaction::of(operation).is_some() => {}
            Lag::Behind if operation.operation().place() != Place::OwnThread => {}
            Lag::Behind | Lag::FarBehind => self.store.catch_up(),
        }
    }

    /// Saves that an index became multikey, or got values of a type that it did not have, before any key that makes it so is
    /// written. The caller holds the
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
        if collection.is_private() {
            // The commit of its transaction saves it as it is then.
            for (position, arrays) in grown {
                indexes[*position].add_multikey(arrays);
            }
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

/// Whether any of those arrays and types, by index position, is new.
fn is_growing(indexes: &[Arc<Index>], grown: &[(usize, Multikey)]) -> bool {
    grown.iter().any(|(position, arrays)| !indexes[*position].multikey().covers(arrays))
}
