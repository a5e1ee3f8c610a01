//! Inserts documents in batches, into plain and capped collections.

use crate::new_documents::{InsertedInto, NewDocuments};
use crate::user_writes;
use crate::waiting::lock;
use crate::{Catalog, Collection, Inserted, Namespace, Order};
use bunko_errors::{ErrorCode, Result};
use bunko_operation::OperationSource;
use std::borrow::Cow;

/// Maximum number of documents that share one log record.
pub(crate) const BATCH_COUNT_MAX: usize = 1024;
/// Maximum number of bytes of documents in a log record that has more than one.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// The number of documents, at most `count_max`, that fit one log record.
fn batch_length(documents: &[Cow<'_, [u8]>], count_max: usize) -> usize {
    let mut bytes = 0;
    let fits = |document: &&Cow<'_, [u8]>| {
        let fits = bytes == 0 || bytes + document.len() <= BATCH_BYTES_MAX;
        bytes += document.len();
        fits
    };
    documents.iter().take(count_max).take_while(fits).count()
}

impl Catalog {
    /// Inserts documents that [`crate::stored_document::for_insert`] has prepared. Creates the collection if it is
    /// missing.
    /// # Errors
    /// Only failures that stop the insert before anything is stored, such as a full disk or a killed operation; later
    /// these are in [`Inserted::stopped_by`]. A failure of one document is in [`Inserted::failures`].
    pub fn insert(
        &self,
        namespace: &Namespace,
        documents: &[Cow<'_, [u8]>],
        order: Order,
        operation: &dyn OperationSource,
    ) -> Result<Inserted> {
        if let Err(failure) = user_writes::check(namespace, operation) {
            let count = if order == Order::Ordered { documents.len().min(1) } else { documents.len() };
            let failures = (0..count).map(|position| (position, failure.clone())).collect();
            return Ok(Inserted { failures, ..Inserted::default() });
        }
        let mut inserted = Inserted::default();
        let mut first = 0;
        let mut count_max = BATCH_COUNT_MAX;
        while first < documents.len() && inserted.stopped_by.is_none() {
            let count = batch_length(&documents[first..], count_max);
            let batch = &documents[first..first + count];
            let (part, handled) = match self.insert_next(namespace, batch, first, order, operation) {
                Ok(Some(part)) => part,
                // The collection was dropped since it was looked up; the next round creates it again.
                Ok(None) => continue,
                Err(failure) if failure.code() == ErrorCode::EXCEEDED_MEMORY_LIMIT => {
                    if count > 1 {
                        // A smaller batch may fit.
                        count_max = count / 2;
                        continue;
                    }
                    (Inserted { failures: vec![(first, failure)], ..Inserted::default() }, count)
                }
                Err(failure) if first == 0 => return Err(failure),
                Err(failure) => (Inserted { stopped_by: Some(failure), ..Inserted::default() }, count),
            };
            let is_stopped = order == Order::Ordered && !part.failures.is_empty();
            inserted.add(part);
            if is_stopped {
                break;
            }
            first += handled;
        }
        Ok(inserted)
    }

    /// Inserts one batch of documents. Also returns how many documents were handled; `None` if the collection is gone.
    fn insert_next(
        &self,
        namespace: &Namespace,
        batch: &[Cow<'_, [u8]>],
        first: usize,
        order: Order,
        operation: &dyn OperationSource,
    ) -> Result<Option<(Inserted, usize)>> {
        if first > 0 {
            operation.operation().note_change();
            operation.operation().check()?;
        }
        let collection = self.collection_or_create(namespace, operation)?;
        match collection.cap() {
            Some(_) => self.insert_capped(&collection, batch, first, order, operation),
            None => {
                let mut documents = NewDocuments::new(batch, (first, order), InsertedInto::Log);
                let inserted = self.write(&collection, operation, &mut documents)?;
                Ok(inserted.map(|inserted| (inserted, batch.len())))
            }
        }
    }

    /// Inserts into a capped collection, one document per batch, so that a document and those that it pushes out are in
    /// one batch. Inserts wait for each other: the order of records is that of the log. Also returns how many documents
    /// were handled; `None` if the collection was gone before the first.
    fn insert_capped(
        &self,
        collection: &Collection,
        documents: &[Cow<'_, [u8]>],
        offset: usize,
        order: Order,
        operation: &dyn OperationSource,
    ) -> Result<Option<(Inserted, usize)>> {
        let (mut inserted, mut handled) = (Inserted::default(), documents.len());
        let _in_order = lock(&collection.capped_order, operation)?;
        for (position, document) in documents.iter().enumerate() {
            if inserted.count > 0 {
                operation.operation().note_change();
            }
            let document = std::slice::from_ref(document);
            let mut document = NewDocuments::new(document, (offset + position, order), InsertedInto::Log);
            match self.write(collection, operation, &mut document) {
                Ok(Some(part)) => inserted.add(part),
                Ok(None) if position == 0 => return Ok(None),
                // The collection is gone: the caller inserts the rest into the collection that has the name then.
                Ok(None) => {
                    handled = position;
                    break;
                }
                Err(failure) if inserted.count == 0 => return Err(failure),
                Err(failure) => inserted.stopped_by = Some(failure),
            }
            if inserted.stopped_by.is_some() || order == Order::Ordered && !inserted.failures.is_empty() {
                break;
            }
        }
        if inserted.count > 0 {
            collection.bell.ring();
        }
        Ok(Some((inserted, handled)))
    }
}
