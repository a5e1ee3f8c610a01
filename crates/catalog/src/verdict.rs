//! Verdicts about documents, and the changes that are derived from them.

use crate::commit::Attempt;
use crate::duplicate_key::duplicate_key;
use crate::effects::Effects;
use crate::index_keys::{KEY_BYTES_USUAL, keys_for, note_growth, note_types, own_part, scalar_key, stored_key};
use crate::long_key::shorten_key;
use crate::notes::{Next, Origin};
use crate::write::{KeyChange, UniqueKey, holder, is_guarded, locks_keys};
use crate::{Index, KeyTypes, Multikey, from_storage, notes};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_store::{Location, Presence, RecordId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The decision about a record, made while it is locked.
pub enum Verdict {
    /// Leave the document as it is.
    Keep,
    /// Store this document instead; its `_id` must be equal, but may be of another numeric type.
    Replace(DocumentBuf),
    /// Store this document instead, made by update operators. The delta is `diff` of the oplog's `{$v: 2}` entry; it is
    /// needed if [`crate::Catalog::tells_of`] the collection.
    Modify(DocumentBuf, Option<DocumentBuf>),
    /// Store this document instead, made by a pipeline.
    Derive(DocumentBuf),
    /// Delete the document.
    Delete,
}

/// A key and the position of its index.
type IndexKey = (usize, Vec<u8>);

/// A change of one document, derived from its newest version: a replacement, or its deletion.
pub(crate) struct Change {
    record: RecordId,
    location: Location,
    replacement: Option<Vec<u8>>,
    origin: Origin,
    deleted_keys: Vec<IndexKey>,
    put_keys: Vec<IndexKey>,
}

impl Change {
    /// Derives the change of a record whose newest version, `current`, stands at `location`. `None` if the document
    /// stays as it is.
    /// # Errors
    /// As the collection's validator; as [`keys_for`].
    pub fn derive(
        attempt: &Attempt<'_>,
        (record, location, current): (RecordId, Location, &[u8]),
        verdict: Verdict,
    ) -> Result<Option<Self>> {
        let (replacement, origin) = match verdict {
            Verdict::Keep => return Ok(None),
            Verdict::Delete => (None, Origin::Replacement),
            Verdict::Replace(document) => (Some(document), Origin::Replacement),
            Verdict::Modify(document, delta) => (Some(document), Origin::Operators(delta)),
            Verdict::Derive(document) => (Some(document), Origin::Pipeline),
        };
        let replacement = replacement.map(DocumentBuf::into_bytes);
        if let (Some(document), Some(validator)) = (&replacement, attempt.collection.validator()) {
            validator.check(attempt.collection, document, Some(current), attempt.operation)?;
        }
        let (deleted_keys, put_keys) = changed_keys(attempt, record, current, replacement.as_deref())?;
        Ok(Some(Self { record, location, replacement, origin, deleted_keys, put_keys }))
    }

    /// The location of the version from which the change was derived.
    pub fn location(&self) -> Location {
        self.location
    }

    /// Numbers of keys that are put and deleted.
    pub fn key_counts(&self) -> (usize, usize) {
        (self.put_keys.len(), self.deleted_keys.len())
    }

    /// The keys in indexes that lock their keys.
    pub fn unique_keys<'k>(&'k self, indexes: &'k [Arc<Index>]) -> impl Iterator<Item = UniqueKey<'k>> {
        let deleted = self.deleted_keys.iter().map(|key| (key, KeyChange::Deleted));
        let keys = deleted.chain(self.put_keys.iter().map(|key| (key, KeyChange::Put)));
        let keys = keys.map(|((index, key), change)| UniqueKey { index: &indexes[*index], key, change });
        keys.filter(|key| locks_keys(key.index))
    }

    /// Checks the unique keys that the change puts; their locks are held.
    /// # Errors
    /// `DuplicateKey` if another record has one of the keys.
    pub fn check_unique(&self, attempt: &Attempt<'_>) -> Result<()> {
        for (index, key) in &self.put_keys {
            let index = &attempt.indexes[*index];
            if !is_guarded(index) {
                continue;
            }
            let holder = holder(attempt.latest, index, key).map_err(from_storage)?;
            if holder.is_some_and(|holder| holder != self.record) {
                let own = self.replacement.as_deref().map(DocumentRef::trusted);
                return Err(duplicate_key(attempt.collection, index, own_part(index, key), own));
            }
        }
        Ok(())
    }

    /// Adds the change, and its notes for the oplog. `id_key` is the key of the document's `_id`, if known.
    pub fn put<'a>(
        self,
        effects: &mut Effects<'_, 'a>,
        attempt: &Attempt<'a>,
        current: &[u8],
        id_key: Option<Vec<u8>>,
    ) -> Result<()> {
        let Self { record, location, replacement, origin, deleted_keys, put_keys } = self;
        let (collection, indexes) = (attempt.collection, attempt.indexes);
        for (index, key) in &deleted_keys {
            effects.delete_key(&indexes[*index], key, record)?;
        }
        let next = replacement.as_deref().map(|document| Next { document, origin: &origin });
        notes::put_change(&mut effects.batch, collection, current, next.as_ref());
        match replacement {
            Some(document) => {
                effects.batch.replace_record(collection.records, record, document, location);
                // The primary key has the document's location, so it is put again with every version.
                let key = id_key.unwrap_or_else(|| primary_key(&indexes[0], current));
                effects.batch.put_primary_key(indexes[0].keyspace, &key, record, Presence::Moved);
            }
            None => effects.batch.delete_record(collection.records, record, location),
        }
        for (index, key) in &put_keys {
            effects.put_key(&indexes[*index], key, record)?;
        }
        effects.note_changed(record);
        Ok(())
    }
}

/// Keys that a change deletes and puts. A replaced document keeps its `_id`, so the index on `_id` is skipped. For an
/// index being built, all keys of the new version are added, because the builder may not have reached the record.
fn changed_keys(
    attempt: &Attempt<'_>,
    record: RecordId,
    old: &[u8],
    new: Option<&[u8]>,
) -> Result<(Vec<IndexKey>, Vec<IndexKey>)> {
    let (indexes, operation) = (attempt.indexes, attempt.operation);
    let mut grown = Vec::new();
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let (mut old_single, mut new_single) = (Vec::new(), Vec::new());
    if let Some(new) = new
        && indexes[0].tells_types
    {
        // The key stays, but a number in it may have got another type.
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
            // Equal numbers of different types have the same key, so the new type must be noted although the key stays.
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
    attempt.catalog.grow_multikey(attempt.collection, indexes, &grown)?;
    Ok((removed, added))
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

fn primary_key(id_index: &Index, document: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(KEY_BYTES_USUAL);
    // An `_id` is never an array, so the document has one key in this index.
    scalar_key(id_index, DocumentRef::trusted(document), &mut key);
    shorten_key(&mut key);
    key
}
