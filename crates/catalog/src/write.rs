//! Changing documents together with their index keys.

use crate::building::BuildNotes;
use crate::duplicate_key::duplicate_key;
use crate::index_keys::{index_keys, scalar_key, stored_key};
use crate::taken::Taken;
use crate::waiting::{lock_stripes, share};
use crate::{Catalog, Collection, Index, IndexState, Multikey, Namespace, from_storage, notes, persistence};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{Batch, KeyspaceId, Location, LockTable, Lsn, Presence, RecordId, View};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Documents that share one log record at most.
pub(crate) const BATCH_COUNT_MAX: usize = 1024;
/// What keys are given room for, in bytes: an object id and its type.
pub(crate) const KEY_BYTES_USUAL: usize = 24;
/// Bytes that a log record holds before the next is begun.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Whether a failed insert stops those behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It does.
    Ordered,
    /// It does not.
    Unordered,
}

/// What became of an insert.
#[derive(Debug, Default)]
pub struct Inserted {
    /// How many documents were stored.
    pub count: usize,
    /// The last record written.
    pub lsn: Option<Lsn>,
    /// Failures by position in the input.
    pub failures: Vec<(usize, Failure)>,
    /// What stopped everything once some had been stored.
    pub stopped_by: Option<Failure>,
}

impl Inserted {
    /// Adds what became of later documents.
    pub(crate) fn add(&mut self, later: Self) {
        self.count += later.count;
        self.lsn = later.lsn.or(self.lsn);
        self.failures.extend(later.failures);
        self.stopped_by = later.stopped_by;
    }
}

/// What to do with a record, decided while it is locked.
pub enum Verdict {
    /// Leave it.
    Keep,
    /// Store these bytes instead; `_id` equal, if perhaps of another numeric type.
    Replace(DocumentBuf),
    /// Remove it.
    Delete,
}

/// Which record is to be changed.
#[derive(Clone, Copy, Debug)]
pub enum Target<'t> {
    /// By its id alone.
    Record(RecordId),
    /// By its id and its document's `_id`.
    Id(RecordId, ValueRef<'t>),
}

/// Where the documents of an insert stand.
#[derive(Clone, Copy)]
pub(crate) enum Place<'l> {
    /// They will stand in the log.
    Log,
    /// The engine has them already.
    Staged {
        /// The record of the first one; the others follow.
        first_record: RecordId,
        /// Where each is.
        locations: &'l [Location],
    },
}

/// A key and the position of its index.
type IndexKey = (usize, Vec<u8>);

/// Keys of documents in the collection's indexes, flat to spare allocations.
struct Keys {
    bytes: Vec<u8>,
    entries: Vec<KeyEntry>,
}

struct KeyEntry {
    document: usize,
    index: usize,
    start: usize,
    end: usize,
}

impl Keys {
    /// Room for that many keys of usual length.
    fn with_capacity(keys: usize) -> Self {
        Self { bytes: Vec::with_capacity(keys * KEY_BYTES_USUAL), entries: Vec::with_capacity(keys) }
    }

    fn of<'k>(&'k self, entry: &KeyEntry) -> &'k [u8] {
        &self.bytes[entry.start..entry.end]
    }

    /// Of each index, which of the keys are taken if it is unique. The keys must be locked.
    fn taken<'k>(&'k self, view: &dyn View, indexes: &[Arc<Index>]) -> Result<Vec<Taken<'k>>> {
        let of_index = |(position, index): (usize, &Arc<Index>)| {
            let own = self.entries.iter().filter(move |entry| index.is_unique && entry.index == position);
            Taken::new(view, index.keyspace, own.map(|entry| self.of(entry)))
        };
        indexes.iter().enumerate().map(of_index).collect::<bunko_store::Result<_>>().map_err(from_storage)
    }

    /// Adds the keys of a document; the arrays of each index that gained some.
    fn add(
        &mut self,
        indexes: &[Arc<Index>],
        document: usize,
        bytes: &[u8],
        record: RecordId,
        grown: &mut Vec<(usize, Multikey)>,
    ) -> Result<()> {
        let body = DocumentRef::trusted(bytes);
        for (position, index) in indexes.iter().enumerate() {
            let start = self.bytes.len();
            if scalar_key(index, body, &mut self.bytes) && self.bytes.len() - start <= crate::index_keys::KEY_BYTES_MAX
            {
                stored_key(index, &mut self.bytes, record);
                self.entries.push(KeyEntry { document, index: position, start, end: self.bytes.len() });
                continue;
            }
            self.bytes.truncate(start);
            let keys = index_keys(index, body)?;
            if !index.multikey().covers(&keys.multikey) {
                grown.push((position, keys.multikey));
            }
            for key in keys.keys {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(&key);
                stored_key(index, &mut self.bytes, record);
                self.entries.push(KeyEntry { document, index: position, start, end: self.bytes.len() });
            }
        }
        Ok(())
    }
}

/// Puts a key; that of `_id` is the primary key.
fn put_key(batch: &mut Batch<'_>, index: &Index, key: &[u8], record: RecordId, presence: Presence) {
    if index.is_id() {
        batch.put_primary_key(index.keyspace, key, record, presence);
    } else {
        batch.put_key(index.keyspace, key, record);
    }
}

fn primary_key(id_index: &Index, document: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(KEY_BYTES_USUAL);
    // An `_id` is never an array, so this is its only key.
    scalar_key(id_index, DocumentRef::trusted(document), &mut key);
    key
}

/// The lock of a unique key.
pub(crate) fn key_stripe(keyspace: KeyspaceId, key: &[u8]) -> usize {
    LockTable::stripe((keyspace, key))
}

/// The lock of a record.
pub(crate) fn record_stripe(keyspace: KeyspaceId, record: RecordId) -> usize {
    LockTable::stripe((keyspace, record))
}

/// How many of the documents, at most `count_max`, one log record holds.
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
    /// Inserts documents that [`crate::stored_document::for_insert`] made fit, creating the collection if need be.
    /// # Errors
    /// Only what stops everything before anything is stored, such as a full disk, or the operation; later that is
    /// [`Inserted::stopped_by`]. What concerns one document is in [`Inserted::failures`].
    pub fn insert(
        &self,
        namespace: &Namespace,
        documents: &[Cow<'_, [u8]>],
        order: Order,
        operation: &dyn OperationSource,
    ) -> Result<Inserted> {
        let mut inserted = Inserted::default();
        let mut first = 0;
        let mut count_max = BATCH_COUNT_MAX;
        while first < documents.len() && inserted.stopped_by.is_none() {
            let count = batch_length(&documents[first..], count_max);
            let batch = &documents[first..first + count];
            let part = match self.insert_next(namespace, batch, first, order, operation) {
                Ok(Some(part)) => part,
                // Dropped since it was looked up: the next round creates it anew.
                Ok(None) => continue,
                Err(failure) if failure.code() == ErrorCode::EXCEEDED_MEMORY_LIMIT => {
                    if count > 1 {
                        // There may be room for some of them.
                        count_max = count / 2;
                        continue;
                    }
                    Inserted { failures: vec![(first, failure)], ..Inserted::default() }
                }
                Err(failure) if first == 0 => return Err(failure),
                Err(failure) => Inserted { stopped_by: Some(failure), ..Inserted::default() },
            };
            let is_stopped = order == Order::Ordered && !part.failures.is_empty();
            inserted.add(part);
            if is_stopped {
                break;
            }
            first += count;
        }
        Ok(inserted)
    }

    fn insert_next(
        &self,
        namespace: &Namespace,
        batch: &[Cow<'_, [u8]>],
        first: usize,
        order: Order,
        operation: &dyn OperationSource,
    ) -> Result<Option<Inserted>> {
        if first > 0 {
            operation.operation().note_change();
            operation.operation().check()?;
        }
        let collection = self.collection_or_create(namespace, operation)?;
        self.insert_batch(&collection, batch, first, order, Place::Log, operation)
    }

    /// One log record's worth, which an ordered insert ends at its first failure; `None` where the collection is gone.
    pub(crate) fn insert_batch(
        &self,
        collection: &Collection,
        documents: &[Cow<'_, [u8]>],
        offset: usize,
        order: Order,
        place: Place<'_>,
        operation: &dyn OperationSource,
    ) -> Result<Option<Inserted>> {
        let _structure = share(&collection.structure, operation)?;
        if collection.is_dropped() {
            return Ok(None);
        }
        let indexes = collection.indexes_lent();
        let first_record = match place {
            Place::Log => collection.take_record_ids(documents.len() as u64),
            Place::Staged { first_record, .. } => first_record,
        };
        let record = |position: usize| RecordId(first_record.0 + position as u64);
        let mut keys = Keys::with_capacity(documents.len() * indexes.len());
        let mut refused: Vec<(usize, Failure)> = Vec::new();
        let mut grown = Vec::new();
        for (position, document) in documents.iter().enumerate() {
            if let Err(failure) = keys.add(&indexes, position, document, record(position), &mut grown) {
                keys.entries.retain(|entry| entry.document != position);
                refused.push((position, failure));
            }
        }
        self.grow_multikey(collection, &indexes, &grown)?;
        let unique = keys.entries.iter().filter(|entry| indexes[entry.index].is_unique);
        let mut stripes: Vec<usize> =
            unique.map(|entry| key_stripe(indexes[entry.index].keyspace, keys.of(entry))).collect();
        // Somebody may find a record by its `_id` before the last of its keys is applied, and must wait for that.
        stripes.extend((0..documents.len()).map(|position| record_stripe(collection.records, record(position))));
        let _locked = lock_stripes(self.store.locks(), &mut stripes, operation)?;
        let latest = self.store.latest();
        let (mut batch, mut notes) = (notes::batch_of(collection), BuildNotes::default());
        // One document has nobody beside it, and each of its keys is looked up once at most.
        let mut taken = if documents.len() > 1 { keys.taken(latest, &indexes)? } else { Vec::new() };
        let mut inserted = Inserted::default();
        let mut entries = keys.entries.as_slice();
        let mut refused = refused.into_iter().peekable();
        for (position, document) in documents.iter().enumerate() {
            let count = entries.iter().take_while(|entry| entry.document == position).count();
            let (own, rest) = entries.split_at(count);
            entries = rest;
            let mut failure = refused.next_if(|(refused, _)| *refused == position).map(|(_, failure)| failure);
            for entry in own.iter().filter(|entry| is_guarded(&indexes[entry.index])) {
                if failure.is_some() {
                    break;
                }
                let (index, key) = (&indexes[entry.index], keys.of(entry));
                let is_taken = is_taken(latest, index, key, taken.get(entry.index))?;
                let own = Some(DocumentRef::trusted(document));
                failure = is_taken.then(|| duplicate_key(collection, index, key, own));
            }
            if let Some(failure) = failure {
                inserted.failures.push((offset + position, failure));
                if order == Order::Ordered {
                    break;
                }
                continue;
            }
            match place {
                Place::Log => batch.insert_record(collection.records, record(position), document.as_ref()),
                Place::Staged { locations, .. } => {
                    batch.place_record(collection.records, record(position), locations[position]);
                }
            }
            for entry in own {
                let (index, key) = (&indexes[entry.index], keys.of(entry));
                if let Some(build) = index.build() {
                    notes.change(build, record(position));
                    if index.is_unique && is_taken(latest, index, key, taken.get(entry.index))? {
                        notes.add_holder(build, index, key, record(position));
                        continue;
                    }
                }
                put_key(&mut batch, index, key, record(position), Presence::New);
                if index.is_unique
                    && let Some(taken) = taken.get_mut(entry.index)
                {
                    taken.add(key);
                }
            }
            inserted.count += 1;
        }
        if inserted.count > 0 {
            inserted.lsn = Some(self.store.commit(&batch).map_err(from_storage)?);
            notes.tell();
        }
        Ok(Some(inserted))
    }

    /// Saves that an index became multikey, before any key that makes it so is written. The caller holds the
    /// collection's structure shared.
    pub(crate) fn grow_multikey(
        &self,
        collection: &Collection,
        indexes: &[Arc<Index>],
        grown: &[(usize, Multikey)],
    ) -> Result<()> {
        if !is_growing(indexes, grown) {
            return Ok(());
        }
        // Not the catalog's own lock: whoever changes the set of indexes holds that while waiting for writers.
        let _record = collection.catalog_record_lock.lock();
        // Somebody may have done it meanwhile.
        if !is_growing(indexes, grown) {
            return Ok(());
        }
        let mut batch = Batch::new();
        let multikey = |index: &Arc<Index>| {
            let own = grown.iter().filter(|(position, _)| Arc::ptr_eq(&indexes[*position], index));
            own.fold(index.multikey(), |known, (_, arrays)| Arc::new(known.with(arrays)))
        };
        let record =
            persistence::encode_with(collection, &collection.namespace(), &collection.indexes(), multikey, |index| {
                index.state() == IndexState::Ready
            });
        persistence::put(&self.store, &mut batch, collection.catalog_record, record)?;
        self.store.commit(&batch).map_err(from_storage)?;
        // Only now: who finds them set puts keys into the log that may not stand before them.
        for (position, arrays) in grown {
            indexes[*position].add_multikey(arrays);
        }
        Ok(())
    }

    /// Locks a record, lets `decide` look at its newest version and carries the verdict out.
    ///
    /// A record that is known by its `_id` is best named by it: that takes one lookup.
    /// `decide` may be called again where locks of unique keys had to be added. Returns the LSN of the change, or
    /// `None` where nothing changed or the record is gone.
    /// # Errors
    /// Those of `decide`; `DuplicateKey`; what the operation says while it waits for locks.
    pub fn change(
        &self,
        collection: &Collection,
        target: Target<'_>,
        operation: &dyn OperationSource,
        decide: &mut dyn FnMut(DocumentRef<'_>) -> Result<Verdict>,
    ) -> Result<Option<Lsn>> {
        let (record, id_key) = match target {
            Target::Record(record) => (record, None),
            Target::Id(record, id) => (record, Some(crate::collection::id_key(id))),
        };
        let mut stripes = vec![record_stripe(collection.records, record)];
        let mut current = Vec::new();
        loop {
            let _structure = share(&collection.structure, operation)?;
            if collection.is_dropped() {
                return Ok(None);
            }
            let indexes = collection.indexes_lent();
            let locked = lock_stripes(self.store.locks(), &mut stripes, operation)?;
            let latest = self.store.latest();
            let found = match &id_key {
                None => latest.record(collection.records, record, &mut current),
                Some(key) => latest
                    .record_by_primary_key(indexes[0].keyspace, collection.records, key, &mut current)
                    .map(|found| found.filter(|(holder, _)| *holder == record).map(|(_, location)| location)),
            };
            let Some(location) = found.map_err(from_storage)? else { return Ok(None) };
            let replacement = match decide(DocumentRef::trusted(&current))? {
                Verdict::Keep => return Ok(None),
                Verdict::Delete => None,
                Verdict::Replace(document) => Some(document.into_bytes()),
            };
            let (old, new) = self.changed_keys(collection, &indexes, record, &current, replacement.as_deref())?;
            // Who removes a key from an index that is being built must know whose it is.
            let given_up = old.iter().filter(|(index, _)| indexes[*index].is_unique && !is_guarded(&indexes[*index]));
            let mut needed: Vec<usize> = new
                .iter()
                .filter(|(index, _)| indexes[*index].is_unique)
                .chain(given_up)
                .map(|(index, key)| key_stripe(indexes[*index].keyspace, key))
                .filter(|stripe| !stripes.contains(stripe))
                .collect();
            if !needed.is_empty() {
                drop(locked);
                stripes.append(&mut needed);
                continue;
            }
            for (index, key) in new.iter().filter(|(index, _)| is_guarded(&indexes[*index])) {
                let holder = latest.key(indexes[*index].keyspace, key).map_err(from_storage)?;
                if holder.is_some_and(|holder| holder != record) {
                    let own = replacement.as_deref().map(DocumentRef::trusted);
                    return Err(duplicate_key(collection, &indexes[*index], key, own));
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
            match replacement {
                Some(document) => {
                    batch.replace_record(collection.records, record, document, location);
                    // The primary key knows where the document stands, so it moves with every version.
                    let key = id_key.unwrap_or_else(|| primary_key(&indexes[0], &current));
                    batch.put_primary_key(indexes[0].keyspace, &key, record, Presence::Moved);
                }
                None => {
                    notes::put_deleted(&mut batch, collection, &current);
                    batch.delete_record(collection.records, record, location);
                }
            }
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
            let lsn = self.store.commit(&batch).map_err(from_storage)?;
            notes.tell();
            return Ok(Some(lsn));
        }
    }

    /// Keys that a change takes away and brings; a replaced document keeps its `_id`, so that index is passed over. To an
    /// index that is being built it brings all keys of the new version: the builder may not have come to the record.
    fn changed_keys(
        &self,
        collection: &Collection,
        indexes: &[Arc<Index>],
        record: RecordId,
        old: &[u8],
        new: Option<&[u8]>,
    ) -> Result<(Vec<IndexKey>, Vec<IndexKey>)> {
        let mut grown = Vec::new();
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        let (mut old_single, mut new_single) = (Vec::new(), Vec::new());
        for (position, index) in indexes.iter().enumerate().skip(usize::from(new.is_some())) {
            old_single.clear();
            new_single.clear();
            // Usually the indexed fields did not change: then two short keys are all it takes to know.
            if let Some(new) = new
                && index.build().is_none()
                && scalar_key(index, DocumentRef::trusted(old), &mut old_single)
                && scalar_key(index, DocumentRef::trusted(new), &mut new_single)
                && old_single == new_single
            {
                continue;
            }
            let before = match all_keys(index, old, record, None) {
                // It is this change that makes it fit for the index, or takes it away.
                Err(_) if index.build().is_some() => BTreeSet::new(),
                before => before?,
            };
            let after = match new {
                Some(new) => all_keys(index, new, record, Some((position, &mut grown)))?,
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

/// Whether a second record with one key is refused at once. An index that is being built decides that at its end.
fn is_guarded(index: &Index) -> bool {
    index.is_unique && index.build().is_none()
}

/// Whether a unique key leads to a record, or will after the batch that `taken` goes with.
fn is_taken(latest: &dyn View, index: &Index, key: &[u8], taken: Option<&Taken<'_>>) -> Result<bool> {
    let is_taken = match taken {
        Some(taken) => taken.contains(latest, key),
        None => latest.key(index.keyspace, key).map(|holder| holder.is_some()),
    };
    is_taken.map_err(from_storage)
}

/// Whether any of those arrays, by index position, is new.
fn is_growing(indexes: &[Arc<Index>], grown: &[(usize, Multikey)]) -> bool {
    grown.iter().any(|(position, arrays)| !indexes[*position].multikey().covers(arrays))
}

fn all_keys(
    index: &Index,
    document: &[u8],
    record: RecordId,
    grown: Option<(usize, &mut Vec<(usize, Multikey)>)>,
) -> Result<BTreeSet<Vec<u8>>> {
    let keys = index_keys(index, DocumentRef::trusted(document))?;
    if let Some((position, grown)) = grown
        && !index.multikey().covers(&keys.multikey)
    {
        grown.push((position, keys.multikey));
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

/// What a cursor over a dropped collection gets.
pub fn dropped(collection: &Collection) -> Failure {
    Failure::new(ErrorCode::QUERY_PLAN_KILLED, format!("collection dropped: {}", collection.namespace()))
}
