//! Applies oplog entries to documents, each found by its `_id`.

use super::change::Change;
use super::entry::NamedCollection;
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ValueRef, text::ValueText};
use bunko_catalog::{Catalog, Collection, Namespace, Order, Target, Verdict, stored_document};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_observe::Counters;
use bunko_operation::OperationContext;
use bunko_query::write::Upsert;
use bunko_store::{Lsn, RecordId};
use std::borrow::Cow;
use std::sync::Arc;

/// Attempts of an operation, while other operations insert or delete its document.
const ATTEMPTS_MAX: usize = 100;

/// The catalog that the documents are in, and the last record that was written to it.
pub(super) struct Documents<'s> {
    catalog: &'s Catalog,
    counters: &'s Counters,
    operation: &'s OperationContext,
    /// The last record written.
    pub written: Option<Lsn>,
}

/// Outcome of a change to a record that was found just before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sighting {
    Gone,
    Kept,
    Changed,
}

impl<'s> Documents<'s> {
    pub fn new(catalog: &'s Catalog, counters: &'s Counters, operation: &'s OperationContext) -> Self {
        Self { catalog, counters, operation, written: None }
    }

    /// Stores each document, and replaces one that has its `_id`. Returns how many were stored, and the failure of the
    /// next one.
    pub fn insert(&mut self, place: &NamedCollection, documents: &[DocumentRef<'_>]) -> (usize, Option<Failure>) {
        let mut stored = Vec::with_capacity(documents.len());
        let mut unfit = None;
        for document in documents {
            match stored_document::as_stored_elsewhere(*document) {
                Ok(document) => stored.push(document),
                Err(failure) => {
                    unfit = Some(failure);
                    break;
                }
            }
        }
        let mut done = 0;
        let outcome = self.insert_stored(place, &stored, &mut done);
        self.counters.note_inserts(done as u64, done as u64);
        (done, outcome.err().or(unfit))
    }

    fn insert_stored(&mut self, place: &NamedCollection, documents: &[Cow<'_, [u8]>], done: &mut usize) -> Result<()> {
        let namespace = self.target(place)?;
        // Most documents are new, so all are inserted in one batch first.
        let inserted = self.catalog.insert(&namespace, documents, Order::Ordered, self.operation)?;
        self.written = self.written.max(inserted.lsn);
        *done = inserted.count;
        if let Some(failure) = inserted.stopped_by {
            return Err(failure);
        }
        for document in &documents[inserted.count..] {
            self.put(&namespace, document)?;
            *done += 1;
        }
        Ok(())
    }

    /// Stores one document, and replaces one that has its `_id`.
    fn put(&mut self, namespace: &Namespace, document: &[u8]) -> Result<()> {
        let id = DocumentRef::trusted(document).get("_id").unwrap_or(ValueRef::Null);
        for _ in 0..ATTEMPTS_MAX {
            if let Some((collection, record)) = self.find(namespace, id)? {
                let put = |old: DocumentRef<'_>| Ok(replaced(old, Cow::Borrowed(document)));
                if self.change(&collection, record, id, put)? != Sighting::Gone {
                    return Ok(());
                }
                continue;
            }
            let document = [Cow::Borrowed(document)];
            let mut inserted = self.catalog.insert(namespace, &document, Order::Ordered, self.operation)?;
            self.written = self.written.max(inserted.lsn);
            match inserted.failures.pop() {
                None => return Ok(()),
                Some((_, failure)) if is_duplicate_id(&failure) => {}
                Some((_, failure)) => return Err(failure),
            }
        }
        Err(overtaken(namespace, id))
    }

    /// Changes the document with that `_id`.
    /// # Errors
    /// `NamespaceNotFound`; `UnknownError` if there is no such document and `upsert` is off.
    pub fn update(
        &mut self,
        place: &NamedCollection,
        id: ValueRef<'_>,
        change: &Change<'_>,
        upsert: Upsert,
    ) -> Result<()> {
        self.counters.note_updates(1, 0);
        for _ in 0..ATTEMPTS_MAX {
            let found = match self.collection(place) {
                Some(collection) => collection.record_of_id(id, self.operation)?.map(|record| (collection, record)),
                None => return Err(missing_collection(place)),
            };
            let Some((collection, record)) = found else {
                return if upsert == Upsert::Yes { self.upsert(place, id, change) } else { Err(missing_document(id)) };
            };
            let operation = self.operation;
            let sighting =
                self.change(&collection, record, id, |old| Ok(replaced(old, change.apply(old, operation)?)))?;
            if sighting != Sighting::Gone {
                self.counters.note_updates(0, u64::from(sighting == Sighting::Changed));
                return Ok(());
            }
        }
        Err(overtaken(&place.namespace, id))
    }

    fn upsert(&mut self, place: &NamedCollection, id: ValueRef<'_>, change: &Change<'_>) -> Result<()> {
        let Some(document) = change.inserted(id, self.operation)? else { return Ok(()) };
        let namespace = self.target(place)?;
        self.put(&namespace, &document)
    }

    /// Deletes the document with that `_id`, if there is one.
    pub fn delete(&mut self, place: &NamedCollection, id: ValueRef<'_>) -> Result<()> {
        let mut deleted = false;
        if let Some(collection) = self.collection(place)
            && let Some(record) = collection.record_of_id(id, self.operation)?
        {
            deleted = self.change(&collection, record, id, |_| Ok(Verdict::Delete))? == Sighting::Changed;
        }
        self.counters.note_deletes(1, u64::from(deleted));
        Ok(())
    }

    fn change(
        &mut self,
        collection: &Collection,
        record: RecordId,
        id: ValueRef<'_>,
        decide: impl Fn(DocumentRef<'_>) -> Result<Verdict>,
    ) -> Result<Sighting> {
        let mut sighting = Sighting::Gone;
        let lsn = self.catalog.change(collection, Target::Id(record, id), self.operation, &mut |old| {
            let verdict = decide(old)?;
            sighting = if matches!(verdict, Verdict::Keep) { Sighting::Kept } else { Sighting::Changed };
            Ok(verdict)
        })?;
        self.written = self.written.max(lsn);
        // The change was decided, but not written: the record was deleted while its lock was released to take more
        // locks.
        Ok(if sighting == Sighting::Changed && lsn.is_none() { Sighting::Gone } else { sighting })
    }

    fn find(&self, namespace: &Namespace, id: ValueRef<'_>) -> Result<Option<(Arc<Collection>, RecordId)>> {
        let Some(collection) = self.catalog.collection(namespace) else { return Ok(None) };
        Ok(collection.record_of_id(id, self.operation)?.map(|record| (collection, record)))
    }

    fn collection(&self, place: &NamedCollection) -> Option<Arc<Collection>> {
        find_collection(self.catalog, &place.namespace, place.uuid)
    }

    /// The collection of a new document.
    /// # Errors
    /// `NamespaceNotFound` if it does not exist: an insert does not create it.
    fn target(&self, place: &NamedCollection) -> Result<Namespace> {
        let collection = self.collection(place).ok_or_else(|| missing_collection(place))?;
        Ok(collection.namespace().as_ref().clone())
    }
}

/// The collection with the given UUID, by whatever name; without a UUID, the collection of that name.
pub(super) fn find_collection(
    catalog: &Catalog,
    namespace: &Namespace,
    uuid: Option<[u8; 16]>,
) -> Option<Arc<Collection>> {
    let named = catalog.collection(namespace);
    match uuid {
        Some(uuid) if named.as_ref().is_none_or(|named| named.uuid != uuid) => catalog.collection_by_uuid(uuid),
        _ => named,
    }
}

fn replaced(old: DocumentRef<'_>, new: Cow<'_, [u8]>) -> Verdict {
    if old.as_bytes() == new.as_ref() {
        return Verdict::Keep;
    }
    Verdict::Replace(DocumentBuf::from_trusted(new.into_owned()))
}

fn is_duplicate_id(failure: &Failure) -> bool {
    let pattern = failure.details().get("keyPattern").and_then(ValueRef::as_document);
    failure.code() == ErrorCode::DUPLICATE_KEY
        && pattern.and_then(DocumentRef::first).is_some_and(|first| first.name == "_id")
        && pattern.is_some_and(|pattern| pattern.count() == 1)
}

fn missing_document(id: ValueRef<'_>) -> Failure {
    let message = format!("Failed to apply update: there is no document with the _id {}", ValueText(id));
    Failure::new(ErrorCode::UNKNOWN_ERROR, message)
}

fn missing_collection(place: &NamedCollection) -> Failure {
    let Some(uuid) = place.uuid else {
        let namespace = &place.namespace;
        let message = format!("cannot apply insert or update operation on a non-existent namespace {namespace}");
        return Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, message);
    };
    let uuid = ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &uuid };
    let message =
        format!("Failed to apply operation due to missing collection ({}): {}", ValueText(uuid), place.namespace);
    Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, message)
}

fn overtaken(namespace: &Namespace, id: ValueRef<'_>) -> Failure {
    let message = format!("{namespace}: others changed the document with the _id {} at the same time", ValueText(id));
    Failure::new(ErrorCode::WRITE_CONFLICT, message)
}
