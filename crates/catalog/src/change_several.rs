//! Changes or deletes several documents with one log record, under one hold of their locks.
//!
//! Writing, ordering and applying a log record and taking the locks cost about as much as the change of a small
//! document. Changes that need only the locks of their records share these costs. Other changes are left to
//! [`Catalog::change`], one at a time.

use crate::change::{Change, IndexKey};
use crate::transaction::Owned;
use crate::user_writes;
use crate::waiting::{lock_stripes, share};
use crate::write::{locks_keys, record_stripe};
use crate::{Catalog, Collection, Index, RetryableWrite, Transaction, Verdict, from_storage, notes};
use bunko_bson::DocumentRef;
use bunko_errors::{Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{Batch, Location, Lsn, RecordId};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most records that are changed together. Each locks one of some thousands of stripes, and other writers of the stripe
/// wait longer if the holder's thread is descheduled. With this many, fewer than one insert in a hundred meets a locked
/// stripe, while the shared costs are almost nothing for each record.
const RECORDS_MAX: usize = 16;
/// Documents beyond this many bytes, counting old and new versions, are left for the next call.
const BYTES_MAX: usize = 256 << 10;
/// Longest time that the locks are held, not counting the last document.
const HELD_MAX: Duration = Duration::from_micros(500);

/// Records that a search has found, with their versions.
#[derive(Debug, Default)]
pub struct FoundRecords {
    bytes: Vec<u8>,
    records: Vec<FoundRecord>,
}

#[derive(Debug)]
struct FoundRecord {
    record: RecordId,
    location: Option<Location>,
    document: Range<usize>,
}

impl FoundRecords {
    /// Adds a record with the version that was found.
    pub fn push(&mut self, record: RecordId, document: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(document);
        self.records.push(FoundRecord { record, location: None, document: start..self.bytes.len() });
    }

    /// Sets the location of the version added last.
    pub fn stands_at(&mut self, location: Location) {
        if let Some(last) = self.records.last_mut() {
            last.location = Some(location);
        }
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(2 * BYTES_MAX);
        self.records.clear();
    }

    /// Whether no more records should be added.
    pub fn is_full(&self) -> bool {
        self.records.len() >= RECORDS_MAX || self.bytes.len() >= BYTES_MAX
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// A record, and the version that was found, with its location if that is known.
    pub fn get(&self, number: usize) -> (RecordId, Option<Location>, &[u8]) {
        let found = &self.records[number];
        (found.record, found.location, &self.bytes[found.document.clone()])
    }
}

/// The outcome for several records.
#[derive(Debug, Default)]
pub struct ChangedTogether {
    /// Number of records decided and carried out. The next one may need [`Catalog::change`].
    pub count: usize,
    /// The LSN of the changes, if there were any.
    pub lsn: Option<Lsn>,
    /// The failure of the record after those, if any.
    pub failure: Option<Failure>,
}

/// Decides about one of several records.
pub type DecideOne<'d> = dyn FnMut(usize, DocumentRef<'_>) -> Result<Verdict> + 'd;

impl Catalog {
    /// Locks the records from number `first` on, passes the newest version of each to `decide`, and carries out the
    /// verdicts of as many as can be changed together, possibly none. `decide` gets the record's number; it is not
    /// called for records that are gone.
    /// # Errors
    /// Only if nothing was done. A failure of a record after others is in [`ChangedTogether::failure`].
    pub fn change_several(
        &self,
        collection: &Collection,
        (found, first): (&FoundRecords, usize),
        operation: &dyn OperationSource,
        decide: &mut DecideOne<'_>,
    ) -> Result<ChangedTogether> {
        user_writes::check_collection(collection, operation)?;
        // Transactions and retryable writes record each change separately.
        if Transaction::of(operation).is_some() || RetryableWrite::of(operation).is_some() {
            return Ok(ChangedTogether::default());
        }
        let (lsn, count, failure) = {
            let _structure = share(&collection.structure, operation)?;
            let indexes = collection.indexes_lent();
            if collection.is_dropped() {
                return Ok(ChangedTogether { count: found.len() - first, ..ChangedTogether::default() });
            }
            if indexes.iter().any(|index| index.build().is_some()) {
                return Ok(ChangedTogether::default());
            }
            let stripe = |found: &FoundRecord| record_stripe(collection.records, found.record);
            let mut stripes: Vec<usize> = found.records[first..].iter().map(stripe).collect();
            let _locked = lock_stripes(self.store.locks(), &mut stripes, operation)?;
            let owned = found.records[first..].iter().map(|found| Owned::record(collection, found.record));
            // A writer that waits for a transaction must hold no locks.
            if self.owners.are_any() && self.owners.first_owned(owned).is_some() {
                return Ok(ChangedTogether::default());
            }
            let mut several = Several {
                catalog: self,
                collection,
                indexes: &indexes,
                operation,
                batch: None,
                changed: 0,
                keys: (0, 0),
            };
            let (count, failure) = several.take(found, first, decide)?;
            match several.batch.as_ref().map(|batch| self.store.commit(batch)) {
                None => (None, count, failure),
                Some(Ok(lsn)) => {
                    operation.operation().work_done().note_keys(several.keys.0, several.keys.1);
                    (Some(lsn), count, failure)
                }
                // Each change alone may fit.
                Some(Err(_)) if several.changed > 1 => return Ok(ChangedTogether::default()),
                Some(Err(error)) => return Err(from_storage(error)),
            }
        };
        // Nothing is locked here, because this may take a while.
        self.keep_pace(operation);
        Ok(ChangedTogether { count, lsn, failure })
    }
}

/// The location of a record's newest version.
#[derive(Clone, Copy)]
enum Newest {
    At(Location),
    Gone,
    NotLookedUp,
}

/// Changes collected in one batch. The caller holds the locks of the records.
struct Several<'s> {
    catalog: &'s Catalog,
    collection: &'s Collection,
    indexes: &'s [Arc<Index>],
    operation: &'s dyn OperationSource,
    batch: Option<Batch<'static>>,
    changed: usize,
    /// Keys that the batch puts and deletes.
    keys: (usize, usize),
}

impl Several<'_> {
    /// Adds changes to the batch. Returns how many records were taken, and the failure of the next one, if any.
    fn take(
        &mut self,
        found: &FoundRecords,
        first: usize,
        decide: &mut DecideOne<'_>,
    ) -> Result<(usize, Option<Failure>)> {
        let began = Instant::now();
        let records: Vec<RecordId> = found.records[first..].iter().map(|found| found.record).collect();
        let latest = self.catalog.store.latest();
        let places = latest.places(self.collection.records, &records).map_err(from_storage)?;
        for number in first..found.len() {
            let place = places.as_ref().map_or(Newest::NotLookedUp, |places| match places[number - first] {
                Some(location) => Newest::At(location),
                None => Newest::Gone,
            });
            match self.take_one(found.get(number), place, &mut |document| decide(number, document)) {
                Ok(true) => {}
                Ok(false) => return Ok((number - first, None)),
                // An operation that is too long here is run again from the start, so no change may be kept.
                Err(failure) if self.changed == 0 || failure.is_too_long() => return Err(failure),
                Err(failure) => return Ok((number - first, Some(failure))),
            }
            let bytes = self.batch.as_ref().map_or(0, Batch::len_bytes);
            if bytes >= BYTES_MAX || began.elapsed() >= HELD_MAX {
                return Ok((number + 1 - first, None));
            }
        }
        Ok((found.len() - first, None))
    }

    /// Adds the change of one record to the batch. Returns false if it needs more than the record's lock.
    fn take_one(
        &mut self,
        (record, known, document): (RecordId, Option<Location>, &[u8]),
        place: Newest,
        decide: &mut dyn FnMut(DocumentRef<'_>) -> Result<Verdict>,
    ) -> Result<bool> {
        let (collection, indexes) = (self.collection, self.indexes);
        let mut newer = Vec::new();
        let latest = self.catalog.store.latest();
        let found = match (known, place) {
            (_, Newest::Gone) => return Ok(true),
            (Some(known), Newest::At(place)) if place == known => Ok(Some(place)),
            (Some(known), Newest::NotLookedUp) => latest.record_again(collection.records, record, known, &mut newer),
            _ => latest.record(collection.records, record, &mut newer),
        };
        let Some(location) = found.map_err(from_storage)? else { return Ok(true) };
        let current = if Some(location) == known { document } else { &newer };
        let Some(change) = Change::of(decide(DocumentRef::trusted(current))?) else { return Ok(true) };
        change.check(collection, current, self.operation)?;
        let (old, new) =
            self.catalog.changed_keys(collection, (indexes, self.operation), record, current, change.document())?;
        let is_locked = |(index, _): &IndexKey| locks_keys(&indexes[*index]);
        if new.iter().any(is_locked) || self.catalog.owners.are_any() && old.iter().any(is_locked) {
            return Ok(false);
        }
        let batch = self.batch.get_or_insert_with(|| notes::batch_of(collection));
        let keyspace = |(index, _): &IndexKey| indexes[*index].keyspace;
        for removed in &old {
            batch.delete_key(keyspace(removed), &removed.1);
        }
        change.put(batch, collection, indexes, (record, location, current), None);
        for added in &new {
            batch.put_key(keyspace(added), &added.1, record);
        }
        self.changed += 1;
        self.keys = (self.keys.0 + new.len(), self.keys.1 + old.len());
        Ok(true)
    }
}
