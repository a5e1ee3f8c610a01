//! Drops collections and databases.

use crate::catalog::Allocation;
use crate::index_set::counted;
use crate::namespace::check_database;
use crate::transaction::{announce, exclude_all};
use crate::user_writes;
use crate::waiting::lock;
use crate::{Catalog, Collection, Namespace, from_storage, notes, persistence};
use bunko_bson::DocumentBuf;
use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_store::{Batch, Lsn};
use std::sync::Arc;

/// The result of a drop.
#[derive(Clone, Copy, Debug)]
pub struct DropOutcome {
    /// Number of indexes that the collection had.
    pub indexes: usize,
    /// The LSN of the drop.
    pub lsn: Lsn,
}

impl Catalog {
    /// Drops a collection; `None` if there is none.
    /// # Errors
    /// As `OperationContext::check` while this waits for writers and transactions in the collection.
    pub fn drop_collection(
        &self,
        namespace: &Namespace,
        operation: &dyn OperationSource,
    ) -> Result<Option<DropOutcome>> {
        user_writes::check(namespace, operation)?;
        let present = self.collection(namespace);
        let _announced = present.as_deref().map(|present| announce(present, operation)).transpose()?;
        let mut changes = lock(&self.changes, operation)?;
        self.drop_under(&mut changes, namespace, operation)
    }

    /// As [`Self::drop_collection`], for a caller that has locked the catalog's changes.
    pub(crate) fn drop_under(
        &self,
        _changes: &mut Allocation,
        namespace: &Namespace,
        operation: &dyn OperationSource,
    ) -> Result<Option<DropOutcome>> {
        let Some(collection) = self.collection(namespace) else { return Ok(None) };
        let _no_writer = exclude_all(&collection, operation)?;
        let mut batch = Batch::new();
        notes::put_command(
            &mut batch,
            &collection,
            &DocumentBuf::new().with("drop", collection.namespace().collection()),
        );
        let indexes = self.put_drop(&mut batch, &collection)?;
        let lsn = self.store.commit(&batch).map_err(from_storage)?;
        self.past_states.note_removed(&self.store, namespace, lsn);
        // Both changes happen under one lock, so that a lookup by name never finds a dropped collection.
        let mut collections = self.collections.write();
        collection.set_dropped();
        collections.remove(&collection);
        Ok(Some(DropOutcome { indexes, lsn }))
    }

    /// Drops a database with all its collections. Returns how many there were, and the last LSN; `None` if nothing was
    /// written.
    /// # Errors
    /// As [`Self::drop_collection`]; the collections before the failing one stay dropped.
    pub fn drop_database(&self, database: &str, operation: &dyn OperationSource) -> Result<(usize, Option<Lsn>)> {
        check_database(database)?;
        user_writes::check_database(database, operation)?;
        let (mut dropped, mut last) = (0, None);
        let mut note = |outcome: Option<DropOutcome>| {
            dropped += usize::from(outcome.is_some());
            last = outcome.map(|outcome| outcome.lsn).or(last);
            operation.operation().note_change();
        };
        for collection in self.collections(database) {
            note(self.drop_collection(&collection.namespace(), operation)?);
        }
        loop {
            // Other operations may have created collections meanwhile. These are dropped too, and the catalog stays
            // locked until the oplog has recorded the end of the database.
            let rest = self.collections(database);
            let _announced = rest.iter().map(|left| announce(left, operation)).collect::<Result<Vec<_>>>()?;
            let mut changes = lock(&self.changes, operation)?;
            let now = self.collections(database);
            if now.len() != rest.len() || !now.iter().zip(&rest).all(|(now, left)| Arc::ptr_eq(now, left)) {
                continue;
            }
            for left in &rest {
                note(self.drop_under(&mut changes, &left.namespace(), operation)?);
            }
            if self.store.keeps_history() && dropped > 0 && database != Namespace::OPLOG_DATABASE {
                last = Some(self.store.commit(&notes::batch_of_dropped_database(database)).map_err(from_storage)?);
            }
            return Ok((dropped, last));
        }
    }

    /// Adds a collection's removal to a batch; the caller records it for the oplog. Returns the number of its indexes.
    pub(crate) fn put_drop(&self, batch: &mut Batch<'_>, collection: &Collection) -> Result<usize> {
        let indexes = collection.indexes();
        persistence::delete(&self.store, batch, collection.catalog_record)?;
        batch.drop_keyspace(collection.records);
        for index in indexes.iter() {
            batch.drop_keyspace(index.keyspace);
        }
        Ok(counted(&indexes))
    }
}
