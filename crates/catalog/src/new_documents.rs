//! The statement that inserts documents, together with their index keys.

use crate::capped::Victims;
use crate::commit::{Attempt, Statement};
use crate::duplicate_key::duplicate_key;
use crate::effects::Effects;
use crate::index_keys::own_part;
use crate::key_list::{KeyEntry, KeyList};
use crate::taken::Taken;
use crate::write::{UniqueKey, holder, is_guarded, locks_keys, record_stripe};
use crate::{Index, from_storage, notes};
use bunko_bson::DocumentRef;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{Location, Lsn, RecordId, StripeNumbers, View};
use std::borrow::Cow;
use std::sync::Arc;

/// Unique keys of one document that are looked up between two checks of the operation; each counts as so many steps of
/// work.
const LOOKUPS_PER_QUESTION: usize = 64;
const STEPS_PER_LOOKUP: usize = 16;

/// Copies of keys up to this many bytes are not counted against the memory limits: most inserts then ask for nothing.
const COPIES_BYTES_FREE: usize = 1 << 20;

/// Whether a failed insert stops the later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A failed insert stops the later ones.
    Ordered,
    /// The later inserts go on.
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
        if self.failures.is_empty() {
            self.failures = later.failures;
        } else {
            self.failures.extend(later.failures);
        }
        self.stopped_by = later.stopped_by;
    }
}

/// Where the inserted documents are stored.
#[derive(Clone, Copy)]
pub(crate) enum InsertedInto<'l> {
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

/// Documents that share one log record. An ordered insert ends at its first failure.
pub(crate) struct NewDocuments<'d> {
    documents: &'d [Cow<'d, [u8]>],
    /// The position of the first document in the input.
    offset: usize,
    order: Order,
    place: InsertedInto<'d>,
    /// The record of the first document; the others follow.
    first_record: RecordId,
    keys: KeyList,
    /// Documents that are refused, by position, in ascending order.
    refused: Vec<(usize, Failure)>,
    victims: Victims,
    inserted: Inserted,
}

impl<'d> NewDocuments<'d> {
    pub fn new(documents: &'d [Cow<'d, [u8]>], (offset, order): (usize, Order), place: InsertedInto<'d>) -> Self {
        Self {
            documents,
            offset,
            order,
            place,
            first_record: RecordId::FIRST,
            keys: KeyList::with_capacity(0),
            refused: Vec::new(),
            victims: Victims::default(),
            inserted: Inserted::default(),
        }
    }

    fn record(&self, position: usize) -> RecordId {
        RecordId(self.first_record.0 + position as u64)
    }

    fn records(&self) -> impl Iterator<Item = RecordId> {
        (0..self.documents.len()).map(|position| self.record(position))
    }

    /// Derives the keys of all documents.
    /// # Errors
    /// `ExceededMemoryLimit` if the batch has to be shorter, or if there is no room for the copies of its keys; as
    /// `OperationContext::check`. Other failures are kept in `refused`.
    fn derive_keys(&mut self, attempt: &Attempt<'_>) -> Result<()> {
        let Attempt { collection, indexes, operation, .. } = *attempt;
        self.keys = KeyList::with_capacity(self.documents.len() * indexes.len());
        self.refused.clear();
        let (mut grown, validator) = (Vec::new(), collection.validator());
        for (position, document) in self.documents.iter().enumerate() {
            if let Some(validator) = &validator
                && let Err(failure) = validator.check(collection, document, None, operation)
            {
                // The failure may come from the operation, which has to stop, and not from this document.
                operation.operation().check()?;
                self.refused.push((position, failure));
                continue;
            }
            let record = self.record(position);
            if let Err(failure) = self.keys.add(indexes, position, document, record, &mut grown, operation) {
                // The failure may come from the operation, which has to stop, or from the batch, which has to be
                // shorter.
                operation.operation().check()?;
                if failure.code() == ErrorCode::EXCEEDED_MEMORY_LIMIT && self.documents.len() > 1 {
                    return Err(failure);
                }
                self.keys.entries.retain(|entry| entry.document != position);
                self.refused.push((position, failure));
            }
        }
        let copies = self.keys.copies_bytes();
        if copies > COPIES_BYTES_FREE {
            operation.operation().will_take(copies)?;
        }
        attempt.catalog.grow_multikey(collection, indexes, &grown)
    }

    /// Adds a document and its keys to the batch.
    fn put<'a, 'k>(
        &'k self,
        position: usize,
        own: &[KeyEntry],
        attempt: &Attempt<'a>,
        taken: &mut [Taken<'k>],
        effects: &mut Effects<'d, 'a>,
    ) -> Result<()> {
        let (records, record) = (attempt.collection.records, self.record(position));
        match self.place {
            InsertedInto::Log | InsertedInto::Copies => {
                effects.batch.insert_record(records, record, &*self.documents[position]);
            }
            InsertedInto::Staged { locations, .. } => effects.batch.place_record(records, record, locations[position]),
        }
        for entry in own {
            let (index, key) = (&*attempt.indexes[entry.index], self.keys.of(entry));
            let is_taken = || is_taken(attempt.latest, index, key, taken.get(entry.index));
            if effects.put_new_key(index, key, record, is_taken)?
                && locks_keys(index)
                && let Some(taken) = taken.get_mut(entry.index)
            {
                taken.add(own_part(index, key));
            }
        }
        Ok(())
    }

    /// The failure of a document one of whose unique keys is taken; `None` if all are free.
    fn duplicate(
        &self,
        position: usize,
        own: &[KeyEntry],
        attempt: &Attempt<'_>,
        taken: &[Taken<'_>],
    ) -> Result<Option<Failure>> {
        let guarded = own.iter().filter(|entry| is_guarded(&attempt.indexes[entry.index]));
        for (number, entry) in guarded.enumerate() {
            if number % LOOKUPS_PER_QUESTION == LOOKUPS_PER_QUESTION - 1 {
                attempt.operation.operation().work(STEPS_PER_LOOKUP * LOOKUPS_PER_QUESTION)?;
            }
            let (index, key) = (&attempt.indexes[entry.index], self.keys.of(entry));
            if is_taken(attempt.latest, index, key, taken.get(entry.index))? {
                let own = Some(DocumentRef::trusted(&self.documents[position]));
                return Ok(Some(duplicate_key(attempt.collection, index, own_part(index, key), own)));
            }
        }
        Ok(None)
    }

    /// Adds the documents to the batch, except those that are `refused` or have a key that is taken.
    fn put_all<'a>(
        &self,
        attempt: &Attempt<'a>,
        refused: Vec<(usize, Failure)>,
        effects: &mut Effects<'d, 'a>,
    ) -> Result<Inserted> {
        // A document alone in its batch cannot collide with another, and each of its keys is looked up once at most.
        let is_alone = self.documents.len() <= 1;
        let mut taken = if is_alone { Vec::new() } else { self.keys.taken(attempt.latest, attempt.indexes)? };
        let (mut inserted, mut entries) = (Inserted::default(), self.keys.entries.as_slice());
        let mut refused = refused.into_iter().peekable();
        for position in 0..self.documents.len() {
            let count = entries.iter().take_while(|entry| entry.document == position).count();
            let (own, rest) = entries.split_at(count);
            entries = rest;
            let failure = match refused.next_if(|(refused, _)| *refused == position) {
                Some((_, failure)) => Some(failure),
                None => self.duplicate(position, own, attempt, &taken)?,
            };
            if let Some(failure) = failure {
                inserted.failures.push((self.offset + position, failure));
                if self.order == Order::Ordered {
                    break;
                }
                continue;
            }
            self.put(position, own, attempt, &mut taken, effects)?;
            inserted.count += 1;
            inserted.keys += own.len();
        }
        Ok(inserted)
    }
}

impl<'d> Statement<'d> for NewDocuments<'d> {
    type Outcome = Inserted;

    fn prepare(&mut self, attempt: &Attempt<'_>, stripes: &mut StripeNumbers) -> Result<()> {
        let (collection, indexes) = (attempt.collection, attempt.indexes);
        self.first_record = match self.place {
            InsertedInto::Log | InsertedInto::Copies => collection.take_record_ids(self.documents.len() as u64),
            InsertedInto::Staged { first_record, .. } => first_record,
        };
        self.derive_keys(attempt)?;
        stripes.extend(self.unique_keys(indexes).map(|key| key.stripe()));
        // Another writer may find a record by its `_id` before the last of the record's keys is applied, and must wait
        // until it is.
        stripes.extend(self.records().map(|record| record_stripe(collection.records, record)));
        self.victims = match collection.cap() {
            Some(cap) => Victims::find(collection, cap, self.documents[0].len(), attempt.operation)?,
            None => Victims::default(),
        };
        self.victims.add_stripes(collection, indexes, stripes)
    }

    fn claimed_records(&self) -> impl Iterator<Item = (RecordId, Option<Location>)> {
        self.records().map(|record| (record, None))
    }

    fn unique_keys<'k>(&'k self, indexes: &'k [Arc<Index>]) -> impl Iterator<Item = UniqueKey<'k>> {
        self.keys.unique(indexes)
    }

    fn effects<'a>(&mut self, attempt: &Attempt<'a>) -> Result<Option<Effects<'d, 'a>>> {
        let is_copy = matches!(self.place, InsertedInto::Copies);
        let batch_of = if is_copy { notes::batch_of_copies } else { notes::batch_of };
        let mut effects = attempt.effects(batch_of(attempt.collection));
        let refused = std::mem::take(&mut self.refused);
        self.inserted = self.put_all(attempt, refused, &mut effects)?;
        if self.inserted.count == 0 {
            return Ok(None);
        }
        self.victims.put_deletes(attempt, &mut effects)?;
        Ok(Some(effects))
    }

    fn inserted_positions(&self) -> impl Iterator<Item = usize> {
        let mut failed = self.inserted.failures.iter().map(|(position, _)| *position).peekable();
        let positions = self.offset..self.offset + self.documents.len();
        positions.filter(move |position| failed.next_if_eq(position).is_none()).take(self.inserted.count)
    }

    fn settle(&mut self, _operation: &dyn OperationSource, committed: Option<Result<Lsn>>) -> Result<Inserted> {
        let lsn = committed.transpose()?;
        Ok(Inserted { lsn, ..std::mem::take(&mut self.inserted) })
    }
}

/// Whether a unique key belongs to a record, or will after the batch of `taken`.
fn is_taken(latest: &dyn View, index: &Index, key: &[u8], taken: Option<&Taken<'_>>) -> Result<bool> {
    let is_taken = match taken {
        Some(taken) => taken.contains(latest, index, key),
        None => holder(latest, index, key).map(|holder| holder.is_some()),
    };
    is_taken.map_err(from_storage)
}
