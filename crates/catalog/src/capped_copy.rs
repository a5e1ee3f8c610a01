//! Capped copies of collections. A collection that becomes capped itself is copied into a temporary collection, which
//! then takes its name in one step. If the server is killed before that, the old collection is unchanged, and the
//! temporary collection is left. A copy beside its source has its own name from the start.

use crate::cap::Cap;
use crate::insert::BATCH_COUNT_MAX;
use crate::new_documents::{InsertedInto, NewDocuments};
use crate::transaction::{announce, exclude_all};
use crate::user_writes;
use crate::validator::without_validator;
use crate::waiting::lock;
use crate::{Catalog, Collection, CreateOptions, Namespace, Order, from_storage};
use bunko_bson::DocumentBuf;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{Direction, Lsn, RecordCursor, RecordId, RecordRange, Snapshot, View};
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

/// Bytes inserted at once, not counting the last document.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// The source and the target of a capped copy.
pub struct CappedCopy<'a> {
    /// The collection to read.
    pub from: &'a Namespace,
    /// The name of the copy; equal to `from` if the collection itself becomes capped.
    pub to: &'a Namespace,
    /// The name of the copy until it is complete, if it replaces its source.
    pub temporary: &'a Namespace,
    /// The options of the copy, including those of a capped collection.
    pub options: DocumentBuf,
}

impl Catalog {
    /// Makes a capped copy, which has no indexes except the one on `_id`. `own` is an internal operation, which no
    /// client can stop: it removes the copy after a failure.
    /// # Errors
    /// `NamespaceNotFound` if there is nothing to copy, `NamespaceExists` if the copy's name is taken; as
    /// `OperationContext::check`. The unfinished copy is removed then.
    pub fn copy_capped(
        &self,
        copy: &CappedCopy<'_>,
        operation: &dyn OperationSource,
        own: &dyn OperationSource,
    ) -> Result<Lsn> {
        user_writes::check(copy.to, operation)?;
        if copy.from == copy.to { self.convert(copy, operation, own) } else { self.clone_capped(copy, operation, own) }
    }

    /// Makes the collection itself capped. No operation may write to it or change the catalog meanwhile: a write after
    /// the copy was read would be lost.
    fn convert(
        &self,
        copy: &CappedCopy<'_>,
        operation: &dyn OperationSource,
        own: &dyn OperationSource,
    ) -> Result<Lsn> {
        let present = self.collection(copy.from);
        let _announced = present.as_deref().map(|present| announce(present, operation)).transpose()?;
        let mut changes = lock(&self.changes, operation)?;
        let source = self.collection(copy.from).ok_or_else(|| not_found(copy.from))?;
        let _no_writer = exclude_all(&source, operation)?;
        let (target, _) = self.create_under(&mut changes, copy.temporary, unvalidated(copy, &source))?;
        let outcome = self.copy_newest(&source, &target, InsertedInto::Copies, operation).and_then(|_| {
            let _no_writer_either = exclude_all(&target, operation)?;
            self.commit_rename(&target, Some(&source), copy.to, Some(&copy.options))
        });
        if outcome.is_err() {
            self.drop_under(&mut changes, copy.temporary, own)?;
        }
        outcome
    }

    fn clone_capped(
        &self,
        copy: &CappedCopy<'_>,
        operation: &dyn OperationSource,
        own: &dyn OperationSource,
    ) -> Result<Lsn> {
        let source = self.collection(copy.from).ok_or_else(|| not_found(copy.from))?;
        self.refuse_taken(copy.to)?;
        let options = CreateOptions {
            options: copy.options.clone(),
            engine: Some(source.engine.clone()),
            ..CreateOptions::default()
        };
        // As in MongoDB, the copy has its name from the start: change streams report no rename.
        let (target, created) = self.create(copy.to, options, operation)?;
        // The source's documents are copied as they are.
        operation.operation().bypass_validation();
        match self.copy_newest(&source, &target, InsertedInto::Copies, operation) {
            Ok(copied) => Ok(copied.unwrap_or(created)),
            Err(failure) => {
                if self.collection(copy.to).is_some_and(|present| Arc::ptr_eq(&present, &target)) {
                    self.drop_collection(copy.to, own)?;
                }
                Err(failure)
            }
        }
    }

    fn refuse_taken(&self, to: &Namespace) -> Result<()> {
        to.check_length()?;
        if self.collection(to).is_none() && !self.shows_oplog(to) && self.view(to)?.is_none() {
            return Ok(());
        }
        let message = format!("cloneCollectionAsCapped failed - destination collection {to} already exists");
        Err(Failure::new(ErrorCode::NAMESPACE_EXISTS, message))
    }

    /// Copies the newest documents of one collection into another, as many as that may hold. Change streams report
    /// documents in [`InsertedInto::Log`] as inserts. Returns the place of the last insert in the log, `None` if
    /// nothing was inserted.
    pub(crate) fn copy_newest(
        &self,
        source: &Collection,
        target: &Collection,
        place: InsertedInto<'_>,
        operation: &dyn OperationSource,
    ) -> Result<Option<Lsn>> {
        let snapshot = source.snapshot();
        let mut copied = None;
        let Some(first) = first_that_fits(source, target, &snapshot, operation)? else { return Ok(copied) };
        let range = RecordRange { start: Bound::Included(first), end: Bound::Unbounded };
        let mut cursor = snapshot.records(source.records, range, Direction::Forward);
        loop {
            let batch = next_batch(&mut *cursor, operation)?;
            if batch.is_empty() {
                return Ok(copied);
            }
            let inserted = self.write(target, operation, &mut NewDocuments::new(&batch, (0, Order::Ordered), place))?;
            let inserted = inserted.ok_or_else(|| crate::dropped(target))?;
            operation.operation().note_change();
            copied = inserted.lsn.or(copied);
            if let Some((_, failure)) = inserted.failures.into_iter().next() {
                return Err(failure);
            }
        }
    }
}

fn next_batch(cursor: &mut dyn RecordCursor, operation: &dyn OperationSource) -> Result<Vec<Cow<'static, [u8]>>> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while batch.len() < BATCH_COUNT_MAX && bytes < BATCH_BYTES_MAX {
        let Some((_, _, document)) = cursor.next().map_err(from_storage)? else { break };
        operation.operation().work(1 + document.len() / 64)?;
        bytes += document.len();
        batch.push(Cow::Owned(document.to_vec()));
    }
    Ok(batch)
}

/// The oldest of the newest documents that the target may hold together; `None` if the source is empty. One document
/// always fits, whatever its size.
fn first_that_fits(
    source: &Collection,
    target: &Collection,
    snapshot: &Snapshot,
    operation: &dyn OperationSource,
) -> Result<Option<RecordId>> {
    let cap = Cap::of((*target.options()).as_ref());
    let mut cursor = snapshot.records(source.records, RecordRange::ALL, Direction::Backward);
    let (mut first, mut documents, mut bytes) = (None, 0, 0);
    while let Some((record, _, document)) = cursor.next().map_err(from_storage)? {
        operation.operation().work(1)?;
        (documents, bytes) = (documents + 1, bytes + document.len() as u64);
        if first.is_some() && cap.is_some_and(|cap| !cap.holds(documents, bytes)) {
            break;
        }
        first = Some(record);
    }
    Ok(first)
}

/// The options with which the copy is created; it has no validator yet.
fn unvalidated(copy: &CappedCopy<'_>, source: &Collection) -> CreateOptions {
    let options = without_validator(&copy.options);
    CreateOptions { options, engine: Some(source.engine.clone()), ..CreateOptions::default() }
}

fn not_found(namespace: &Namespace) -> Failure {
    Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, format!("source collection {namespace} does not exist"))
}
