//! Inserts documents together with their index keys.

use crate::building::BuildNotes;
use crate::capped::Victims;
use crate::duplicate_key::duplicate_key;
use crate::index_keys::own_part;
use crate::key_list::KeyList;
use crate::taken::Taken;
use crate::transaction::Owned;
use crate::user_writes;
use crate::waiting::{lock_stripes, share};
use crate::write::{holder, is_guarded, locks_keys, put_key, record_stripe, stored_key_stripe};
use crate::{Catalog, Collection, Index, Namespace, RetryableWrite, Transaction, from_storage, notes};
use bunko_bson::DocumentRef;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{Location, Lsn, Presence, RecordId, Snapshot, View};
use std::borrow::Cow;
use std::sync::Arc;

/// Most documents that share one log record.
pub(crate) const BATCH_COUNT_MAX: usize = 1024;
/// Most bytes of documents in a log record that has more than one.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Unique keys of one document that are looked up between two checks of the operation, and the cost of each in the
/// operation's steps.
const LOOKUPS_PER_QUESTION: usize = 64;
const STEPS_PER_LOOKUP: usize = 16;

/// Whether a failed insert stops the later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It stops them.
    Ordered,
    /// It does not stop them.
    Unordered,
}

/// The outcome of an insert.
#[derive(Debug, Default)]
pub struct Inserted {
    /// Number of documents stored.
    pub count: usize,
    /// Number of index keys put for them.
    pub keys: usize,
    /// The last LSN written.
    pub lsn: Option<Lsn>,
    /// Failures by position in the input.
    pub failures: Vec<(usize, Failure)>,
    /// The failure that stopped the whole insert after some documents had been stored.
    pub stopped_by: Option<Failure>,
}

impl Inserted {
    /// Adds the outcome of later documents.
    pub(crate) fn add(&mut self, later: Self) {
        self.count += later.count;
        self.keys += later.keys;
        self.lsn = later.lsn.or(self.lsn);
        self.failures.extend(later.failures);
        self.stopped_by = later.stopped_by;
    }
}

/// Where the inserted documents are stored.
#[derive(Clone, Copy)]
pub(crate) enum Place<'l> {
    /// In the log.
    Log,
    /// In the log, as copies of another collection's documents.
    Copies,
    /// In the engine already.
    Staged {
        /// The record of the first document; the others follow.
        first_record: RecordId,
        /// The location of each document.
        locations: &'l [Location],
    },
}

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
                // Dropped since it was looked up; the next round creates it again.
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

    /// Inserts one batch of documents. Also returns how many were handled; `None` if the collection is gone.
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
                let inserted = self.insert_batch(&collection, batch, first, order, Place::Log, operation)?;
                Ok(inserted.map(|inserted| (inserted, batch.len())))
            }
        }
    }

    /// Inserts documents with one log record. An ordered insert ends at its first failure. `None` if the collection is
    /// gone.
    pub(crate) fn insert_batch(
        &self,
        collection: &Collection,
        documents: &[Cow<'_, [u8]>],
        offset: usize,
        order: Order,
        place: Place<'_>,
        operation: &dyn OperationSource,
    ) -> Result<Option<Inserted>> {
        // Nothing is locked here, because this may take a while.
        self.keep_pace(operation);
        loop {
            match self.try_insert_batch(collection, documents, offset, order, place, operation)? {
                Attempt::Made(inserted) => return Ok(inserted),
                Attempt::Awaits(owned) => self.owners.wait(&owned, operation)?,
            }
        }
    }

    fn try_insert_batch(
        &self,
        collection: &Collection,
        documents: &[Cow<'_, [u8]>],
        offset: usize,
        order: Order,
        place: Place<'_>,
        operation: &dyn OperationSource,
    ) -> Result<Attempt> {
        let transaction = Transaction::of(operation);
        // Before anything is locked, because the transaction enters the collection here.
        let view = transaction.map(|transaction| transaction.read_for_write(collection)).transpose()?;
        let _structure = share(&collection.structure, operation)?;
        if collection.is_dropped() {
            return Ok(Attempt::Made(None));
        }
        let indexes = collection.indexes_lent();
        let first_record = match place {
            Place::Log | Place::Copies => collection.take_record_ids(documents.len() as u64),
            Place::Staged { first_record, .. } => first_record,
        };
        let record = |position: usize| RecordId(first_record.0 + position as u64);
        let mut keys = KeyList::with_capacity(documents.len() * indexes.len());
        let mut refused: Vec<(usize, Failure)> = Vec::new();
        let mut grown = Vec::new();
        let validator = collection.validator();
        for (position, document) in documents.iter().enumerate() {
            if let Some(validator) = &validator
                && let Err(failure) = validator.check(collection, document, None, operation)
            {
                // The cause may be that the operation has to stop, not this document.
                operation.operation().check()?;
                refused.push((position, failure));
                continue;
            }
            if let Err(failure) = keys.add(&indexes, position, document, record(position), &mut grown, operation) {
                // The cause may be that the operation has to stop, or that the batch has to be shorter.
                operation.operation().check()?;
                if failure.code() == ErrorCode::EXCEEDED_MEMORY_LIMIT && documents.len() > 1 {
                    return Err(failure);
                }
                keys.entries.retain(|entry| entry.document != position);
                refused.push((position, failure));
            }
        }
        self.grow_multikey(collection, &indexes, &grown)?;
        let locked = keys.entries.iter().filter(|entry| locks_keys(&indexes[entry.index]));
        let mut stripes: Vec<usize> =
            locked.map(|entry| stored_key_stripe(&indexes[entry.index], keys.of(entry))).collect();
        // Another writer may find a record by its `_id` before the last of its keys is applied, and must wait for that.
        stripes.extend((0..documents.len()).map(|position| record_stripe(collection.records, record(position))));
        let victims = match collection.cap() {
            Some(cap) => Victims::find(collection, cap, documents[0].len(), operation)?,
            None => Victims::default(),
        };
        victims.add_stripes(collection, &indexes, &mut stripes)?;
        let _locked = lock_stripes(self.store.locks(), &mut stripes, operation)?;
        if let Some(transaction) = transaction {
            claim(transaction, collection, &keys, &indexes, (0..documents.len()).map(record))?;
        } else if self.owners.are_any()
            && let Some(owned) = self.owners.first_owned(keys.owned(&indexes))
        {
            return Ok(Attempt::Awaits(owned));
        }
        let latest = view.as_ref().map_or(self.store.latest(), |view: &Snapshot| view as &dyn View);
        let batch = if matches!(place, Place::Copies) { notes::batch_of_copies } else { notes::batch_of };
        let (mut batch, mut notes) = (batch(collection), BuildNotes::default());
        // A document alone in its batch cannot collide with another, and each of its keys is looked up once at most.
        let mut taken = if documents.len() > 1 { keys.taken(latest, &indexes)? } else { Vec::new() };
        let mut inserted = Inserted::default();
        let mut entries = keys.entries.as_slice();
        let retryable = RetryableWrite::of(operation);
        if let Some(write) = retryable {
            write.begin_batch();
        }
        let mut refused = refused.into_iter().peekable();
        for (position, document) in documents.iter().enumerate() {
            let count = entries.iter().take_while(|entry| entry.document == position).count();
            let (own, rest) = entries.split_at(count);
            entries = rest;
            let mut failure = refused.next_if(|(refused, _)| *refused == position).map(|(_, failure)| failure);
            for (number, entry) in own.iter().filter(|entry| is_guarded(&indexes[entry.index])).enumerate() {
                if failure.is_some() {
                    break;
                }
                if number % LOOKUPS_PER_QUESTION == LOOKUPS_PER_QUESTION - 1 {
                    operation.operation().work(STEPS_PER_LOOKUP * LOOKUPS_PER_QUESTION)?;
                }
                let (index, key) = (&indexes[entry.index], keys.of(entry));
                let is_taken = is_taken(latest, index, key, taken.get(entry.index))?;
                let own = Some(DocumentRef::trusted(document));
                failure = is_taken.then(|| duplicate_key(collection, index, own_part(index, key), own));
            }
            if let Some(failure) = failure {
                inserted.failures.push((offset + position, failure));
                if order == Order::Ordered {
                    break;
                }
                continue;
            }
            match place {
                Place::Log | Place::Copies => {
                    batch.insert_record(collection.records, record(position), document.as_ref());
                }
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
                if locks_keys(index)
                    && let Some(taken) = taken.get_mut(entry.index)
                {
                    taken.add(own_part(index, key));
                }
            }
            inserted.count += 1;
            inserted.keys += own.len();
            if let Some(write) = retryable {
                write.note_inserted(offset + position);
            }
        }
        if inserted.count > 0 {
            victims.put_deletes(collection, &indexes, latest, &mut batch, &mut notes)?;
            inserted.lsn = Some(self.commit(&mut batch, operation)?);
            notes.tell();
        }
        Ok(Attempt::Made(Some(inserted)))
    }
}

/// The outcome of an attempt to insert.
enum Attempt {
    /// `None` if the collection is gone.
    Made(Option<Inserted>),
    /// A transaction has claimed this record or key. Nothing was done.
    Awaits(Owned),
}

/// Claims new records and their unique keys for a transaction. The caller holds their locks.
fn claim(
    transaction: &Transaction,
    collection: &Collection,
    keys: &KeyList,
    indexes: &[Arc<Index>],
    records: impl Iterator<Item = RecordId>,
) -> Result<()> {
    for entry in keys.entries.iter().filter(|entry| locks_keys(&indexes[entry.index])) {
        transaction.claim_key(&indexes[entry.index], keys.of(entry))?;
    }
    records.into_iter().try_for_each(|record| transaction.claim_new_record(collection, record))
}

/// Whether a unique key belongs to a record, or will after the batch of `taken`.
fn is_taken(latest: &dyn View, index: &Index, key: &[u8], taken: Option<&Taken<'_>>) -> Result<bool> {
    let is_taken = match taken {
        Some(taken) => taken.contains(latest, index, key),
        None => holder(latest, index, key).map(|holder| holder.is_some()),
    };
    is_taken.map_err(from_storage)
}
