//! Rebuilds the indexes of a collection. The old ones are dropped when the new ones are complete.
//!
//! No operation writes to the collection meanwhile, so a unique index excludes duplicates at every moment and writers
//! need not maintain two sets of indexes. Queries use the old indexes. Until the new keyspaces are in use or dropped,
//! the catalog's record lists them; a start that finds such a list drops them and keeps the old indexes.
//!
//! The `_id` index is not rebuilt: it leads to the documents, and none could be found without it.

use crate::catalog::Allocation;
use crate::duplicate_key::duplicate_key;
use crate::gathered_keys::{Gathered, NextKeys};
use crate::transaction::{announce, exclude_all};
use crate::user_writes;
use crate::waiting::lock;
use crate::{Catalog, Collection, Index, IndexState, from_storage, persistence};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::failpoint::{self, Failpoint};
use bunko_store::{Batch, Lsn, RecordId};
use std::sync::Arc;

impl Catalog {
    /// Rebuilds all indexes except the one on `_id`; `None` if there are no others.
    /// # Errors
    /// `NamespaceNotFound`; `BackgroundOperationInProgressForNamespace` while an index is being built; `DuplicateKey`,
    /// or failures of keys, if the documents do not permit an existing index; as `OperationContext::check`. The old
    /// indexes are kept then.
    pub fn rebuild_indexes(&self, collection: &Collection, operation: &dyn OperationSource) -> Result<Option<Lsn>> {
        user_writes::check_collection(collection, operation)?;
        let _announced = announce(collection, operation)?;
        let mut changes = lock(&self.changes, operation)?;
        let _no_writer = exclude_all(collection, operation)?;
        let name = collection.namespace();
        if collection.is_dropped() {
            return Err(Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, format!("ns not found {name}")));
        }
        let indexes = collection.indexes();
        if let Some(building) = indexes.iter().find(|index| index.state() == IndexState::Building) {
            return Err(Failure::new(
                ErrorCode::BACKGROUND_OPERATION_IN_PROGRESS_FOR_NAMESPACE,
                format!(
                    "cannot perform operation: an index build is currently running for '{name}': {}",
                    building.name
                ),
            ));
        }
        let (id_index, old) = indexes.split_first().expect("a collection has an index on _id");
        let new = self.begin_rebuild(&mut changes, collection, old)?;
        if new.is_empty() {
            return Ok(None);
        }
        let filled = self.fill_alone(collection, &new, operation);
        failpoint::pass(Failpoint::IndexFilled);
        let mut batch = Batch::new();
        if let Err(failure) = filled {
            for index in &new {
                batch.drop_keyspace(index.keyspace);
            }
            let record = persistence::encode(collection, &name, &indexes);
            persistence::put(&self.store, &mut batch, collection.catalog_record, record)?;
            self.store.commit(&batch).map_err(from_storage)?;
            return Err(failure);
        }
        let all: Vec<_> = std::iter::once(id_index).chain(&new).cloned().collect();
        for index in &new {
            index.set_state(IndexState::Ready);
        }
        let record = persistence::encode(collection, &name, &all);
        persistence::put(&self.store, &mut batch, collection.catalog_record, record)?;
        for index in old {
            batch.drop_keyspace(index.keyspace);
        }
        let _changing = collection.change_indexes();
        let lsn = self.store.commit(&batch).map_err(from_storage)?;
        failpoint::pass(Failpoint::IndexesCommitted);
        collection.occupancy.note_change(lsn);
        collection.set_indexes(all);
        Ok(Some(lsn))
    }

    /// Creates keyspaces for the new indexes, and lists them in the catalog's record as not used yet.
    fn begin_rebuild(
        &self,
        changes: &mut Allocation,
        collection: &Collection,
        old: &[Arc<Index>],
    ) -> Result<Vec<Arc<Index>>> {
        let mut new = Vec::with_capacity(old.len());
        for index in old {
            // The specification is read as at a start: a converted index becomes an ordinary unique one, and the arrays
            // and types found so far are forgotten.
            let spec = persistence::read_spec(index.document.as_ref())?;
            new.push(Arc::new(Index::new(spec, self.allocate_keyspace(changes)?)));
        }
        if new.is_empty() {
            return Ok(new);
        }
        let mut batch = Batch::new();
        let keyspaces: Vec<_> = new.iter().map(|index| index.keyspace).collect();
        let record = persistence::encode(collection, &collection.namespace(), &collection.indexes());
        let record = persistence::with_rebuilt(record, &keyspaces);
        persistence::put(&self.store, &mut batch, collection.catalog_record, record)?;
        for keyspace in keyspaces {
            collection.engine.create_keyspace(&mut batch, keyspace);
        }
        self.store.commit(&batch).map_err(from_storage)?;
        Ok(new)
    }

    /// Adds the keys of all records, which no operation changes meanwhile.
    fn fill_alone(&self, collection: &Collection, new: &[Arc<Index>], operation: &dyn OperationSource) -> Result<()> {
        let end = collection.next_record();
        let mut gathered = Gathered::new(new.len(), self.index_builds.bytes_max());
        let _drawn = operation.operation().draw(gathered.held_bytes_max())?;
        let mut next = NextKeys::of(RecordId(0));
        while next.record < end {
            self.refuse_while_stopping()?;
            operation.operation().check()?;
            gathered.clear();
            next = self.gather(collection, new, (next, end), &mut gathered, operation)?;
            for (position, more) in &gathered.grown {
                new[*position].add_multikey(more);
            }
            if let Some((_, failure)) = gathered.refused.drain(..).next() {
                return Err(failure);
            }
            gathered.sort();
            self.put_alone(collection, new, &gathered)?;
        }
        Ok(())
    }

    /// Puts the gathered keys of documents that no operation changes meanwhile.
    /// # Errors
    /// `DuplicateKey` if the documents do not permit a unique index that they are in.
    fn put_alone(&self, collection: &Collection, new: &[Arc<Index>], gathered: &Gathered) -> Result<()> {
        let latest = self.store.latest();
        let mut batch = Batch::new();
        let mut previous: Option<(u32, &[u8])> = None;
        for found in gathered.keys() {
            let (index, key) = (&new[found.index as usize], gathered.of(found));
            if index.is_unique {
                let is_again = previous == Some((found.index, key));
                let holder = latest.key(index.keyspace, key).map_err(from_storage)?;
                if is_again || holder.is_some() {
                    return Err(duplicate_key(collection, index, key, None));
                }
                previous = Some((found.index, key));
            }
            batch.put_key(index.keyspace, key, found.record);
        }
        if !batch.is_empty() {
            self.store.commit(&batch).map_err(from_storage)?;
        }
        Ok(())
    }

    /// Drops the new keyspaces of rebuilds that a kill interrupted, of the collections with these records.
    pub(crate) fn drop_unfinished_rebuilds(&self, records: &[RecordId]) -> Result<()> {
        for record in records {
            // The record may have changed since the start: on a secondary by its log, or by clients of a primary whose
            // first attempt failed.
            let _changes = self.changes.lock();
            let collection = self.collections.read().with_catalog_record(*record).cloned();
            let _no_other_writer = collection.as_ref().map(|collection| collection.catalog_record_lock.lock());
            let Some(left) = persistence::left_by_rebuild(&self.store, *record)? else { continue };
            let mut batch = Batch::new();
            for keyspace in left.keyspaces {
                batch.drop_keyspace(keyspace);
            }
            persistence::put(&self.store, &mut batch, *record, left.document)?;
            self.store.commit(&batch).map_err(from_storage)?;
        }
        Ok(())
    }
}
