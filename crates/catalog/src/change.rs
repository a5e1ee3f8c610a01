//! Changes and deletes one document together with its index keys.

use crate::building::BuildNotes;
use crate::duplicate_key::duplicate_key;
use crate::index_keys::{keys_for, note_growth, note_types, own_part, scalar_key, stored_key};
use crate::key_list::KEY_BYTES_USUAL;
use crate::long_key::shorten_key;
use crate::notes::{Next, Origin};
use crate::transaction::Owned;
use crate::user_writes;
use crate::waiting::{lock_stripes, share};
use crate::write::{holder, is_guarded, locks_keys, record_stripe, stored_key_stripe};
use crate::{Catalog, Collection, Index, KeyTypes, Multikey, Transaction, from_storage, notes};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{Batch, Location, Lsn, Presence, RecordId, Snapshot, View};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The decision about a record, made while it is locked.
pub enum Verdict {
    /// Leave it.
    Keep,
    /// Store this document instead; its `_id` must be equal, but may be of another numeric type.
    Replace(DocumentBuf),
    /// Store this document instead, made by update operators. The delta is `diff` of the oplog's `{$v: 2}` entry; it is
    /// needed if [`Catalog::tells_of`] the collection.
    Modify(DocumentBuf, Option<DocumentBuf>),
    /// Store this document instead, made by a pipeline.
    Derive(DocumentBuf),
    /// Remove it.
    Delete,
}

/// The record to change.
#[derive(Clone, Copy, Debug)]
pub enum Target<'t> {
    /// By its id alone.
    Record(RecordId),
    /// By its id and its document's `_id`.
    Id(RecordId, ValueRef<'t>),
    /// By its id, with a version that was read earlier and its location. The version is not read again if it is still
    /// current.
    Found(RecordId, Location, &'t [u8]),
}

/// A key and the position of its index.
pub(crate) type IndexKey = (usize, Vec<u8>);

/// A change of a document: a replacement, or its deletion.
pub(crate) struct Change {
    replacement: Option<Vec<u8>>,
    origin: Origin,
}

impl Change {
    /// `None` if the document stays as it is.
    pub fn of(verdict: Verdict) -> Option<Self> {
        let (replacement, origin) = match verdict {
            Verdict::Keep => return None,
            Verdict::Delete => (None, Origin::Replacement),
            Verdict::Replace(document) => (Some(document), Origin::Replacement),
            Verdict::Modify(document, delta) => (Some(document), Origin::Operators(delta)),
            Verdict::Derive(document) => (Some(document), Origin::Pipeline),
        };
        Some(Self { replacement: replacement.map(DocumentBuf::into_bytes), origin })
    }

    /// The document that replaces the current one; `None` for a deletion.
    pub fn document(&self) -> Option<&[u8]> {
        self.replacement.as_deref()
    }

    /// # Errors
    /// As the collection's validator.
    pub fn check(&self, collection: &Collection, current: &[u8], operation: &dyn OperationSource) -> Result<()> {
        match (self.document(), collection.validator()) {
            (Some(document), Some(validator)) => validator.check(collection, document, Some(current), operation),
            _ => Ok(()),
        }
    }

    /// Adds the change of the current document, and its notes for the oplog, to a batch. `id_key` is the key of its
    /// `_id`, if known.
    pub fn put(
        self,
        batch: &mut Batch<'_>,
        collection: &Collection,
        indexes: &[Arc<Index>],
        (record, location, current): (RecordId, Location, &[u8]),
        id_key: Option<Vec<u8>>,
    ) {
        let next = self.replacement.as_deref().map(|document| Next { document, origin: &self.origin });
        notes::put_change(batch, collection, current, next.as_ref());
        match self.replacement {
            Some(document) => {
                batch.replace_record(collection.records, record, document, location);
                // The primary key has the document's location, so it is put again with every version.
                let key = id_key.unwrap_or_else(|| primary_key(&indexes[0], current));
                batch.put_primary_key(indexes[0].keyspace, &key, record, Presence::Moved);
            }
            None => {
                batch.delete_record(collection.records, record, location);
            }
        }
    }
}

impl Catalog {
    /// Locks a record, passes its newest version to `decide` and carries out the verdict.
    ///
    /// If the record's `_id` is known, [`Target::Id`] is best: it takes one lookup. `decide` is called again if locks
    /// of unique keys have to be added. Returns the LSN of the change, or `None` if nothing changed or the record is
    /// gone.
    /// # Errors
    /// As `decide`; `DuplicateKey`; as `OperationContext::check` while this waits for locks.
    pub fn change(
        &self,
        collection: &Collection,
        target: Target<'_>,
        operation: &dyn OperationSource,
        decide: &mut dyn FnMut(DocumentRef<'_>) -> Result<Verdict>,
    ) -> Result<Option<Lsn>> {
        user_writes::check_collection(collection, operation)?;
        let (record, id_key) = match target {
            Target::Record(record) => (record, None),
            Target::Id(record, id) => (record, Some(collection.id_key(id))),
            Target::Found(record, ..) => (record, None),
        };
        let mut stripes = vec![record_stripe(collection.records, record)];
        // The latest version known, and its location.
        let (mut current, mut known) = match target {
            Target::Found(_, location, document) => (document.to_vec(), Some(location)),
            Target::Record(_) | Target::Id(..) => (Vec::new(), None),
        };
        self.keep_pace(operation);
        let transaction = Transaction::of(operation);
        // Before anything is locked, because the transaction enters the collection here.
        let view = transaction.map(|transaction| transaction.read_for_write(collection)).transpose()?;
        loop {
            let structure = share(&collection.structure, operation)?;
            if collection.is_dropped() {
                return Ok(None);
            }
            let indexes = collection.indexes_lent();
            let locked = lock_stripes(self.store.locks(), &mut stripes, operation)?;
            let owned = || self.owners.first_owned([Owned::record(collection, record)]);
            if let Some(owned) = self.awaited(transaction, owned) {
                drop((locked, structure));
                self.owners.wait(&owned, operation)?;
                continue;
            }
            let latest = view.as_ref().map_or(self.store.latest(), |view: &Snapshot| view as &dyn View);
            let found = match &id_key {
                None => match known {
                    None => latest.record(collection.records, record, &mut current),
                    Some(known) => latest.record_again(collection.records, record, known, &mut current),
                },
                Some(key) => latest
                    .record_by_primary_key(indexes[0].keyspace, collection.records, key, &mut current)
                    .map(|found| found.filter(|(holder, _)| *holder == record).map(|(_, location)| location)),
            };
            let Some(location) = found.map_err(from_storage)? else { return Ok(None) };
            known = Some(location);
            let Some(change) = Change::of(decide(DocumentRef::trusted(&current))?) else { return Ok(None) };
            change.check(collection, &current, operation)?;
            let (old, new) =
                self.changed_keys(collection, (&indexes, operation), record, &current, change.document())?;
            // A writer that removes a key from an index being built must know whose key it is. A transaction keeps
            // other writers from the keys that it removes.
            let keeps = |index: &Index| transaction.is_some() || !is_guarded(index);
            let given_up = old.iter().filter(|(index, _)| locks_keys(&indexes[*index]) && keeps(&indexes[*index]));
            let mut needed: Vec<usize> = new
                .iter()
                .filter(|(index, _)| locks_keys(&indexes[*index]))
                .chain(given_up)
                .map(|(index, key)| stored_key_stripe(&indexes[*index], key))
                .filter(|stripe| !stripes.contains(stripe))
                .collect();
            if !needed.is_empty() {
                drop(locked);
                stripes.append(&mut needed);
                continue;
            }
            let unique = || old.iter().chain(&new).filter(|(index, _)| locks_keys(&indexes[*index]));
            let owned = || self.owners.first_owned(unique().map(|(index, key)| owned_key(&indexes[*index], key)));
            if let Some(transaction) = transaction {
                transaction.claim_record(collection, record, location)?;
                unique().try_for_each(|(index, key)| transaction.claim_key(&indexes[*index], key))?;
            } else if let Some(owned) = self.awaited(transaction, owned) {
                drop((locked, structure));
                self.owners.wait(&owned, operation)?;
                continue;
            }
            for (index, key) in new.iter().filter(|(index, _)| is_guarded(&indexes[*index])) {
                let index = &indexes[*index];
                let holder = holder(latest, index, key).map_err(from_storage)?;
                if holder.is_some_and(|holder| holder != record) {
                    let own = change.document().map(DocumentRef::trusted);
                    return Err(duplicate_key(collection, index, own_part(index, key), own));
                }
            }
            let (mut batch, mut notes) = (notes::batch_of(collection), BuildNotes::default());
            for (index, key) in &old {
                let index = &indexes[*index];
                match index.build() {
                    None => batch.delete_key(index.keyspace, key),
                    Some(build) => {
                        let removed = build.delete_key(latest, (index, key), record, &mut batch, &mut notes);
                        removed.map_err(from_storage)?;
                    }
                }
            }
            change.put(&mut batch, collection, &indexes, (record, location, &current), id_key);
            for (index, key) in &new {
                let index = &indexes[*index];
                match index.build() {
                    None => batch.put_key(index.keyspace, key, record),
                    Some(build) => {
                        let put = build.put_key(latest, (index, key), record, &mut batch, &mut notes);
                        put.map_err(from_storage)?;
                    }
                }
            }
            indexes.iter().filter_map(|index| index.build()).for_each(|build| notes.change(build, record));
            let lsn = self.commit(&mut batch, operation)?;
            notes.tell();
            operation.operation().work_done().note_keys(new.len(), old.len());
            return Ok(Some(lsn));
        }
    }

    /// The first claim that a writer outside transactions has to wait for, as found by `owned`. The caller holds the
    /// locks.
    fn awaited(&self, transaction: Option<&Transaction>, owned: impl FnOnce() -> Option<Owned>) -> Option<Owned> {
        if transaction.is_none() && self.owners.are_any() { owned() } else { None }
    }

    /// Keys that a change removes and adds. A replaced document keeps its `_id`, so that index is skipped. For an index
    /// being built, all keys of the new version are added, because the builder may not have reached the record.
    pub(crate) fn changed_keys(
        &self,
        collection: &Collection,
        (indexes, operation): (&[Arc<Index>], &dyn OperationSource),
        record: RecordId,
        old: &[u8],
        new: Option<&[u8]>,
    ) -> Result<(Vec<IndexKey>, Vec<IndexKey>)> {
        let mut grown = Vec::new();
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        let (mut old_single, mut new_single) = (Vec::new(), Vec::new());
        if let Some(new) = new
            && indexes[0].tells_types
        {
            // The key stays, but a number may have another type.
            let mut types = KeyTypes::default();
            types.note(0, DocumentRef::trusted(new).get("_id"));
            note_types(&mut grown, 0, &indexes[0], types);
        }
        for (position, index) in indexes.iter().enumerate().skip(usize::from(new.is_some())) {
            old_single.clear();
            new_single.clear();
            // Usually the indexed fields did not change, and comparing two short keys is enough.
            if let Some(new) = new
                && index.build().is_none()
                && scalar_key(index, DocumentRef::trusted(old), &mut old_single).is_some()
                && let Some(types) = scalar_key(index, DocumentRef::trusted(new), &mut new_single)
                && old_single == new_single
            {
                // Equal numbers of different types have the same key.
                note_types(&mut grown, position, index, types);
                continue;
            }
            let before = match all_keys(index, old, (record, operation), None) {
                // The old version may be unfit for an index that is being built; this change makes it fit or removes
                // it.
                Err(_) if index.build().is_some() => {
                    operation.operation().check()?;
                    BTreeSet::new()
                }
                before => before?,
            };
            let after = match new {
                Some(new) => all_keys(index, new, (record, operation), Some((position, &mut grown)))?,
                None => BTreeSet::new(),
            };
            removed.extend(before.difference(&after).map(|key| (position, key.clone())));
            if index.build().is_some() {
                added.extend(after.into_iter().map(|key| (position, key)));
            } else {
                added.extend(after.difference(&before).map(|key| (position, key.clone())));
            }
        }
        self.grow_multikey(collection, indexes, &grown)?;
        Ok((removed, added))
    }
}

fn all_keys(
    index: &Index,
    document: &[u8],
    (record, operation): (RecordId, &dyn OperationSource),
    grown: Option<(usize, &mut Vec<(usize, Multikey)>)>,
) -> Result<BTreeSet<Vec<u8>>> {
    let document = DocumentRef::trusted(document);
    let keys = keys_for(index, document, Some(operation))?;
    if let Some((position, grown)) = grown {
        index.kind.check_arrays(index, &keys.multikey)?;
        if !keys.keys.is_empty() {
            index.kind.check_document(index, document)?;
        }
        note_growth(grown, position, index, &keys.multikey);
    }
    Ok(keys
        .keys
        .into_iter()
        .map(|mut key| {
            stored_key(index, &mut key, record);
            key
        })
        .collect())
}

fn owned_key(index: &Index, key: &[u8]) -> Owned {
    Owned::key(index, own_part(index, key))
}

fn primary_key(id_index: &Index, document: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(KEY_BYTES_USUAL);
    // An `_id` is never an array, so this is its only key.
    scalar_key(id_index, DocumentRef::trusted(document), &mut key);
    shorten_key(&mut key);
    key
}

/// The failure of a cursor over a dropped collection.
pub fn dropped(collection: &Collection) -> Failure {
    Failure::new(ErrorCode::QUERY_PLAN_KILLED, format!("collection dropped: {}", collection.namespace()))
}
