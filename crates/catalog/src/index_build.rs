//! Creating and dropping indexes.
//!
//! A new index is shown to writers first, who maintain it from then on; then all records are gone over, each under its
//! lock and at its newest version. So nothing is missed, and writers wait for a few hundred records at most.

use crate::catalog::Difference;
use crate::duplicate_key::duplicate_key;
use crate::index_keys::{index_keys, stored_key};
use crate::waiting::{lock, lock_stripes, share};
use crate::write::{key_stripe, record_stripe};
use crate::{Catalog, Collection, Index, IndexSpec, IndexState, Multikey, from_storage};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{OperationContext, OperationSource};
use bunko_store::{Batch, Direction, Lsn, RecordId, RecordRange, View};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Records that are locked together.
const RECORDS_PER_STEP: usize = 256;
/// Most indexes of one collection, `_id` included.
const INDEXES_MAX: usize = 64;

/// What `dropIndexes` did.
#[derive(Clone, Copy, Debug)]
pub struct IndexesDropped {
    /// Indexes before.
    pub before: usize,
    /// The record of the drop, if any was dropped.
    pub lsn: Option<Lsn>,
}

/// What `createIndexes` did.
#[derive(Clone, Copy, Debug)]
pub struct IndexesCreated {
    /// Indexes before.
    pub before: usize,
    /// Indexes after.
    pub after: usize,
    /// The last record written, if any.
    pub lsn: Option<Lsn>,
}

/// Records by index position and key.
type KeysFound = BTreeMap<(usize, Vec<u8>), RecordId>;

impl Catalog {
    /// Builds the indexes that are missing. What exists already under the same name and keys is left alone.
    /// # Errors
    /// `IndexOptionsConflict`, `IndexKeySpecsConflict`, `CannotCreateIndex`, `DuplicateKey`; then none is kept.
    pub fn create_indexes(
        &self,
        collection: &Arc<Collection>,
        specs: &[IndexSpec],
        operation: &dyn OperationSource,
    ) -> Result<IndexesCreated> {
        let (before, built) = {
            let mut changes = lock(&self.changes, operation)?;
            let existing = collection.indexes();
            let mut indexes = existing.as_ref().clone();
            let mut built = Vec::new();
            for spec in specs {
                if is_present(&indexes, spec)? {
                    continue;
                }
                if indexes.len() >= INDEXES_MAX {
                    return Err(Failure::new(
                        ErrorCode::CANNOT_CREATE_INDEX,
                        format!("add index fails, too many indexes for {} key:{}", collection.namespace(), spec.name),
                    ));
                }
                let keyspace = self.allocate_keyspace(&mut changes)?;
                let index = Arc::new(Index::new(
                    spec.name.clone(),
                    keyspace,
                    spec.fields.clone(),
                    spec.is_unique,
                    spec.document.clone(),
                ));
                indexes.push(Arc::clone(&index));
                built.push(index);
            }
            if built.is_empty() {
                return Ok(IndexesCreated { before: existing.len(), after: existing.len(), lsn: None });
            }
            self.save_indexes(collection, indexes, Difference::Created(&built), operation)?;
            operation.operation().note_change();
            (existing.len(), built)
        };
        let finished = self.build(collection, &built, operation).and_then(|()| self.finish(collection, &built));
        let lsn = match finished {
            Ok(lsn) => lsn,
            Err(failure) => {
                self.remove_indexes(collection, &built)?;
                return Err(failure);
            }
        };
        Ok(IndexesCreated { before, after: before + built.len(), lsn: Some(lsn) })
    }

    /// Goes on with builds that an earlier process did not finish.
    /// # Errors
    /// What the operation says; then the rest is left to the next start.
    pub fn resume_builds(&self, operation: &dyn OperationSource) -> Result<()> {
        for database in self.databases() {
            for collection in self.collections(&database) {
                let indexes = collection.indexes();
                let unfinished: Vec<_> =
                    indexes.iter().filter(|index| index.state() == IndexState::Building).cloned().collect();
                if unfinished.is_empty() {
                    continue;
                }
                match self.build(&collection, &unfinished, operation) {
                    Ok(()) => drop(self.finish(&collection, &unfinished)?),
                    Err(_) if let Err(stopped) = operation.operation().check() => return Err(stopped),
                    Err(_) => drop(self.remove_indexes(&collection, &unfinished)?),
                }
            }
        }
        Ok(())
    }

    fn finish(&self, collection: &Collection, built: &[Arc<Index>]) -> Result<Lsn> {
        let _changes = self.changes.lock();
        for index in built {
            index.set_state(IndexState::Ready);
        }
        let indexes = collection.indexes().as_ref().clone();
        self.save_indexes(collection, indexes, Difference::Built(built), &*OperationContext::unlimited())
    }

    fn build(&self, collection: &Collection, built: &[Arc<Index>], operation: &dyn OperationSource) -> Result<()> {
        let mut start = Bound::Unbounded;
        loop {
            operation.operation().check()?;
            let records = self.next_records(collection, start)?;
            let Some(&last) = records.last() else { return Ok(()) };
            self.build_step(collection, built, &records, operation)?;
            start = Bound::Excluded(last);
        }
    }

    /// Ids only; their documents are read again under their locks.
    fn next_records(&self, collection: &Collection, start: Bound<RecordId>) -> Result<Vec<RecordId>> {
        let snapshot = self.store.snapshot();
        let range = RecordRange { start, end: Bound::Unbounded };
        let mut cursor = snapshot.records(collection.records, range, Direction::Forward);
        let mut records = Vec::with_capacity(RECORDS_PER_STEP);
        while records.len() < RECORDS_PER_STEP {
            let Some((record, _, _)) = cursor.next().map_err(from_storage)? else { break };
            records.push(record);
        }
        Ok(records)
    }

    fn build_step(
        &self,
        collection: &Collection,
        built: &[Arc<Index>],
        records: &[RecordId],
        operation: &dyn OperationSource,
    ) -> Result<()> {
        let mut stripes: Vec<usize> = records.iter().map(|record| record_stripe(collection.records, *record)).collect();
        loop {
            let _structure = share(&collection.structure, operation)?;
            if collection.is_dropped() {
                return Err(Failure::new(
                    ErrorCode::INDEX_BUILD_ABORTED,
                    format!("collection {} was dropped during the index build", collection.namespace()),
                ));
            }
            let locked = lock_stripes(self.store.locks(), &mut stripes, operation)?;
            let (keys, grown) = self.keys_of(collection, built, records)?;
            let mut needed: Vec<usize> = keys
                .keys()
                .filter(|(index, _)| built[*index].is_unique)
                .map(|(index, key)| key_stripe(built[*index].keyspace, key))
                .filter(|stripe| stripes.binary_search(stripe).is_err())
                .collect();
            if !needed.is_empty() {
                drop(locked);
                stripes.append(&mut needed);
                continue;
            }
            self.grow_multikey(collection, built, &grown)?;
            let latest = self.store.latest();
            let mut batch = Batch::new();
            for ((index, key), record) in &keys {
                match latest.key(built[*index].keyspace, key).map_err(from_storage)? {
                    Some(holder) if holder != *record => {
                        return Err(duplicate_key(collection, &built[*index], key, None));
                    }
                    // A writer was here already.
                    Some(_) => {}
                    None => batch.put_key(built[*index].keyspace, key, *record),
                }
            }
            if !batch.is_empty() {
                self.store.commit(&batch).map_err(from_storage)?;
            }
            return Ok(());
        }
    }

    /// The keys that the newest versions of `records` have; two records with one unique key are refused here.
    fn keys_of(
        &self,
        collection: &Collection,
        built: &[Arc<Index>],
        records: &[RecordId],
    ) -> Result<(KeysFound, Vec<(usize, Multikey)>)> {
        let latest = self.store.latest();
        let mut document = Vec::new();
        let mut keys = BTreeMap::new();
        let mut grown = Vec::new();
        for record in records {
            if latest.record(collection.records, *record, &mut document).map_err(from_storage)?.is_none() {
                continue;
            }
            for (position, index) in built.iter().enumerate() {
                let found = index_keys(index, DocumentRef::trusted(&document))?;
                if !found.multikey.is_empty() {
                    grown.push((position, found.multikey));
                }
                for mut key in found.keys {
                    stored_key(index, &mut key, *record);
                    if let Some(other) = keys.insert((position, key), *record)
                        && other != *record
                    {
                        let twice = keys.iter().find(|((index, _), holder)| *index == position && *holder == record);
                        let key = twice.map(|((_, key), _)| key.clone()).unwrap_or_default();
                        return Err(duplicate_key(collection, index, &key, None));
                    }
                }
            }
        }
        Ok((keys, grown))
    }

    /// Drops the indexes with those names, all of them or none.
    /// # Errors
    /// `IndexNotFound`; `InvalidOptions` for `_id_`; `BackgroundOperationInProgressForNamespace` for an index that is
    /// still being built.
    pub fn drop_indexes(
        &self,
        collection: &Collection,
        names: &[&str],
        operation: &dyn OperationSource,
    ) -> Result<IndexesDropped> {
        let _changes = lock(&self.changes, operation)?;
        let mut dropped = Vec::with_capacity(names.len());
        for name in names {
            let index = collection.index(name).ok_or_else(|| {
                Failure::new(ErrorCode::INDEX_NOT_FOUND, format!("index not found with name [{name}]"))
            })?;
            if index.is_id() {
                return Err(Failure::new(ErrorCode::INVALID_OPTIONS, "cannot drop _id index"));
            }
            if !dropped.iter().any(|other| Arc::ptr_eq(other, &index)) {
                dropped.push(index);
            }
        }
        self.drop_built(collection, &dropped, operation)
    }

    /// Drops all indexes but the one on `_id`.
    /// # Errors
    /// `BackgroundOperationInProgressForNamespace` where one is still being built.
    pub fn drop_all_indexes(&self, collection: &Collection, operation: &dyn OperationSource) -> Result<IndexesDropped> {
        let _changes = lock(&self.changes, operation)?;
        let others: Vec<_> = collection.indexes().iter().filter(|index| !index.is_id()).cloned().collect();
        self.drop_built(collection, &others, operation)
    }

    /// A build that goes on would fill a keyspace that nobody drops any more, so it must end first.
    fn drop_built(
        &self,
        collection: &Collection,
        dropped: &[Arc<Index>],
        operation: &dyn OperationSource,
    ) -> Result<IndexesDropped> {
        if dropped.iter().any(|index| index.state() == IndexState::Building) {
            return Err(Failure::new(
                ErrorCode::BACKGROUND_OPERATION_IN_PROGRESS_FOR_NAMESPACE,
                format!(
                    "cannot perform operation: an index build is currently running for collection '{}'",
                    collection.namespace()
                ),
            ));
        }
        let before = collection.indexes().len();
        if dropped.is_empty() {
            return Ok(IndexesDropped { before, lsn: None });
        }
        Ok(IndexesDropped { before, lsn: Some(self.remove_locked(collection, dropped, operation)?) })
    }

    fn remove_indexes(&self, collection: &Collection, dropped: &[Arc<Index>]) -> Result<Lsn> {
        let _changes = self.changes.lock();
        // Also where the operation was stopped: nobody would come back for them.
        self.remove_locked(collection, dropped, &*OperationContext::unlimited())
    }

    /// The caller holds the lock of the catalog's changes.
    fn remove_locked(
        &self,
        collection: &Collection,
        dropped: &[Arc<Index>],
        operation: &dyn OperationSource,
    ) -> Result<Lsn> {
        let left = collection
            .indexes()
            .iter()
            .filter(|index| !dropped.iter().any(|dropped| Arc::ptr_eq(dropped, index)))
            .cloned()
            .collect();
        self.save_indexes(collection, left, Difference::Dropped(dropped), operation)
    }
}

/// Whether that very index exists.
fn is_present(indexes: &[Arc<Index>], spec: &IndexSpec) -> Result<bool> {
    for index in indexes {
        let has_same_keys = index.fields == spec.fields;
        let has_same_name = index.name == spec.name;
        let is_same = has_same_keys && index.is_unique == spec.is_unique;
        if has_same_name && is_same || index.is_id() && has_same_keys {
            return Ok(true);
        }
        if has_same_name {
            return Err(Failure::new(
                ErrorCode::INDEX_KEY_SPECS_CONFLICT,
                format!(
                    "An existing index has the same name as the requested index. When index names are not specified, \
                     they are auto generated and can cause conflicts. Please refer to our documentation. Requested \
                     index: {}, existing index: {}",
                    ValueText(ValueRef::Document(spec.document.as_ref())),
                    ValueText(ValueRef::Document(index.spec.as_ref()))
                ),
            ));
        }
        if is_same {
            return Err(Failure::new(
                ErrorCode::INDEX_OPTIONS_CONFLICT,
                format!("Index already exists with a different name: {}", index.name),
            ));
        }
        if has_same_keys {
            return Err(Failure::new(
                ErrorCode::INDEX_OPTIONS_CONFLICT,
                format!(
                    "An equivalent index already exists with a different name and options. Requested index: {}, \
                     existing index: {}",
                    ValueText(ValueRef::Document(spec.document.as_ref())),
                    ValueText(ValueRef::Document(index.spec.as_ref()))
                ),
            ));
        }
    }
    Ok(false)
}
