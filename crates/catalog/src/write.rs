//! Locks and holders of keys, and the record of multikey indexes.

use crate::index_keys::own_part;
use crate::{Catalog, Collection, Index, IndexState, Multikey, from_storage, persistence};
use bunko_errors::Result;
use bunko_store::{Batch, Direction, KeyRange, KeyspaceId, LockTable, RecordId, View};
use std::ops::Bound;
use std::sync::Arc;

/// The lock stripe of a unique key.
pub(crate) fn key_stripe(keyspace: KeyspaceId, key: &[u8]) -> usize {
    LockTable::stripe((keyspace, key))
}

/// The lock stripe of a record.
pub(crate) fn record_stripe(keyspace: KeyspaceId, record: RecordId) -> usize {
    LockTable::stripe((keyspace, record))
}

/// Whether a key is locked before it is put, so that no other writer puts it meanwhile.
pub(crate) fn locks_keys(index: &Index) -> bool {
    index.is_unique || index.prepares_unique
}

/// The lock stripe of a stored key, in an index for which [`locks_keys`] is true.
pub(crate) fn stored_key_stripe(index: &Index, key: &[u8]) -> usize {
    key_stripe(index.keyspace, own_part(index, key))
}

/// A key in an index for which [`locks_keys`] is true.
pub(crate) struct UniqueKey<'k> {
    pub index: &'k Index,
    /// The key as stored.
    pub key: &'k [u8],
    pub change: KeyChange,
}

/// The change of a key by a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyChange {
    Put,
    Deleted,
}

impl UniqueKey<'_> {
    pub fn stripe(&self) -> usize {
        stored_key_stripe(self.index, self.key)
    }
}

/// Whether a second record with the same key is refused at once. For an index being built, this is decided at the end.
pub(crate) fn is_guarded(index: &Index) -> bool {
    locks_keys(index) && index.build().is_none()
}

/// A record that already has the key, if there is one.
pub(crate) fn holder(view: &dyn View, index: &Index, key: &[u8]) -> bunko_store::Result<Option<RecordId>> {
    if !index.ends_with_record() {
        return view.key(index.keyspace, key);
    }
    // No whole key is a prefix of another, so a stored key with this prefix is this key and a record id.
    let own = own_part(index, key);
    let with_record = |record: u64| [own, record.to_be_bytes().as_slice()].concat();
    let range = KeyRange { start: Bound::Included(with_record(0)), end: Bound::Included(with_record(u64::MAX)) };
    let mut cursor = view.keys(index.keyspace, range, Direction::Forward);
    while let Some((key, record)) = cursor.next()? {
        // A shortened key may begin with any other key, so equality decides.
        if own_part(index, key) == own {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

impl Catalog {
    /// Saves that an index became multikey, or got values of a new type, before any such key is written. The caller
    /// holds the collection's structure shared.
    pub(crate) fn grow_multikey(
        &self,
        collection: &Collection,
        indexes: &[Arc<Index>],
        grown: &[(usize, Multikey)],
    ) -> Result<()> {
        if !is_growing(indexes, grown) {
            return Ok(());
        }
        // The catalog's own lock cannot be used here: a change of the set of indexes holds it while it waits for
        // writers.
        let _record = collection.catalog_record_lock.lock();
        // Another writer may have saved them meanwhile.
        if !is_growing(indexes, grown) {
            return Ok(());
        }
        if collection.is_private() {
            // The commit of its transaction saves the final arrays and types.
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
        // The arrays and types are shown only now: a writer that sees them puts keys into the log, which must come
        // after this record.
        for (position, arrays) in grown {
            indexes[*position].add_multikey(arrays);
        }
        Ok(())
    }
}

/// Whether any of these arrays and types, given by index position, is new.
fn is_growing(indexes: &[Arc<Index>], grown: &[(usize, Multikey)]) -> bool {
    grown.iter().any(|(position, arrays)| !indexes[*position].multikey().covers(arrays))
}
