//! Collections and indexes that a transaction creates. They are private until its commit adds them to the catalog.

use super::{Course, Open, Transaction};
use crate::catalog::Allocation;
use crate::index_set::{counted, present};
use crate::waiting::lock;
use crate::{
    Catalog, Collection, CreateOptions, Index, IndexSpec, IndexState, IndexesCreated, Multikey, Namespace, from_storage,
};
use bunko_bson::DocumentBuf;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{Batch, Lsn};
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::time::Duration;

/// Longest time that a commit which creates collections waits for other changes of the catalog.
const CHANGES_WAIT_MAX: Duration = Duration::from_secs(5);

impl Transaction {
    /// The collection with this name that the transaction has created; `None` if it has created none.
    pub(crate) fn created(&self, namespace: &Namespace) -> Option<Arc<Collection>> {
        match &*self.course.lock() {
            Course::Open(open) => open.created.iter().find(|created| *created.namespace() == *namespace).cloned(),
            Course::Committed(_) | Course::Aborted => None,
        }
    }

    /// Creates a collection that is private to the transaction.
    /// # Errors
    /// As [`Catalog::create`]; `NoSuchTransaction`.
    pub(crate) fn create(
        &self,
        namespace: &Namespace,
        create: CreateOptions,
        operation: &dyn OperationSource,
    ) -> Result<Arc<Collection>> {
        if self.created(namespace).is_some() {
            let message = format!("Collection already exists. NS: {namespace}");
            return Err(Failure::new(ErrorCode::NAMESPACE_EXISTS, message));
        }
        let collection = {
            let mut changes = lock(&self.catalog.changes, operation)?;
            let collection = self.catalog.prepare(&mut changes, namespace, create)?;
            self.catalog.save_counter(&changes)?;
            Arc::new(collection)
        };
        collection.set_private(true);
        let mut course = self.course.lock();
        let open = self.open(&mut course)?;
        open.enter(&collection, &self.catalog.transaction_memory)?;
        open.operations.add_command(&collection, &collection.creation());
        open.created.push(Arc::clone(&collection));
        Ok(collection)
    }

    /// Adds indexes to an empty collection that the transaction has created.
    /// # Errors
    /// As [`Catalog::create_indexes`]; `OperationNotSupportedInTransaction` if another collection lacks one of the
    /// indexes, or if the transaction has inserted into the new collection.
    pub(crate) fn create_indexes(
        &self,
        collection: &Collection,
        specs: &[IndexSpec],
        operation: &dyn OperationSource,
    ) -> Result<IndexesCreated> {
        let mut indexes = collection.indexes().as_ref().clone();
        let before = counted(&indexes);
        let mut changes = lock(&self.catalog.changes, operation)?;
        let mut added = Vec::new();
        for spec in specs {
            let spec = spec.clone().with_strings(collection.strings());
            spec.kind.check_strings(&spec.strings)?;
            if present(&indexes, &spec)?.is_some() {
                continue;
            }
            if !collection.is_private() {
                let message = format!(
                    "Cannot create new indexes on existing collection {} in a multi-document transaction.",
                    collection.namespace()
                );
                return Err(Failure::new(ErrorCode::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message));
            }
            let index = self.catalog.new_index(&mut changes, collection, &indexes, &spec)?;
            let index = Arc::new(index.with_state(IndexState::Ready, Multikey::default()));
            added.push(Arc::clone(&index));
            indexes.push(index);
        }
        drop(changes);
        let mut course = self.course.lock();
        let open = self.open(&mut course)?;
        if !added.is_empty() && open.overlay.has_records(collection.records) {
            let message = format!(
                "Cannot create new indexes on non-empty collection {} in a multi-document transaction.",
                collection.namespace()
            );
            return Err(Failure::new(ErrorCode::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message));
        }
        for index in &added {
            open.operations.add_command(collection, &index_creation(collection, index));
        }
        let after = counted(&indexes);
        collection.set_indexes(indexes);
        Ok(IndexesCreated { before, after, lsn: None })
    }

    /// Keeps the catalog from changing while the created collections are added. Does nothing if the transaction has
    /// created none.
    /// # Errors
    /// `WriteConflict` if another operation has meanwhile taken one of their names; `LockTimeout`.
    pub(super) fn reserve(&self, open: &Open) -> Result<Option<MutexGuard<'_, Allocation>>> {
        if open.created.is_empty() {
            return Ok(None);
        }
        let changes = self.catalog.changes.try_lock_for(CHANGES_WAIT_MAX).ok_or_else(|| {
            Failure::new(ErrorCode::LOCK_TIMEOUT, "the catalog is being changed for more than 5 seconds")
        })?;
        for created in &open.created {
            let refused = self.catalog.refuse_taken_name(&created.namespace(), None);
            if refused.is_err() {
                let message = format!("Collection namespace '{}' is already in use.", created.namespace());
                return Err(Failure::new(ErrorCode::WRITE_CONFLICT, message));
            }
        }
        Ok(Some(changes))
    }

    /// Puts the created collections into the batch of the commit.
    pub(super) fn put_created(&self, open: &Open, batch: &mut Batch<'_>) -> Result<()> {
        open.created.iter().try_for_each(|created| self.catalog.put_collection(batch, created))
    }

    /// Shows the created collections to all operations. The caller keeps the catalog from changing.
    pub(super) fn show_created(&self, open: &Open, lsn: Lsn) {
        for created in &open.created {
            created.occupancy.note_change(lsn);
            created.set_private(false);
            self.catalog.collections.write().insert(created);
        }
    }
}

/// The oplog's command for a new index.
fn index_creation(collection: &Collection, index: &Index) -> DocumentBuf {
    let mut command = DocumentBuf::new().with("createIndexes", collection.namespace().collection());
    command.extend(index.document.as_ref());
    command
}

impl Catalog {
    /// The collection with this name as the operation sees it: created by the operation's transaction, or in the
    /// catalog.
    pub fn collection_for(&self, namespace: &Namespace, operation: &dyn OperationSource) -> Option<Arc<Collection>> {
        let created = Transaction::of(operation).and_then(|transaction| transaction.created(namespace));
        created.or_else(|| self.collection(namespace))
    }

    /// Saves the counter of keyspaces, before any keyspace that was given is used.
    pub(crate) fn save_counter(&self, changes: &Allocation) -> Result<()> {
        let mut batch = Batch::new();
        changes.put_counter(&self.store, &mut batch)?;
        self.store.commit(&batch).map(drop).map_err(from_storage)
    }
}
