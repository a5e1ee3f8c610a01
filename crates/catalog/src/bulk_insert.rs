//! Bulk inserts that bypass the log: documents are written once, to their final place.
//!
//! The engine writes the documents into a file of its own and syncs it (`Store::stage`). One batch adopts the file.
//! Then the documents are placed by the batches of an insert, which have locations instead of bytes. Reclaim leaves the
//! file alone until the last document is placed and no older view is open (`Staging::protects` of `lsm`). If the engine
//! stages nothing, or the log is kept as a history, which must have all documents, this is a plain insert.

use crate::insert::BATCH_COUNT_MAX;
use crate::new_documents::{InsertedInto, NewDocuments};
use crate::user_writes;
use crate::waiting::share;
use crate::{Catalog, Collection, Inserted, Namespace, Order, from_storage};
use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_store::{Batch, RecordId, StorageError};
use std::borrow::Cow;

/// Documents with fewer bytes are inserted plainly: a file of their own and its sync would cost more.
const BULK_BYTES_MIN: usize = 1 << 20;

impl Catalog {
    /// As [`Catalog::insert`], for a bulk load. If the collection's engine supports it, the documents are written
    /// durably to the engine's own files before the log names them. Otherwise, and for few documents, this is a plain
    /// insert. The guarantees are those of an insert: after a crash, a document is there with all its keys, or not at
    /// all.
    ///
    /// # Errors
    /// As [`Catalog::insert`].
    pub fn insert_bulk(
        &self,
        namespace: &Namespace,
        documents: &[Cow<'_, [u8]>],
        order: Order,
        operation: &dyn OperationSource,
    ) -> Result<Inserted> {
        let bytes: usize = documents.iter().map(|document| document.len()).sum();
        if bytes < BULK_BYTES_MIN || user_writes::check(namespace, operation).is_err() {
            return self.insert(namespace, documents, order, operation);
        }
        let collection = self.collection_or_create(namespace, operation)?;
        if collection.validator().is_some() || collection.cap().is_some() {
            // A refused document must not be in a file, and a capped collection takes documents one by one.
            return self.insert(namespace, documents, order, operation);
        }
        let staged = self.insert_staged(&collection, documents, order, operation)?;
        let Some(Placed { mut inserted, tried, is_stopped }) = staged else {
            return self.insert(namespace, documents, order, operation);
        };
        if tried < documents.len() && !is_stopped {
            // The collection was dropped meanwhile: the rest goes into a new one of the same name.
            let mut rest = self.insert(namespace, &documents[tried..], order, operation)?;
            rest.failures.iter_mut().for_each(|(position, _)| *position += tried);
            inserted.add(rest);
        }
        Ok(inserted)
    }

    /// Inserts through a file of the engine. Returns `None`, and has done nothing, if the engine has no such files or
    /// the collection is gone.
    fn insert_staged(
        &self,
        collection: &Collection,
        documents: &[Cow<'_, [u8]>],
        order: Order,
        operation: &dyn OperationSource,
    ) -> Result<Option<Placed>> {
        let first_record = collection.take_record_ids(documents.len() as u64);
        let record = |position: usize| RecordId(first_record.0 + position as u64);
        let mut numbered = documents.iter().enumerate().map(|(position, document)| (record(position), &**document));
        let staged = match self.store.stage(collection.records, &mut numbered) {
            Ok(Some(staged)) => staged,
            Ok(None) | Err(StorageError::RecordTooLarge { .. }) => return Ok(None),
            Err(error) => return Err(from_storage(error)),
        };
        {
            let _structure = share(&collection.structure, operation)?;
            if collection.is_dropped() {
                return Ok(None);
            }
            let mut batch = Batch::new();
            staged.adopt(&mut batch);
            self.store.commit(&batch).map_err(from_storage)?;
        }
        let mut placed = Placed::default();
        while placed.tried < documents.len() && !placed.is_stopped {
            let first = placed.tried;
            let end = documents.len().min(first + BATCH_COUNT_MAX);
            let place =
                InsertedInto::Staged { first_record: record(first), locations: &staged.locations()[first..end] };
            let mut documents = NewDocuments::new(&documents[first..end], (first, order), place);
            let part = match self.write(collection, operation, &mut documents) {
                Ok(Some(part)) => part,
                Ok(None) => break,
                Err(failure) if first == 0 => return Err(failure),
                Err(failure) => Inserted { stopped_by: Some(failure), ..Inserted::default() },
            };
            let is_refused = order == Order::Ordered && !part.failures.is_empty();
            placed.is_stopped = is_refused || part.stopped_by.is_some();
            placed.inserted.add(part);
            placed.tried = end;
        }
        Ok(Some(placed))
    }
}

/// Progress of an insert of staged documents.
#[derive(Default)]
struct Placed {
    inserted: Inserted,
    /// Number of leading documents that were placed or refused.
    tried: usize,
    /// Whether an ordered insert met a failure, or a failure ended the whole insert.
    is_stopped: bool,
}
