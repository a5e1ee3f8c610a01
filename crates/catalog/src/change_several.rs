//! Changes or deletes several documents with one log record, under one hold of their locks.
//!
//! Writing, ordering and applying a log record and taking the locks cost about as much as the change of a small
//! document. Changes that need only the locks of their records share these costs. Other changes are left to
//! [`Catalog::change`], one at a time.

use crate::commit::{Attempt, Derivation, Statement};
use crate::effects::Effects;
use crate::verdict::Change;
use crate::write::{KeyChange, record_stripe};
use crate::{Catalog, Collection, RetryableWrite, Transaction, Verdict, from_storage, notes};
use bunko_bson::DocumentRef;
use bunko_errors::{Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{Location, Lsn, RecordId, StripeNumbers};
use std::ops::Range;
use std::time::Duration;

/// Maximum number of records that are changed together. Each locks one of some thousands of stripes, and other writers
/// of the stripe wait longer if the holder's thread is descheduled. With this many, fewer than one insert in a hundred
/// meets a locked stripe, while the shared costs are almost nothing for each record.
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
    /// Adds a record with the version that the search found.
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
    /// The failure of the record after the changed ones, if any.
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
        // Transactions and retryable writes record each change separately.
        if Transaction::of(operation).is_some() || RetryableWrite::of(operation).is_some() {
            return Ok(ChangedTogether::default());
        }
        let outcome = ChangedTogether::default();
        let mut several = SeveralVerdicts { found, first, decide, changed: 0, keys: (0, 0), outcome };
        let changed = self.write(collection, operation, &mut several)?;
        Ok(changed.unwrap_or_else(|| ChangedTogether { count: found.len() - first, ..ChangedTogether::default() }))
    }
}

/// The location of a record's newest version.
#[derive(Clone, Copy)]
enum Newest {
    At(Location),
    Gone,
    NotLookedUp,
}

/// Verdicts about the records from number `first` on. Their changes need no locks except those of the records.
struct SeveralVerdicts<'v, 'd> {
    found: &'v FoundRecords,
    first: usize,
    decide: &'v mut DecideOne<'d>,
    changed: usize,
    /// Numbers of keys that the batch puts and deletes.
    keys: (usize, usize),
    outcome: ChangedTogether,
}

impl SeveralVerdicts<'_, '_> {
    /// Adds the change of one record. Returns false if it needs more than the record's lock.
    fn derive_one<'a>(
        &mut self,
        attempt: &Attempt<'a>,
        (number, place): (usize, Newest),
        effects: &mut Option<Effects<'_, 'a>>,
    ) -> Result<bool> {
        let (record, known, document) = self.found.get(number);
        let (latest, records, mut newer) = (attempt.latest, attempt.collection.records, Vec::new());
        let found = match (known, place) {
            (_, Newest::Gone) => return Ok(true),
            (Some(known), Newest::At(place)) if place == known => Ok(Some(place)),
            (Some(known), Newest::NotLookedUp) => latest.record_again(records, record, known, &mut newer),
            _ => latest.record(records, record, &mut newer),
        };
        let Some(location) = found.map_err(from_storage)? else { return Ok(true) };
        let current = if Some(location) == known { document } else { &newer };
        let verdict = (self.decide)(number, DocumentRef::trusted(current))?;
        let change = Change::derive(attempt, (record, location, current), verdict)?;
        let Some(change) = change else { return Ok(true) };
        let are_any_owned = attempt.catalog.owners.are_any();
        if change.unique_keys(attempt.indexes).any(|key| key.change == KeyChange::Put || are_any_owned) {
            return Ok(false);
        }
        let (put, deleted) = change.key_counts();
        let effects = effects.get_or_insert_with(|| attempt.effects(notes::batch_of(attempt.collection)));
        change.put(effects, attempt, current, None)?;
        self.changed += 1;
        self.keys = (self.keys.0 + put, self.keys.1 + deleted);
        Ok(true)
    }
}

impl<'d> Statement<'d> for SeveralVerdicts<'_, '_> {
    type Outcome = ChangedTogether;

    fn prepare(&mut self, attempt: &Attempt<'_>, stripes: &mut StripeNumbers) -> Result<()> {
        stripes.extend(self.read_records().map(|record| record_stripe(attempt.collection.records, record)));
        Ok(())
    }

    fn read_records(&self) -> impl Iterator<Item = RecordId> {
        self.found.records[self.first..].iter().map(|found| found.record)
    }

    fn outcome_if_owned(&self) -> Option<ChangedTogether> {
        // Waiting for the transaction would hold up the records before the owned one too, so none is changed.
        Some(ChangedTogether::default())
    }

    fn derive(&mut self, attempt: &Attempt<'_>) -> Result<Derivation<ChangedTogether>> {
        // A build must know which record has each key, and a key may belong to a record that this batch has changed but
        // not committed.
        let are_any_built = attempt.indexes.iter().any(|index| index.build().is_some());
        Ok(if are_any_built { Derivation::Nothing(ChangedTogether::default()) } else { Derivation::Locked })
    }

    /// Derives the changes of records, one after the other, until one needs more than its lock or the batch is large.
    /// `None` if there is nothing to commit.
    fn effects<'a>(&mut self, attempt: &Attempt<'a>) -> Result<Option<Effects<'d, 'a>>> {
        let clock = attempt.catalog.store.clock();
        let (began, mut effects) = (clock.now(), None);
        let records: Vec<RecordId> = self.read_records().collect();
        let places = attempt.latest.places(attempt.collection.records, &records).map_err(from_storage)?;
        for number in self.first..self.found.len() {
            let place = places.as_ref().map_or(Newest::NotLookedUp, |places| match places[number - self.first] {
                Some(location) => Newest::At(location),
                None => Newest::Gone,
            });
            match self.derive_one(attempt, (number, place), &mut effects) {
                Ok(true) => self.outcome.count += 1,
                Ok(false) => break,
                // A command that takes too long on this thread is run again from the start, so none of its changes may
                // be kept.
                Err(failure) if self.changed == 0 || failure.is_too_long() => return Err(failure),
                Err(failure) => {
                    self.outcome.failure = Some(failure);
                    break;
                }
            }
            let bytes = effects.as_ref().map_or(0, |effects| effects.batch.len_bytes());
            if bytes >= BYTES_MAX || clock.since(began) >= HELD_MAX {
                break;
            }
        }
        Ok(effects)
    }

    fn settle(&mut self, operation: &dyn OperationSource, committed: Option<Result<Lsn>>) -> Result<ChangedTogether> {
        match committed.transpose() {
            // Together the changes do not fit. None is kept: the caller makes them one by one.
            Err(_) if self.changed > 1 => return Ok(ChangedTogether::default()),
            committed => self.outcome.lsn = committed?,
        }
        operation.operation().work_done().note_keys(self.keys.0, self.keys.1);
        Ok(std::mem::take(&mut self.outcome))
    }
}
