//! Changes and deletes one document together with its index keys.

use crate::commit::{Attempt, Derivation, Statement};
use crate::effects::Effects;
use crate::verdict::Change;
use crate::write::{UniqueKey, record_stripe};
use crate::{Catalog, Collection, Index, Verdict, from_storage, notes};
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{Location, Lsn, RecordId, StripeNumbers};
use std::sync::Arc;

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

impl Catalog {
    /// Locks a record, passes its newest version to `decide` and carries out the verdict.
    ///
    /// If the caller knows the record's `_id`, [`Target::Id`] is fastest: it takes one lookup. `decide` is called again
    /// if locks of unique keys have to be added. Returns the LSN of the change, or `None` if nothing changed or the
    /// record is gone.
    /// # Errors
    /// As `decide`; `DuplicateKey`; as `OperationContext::check` while this waits for locks.
    pub fn change(
        &self,
        collection: &Collection,
        target: Target<'_>,
        operation: &dyn OperationSource,
        decide: &mut dyn FnMut(DocumentRef<'_>) -> Result<Verdict>,
    ) -> Result<Option<Lsn>> {
        let (record, id_key, known) = match target {
            Target::Record(record) => (record, None, None),
            Target::Id(record, id) => (record, Some(collection.id_key(id)), None),
            Target::Found(record, location, _) => (record, None, Some(location)),
        };
        let current = if let Target::Found(.., document) = target { document.to_vec() } else { Vec::new() };
        let mut one = OneVerdict { record, id_key, current, known, decide, change: None, keys: (0, 0) };
        Ok(self.write(collection, operation, &mut one)?.flatten())
    }
}

/// The verdict about one record.
struct OneVerdict<'v> {
    record: RecordId,
    /// The key of the record's `_id`, if known.
    id_key: Option<Vec<u8>>,
    /// The latest version known, and its location.
    current: Vec<u8>,
    known: Option<Location>,
    decide: &'v mut dyn FnMut(DocumentRef<'_>) -> Result<Verdict>,
    change: Option<Change>,
    /// Numbers of keys that the batch puts and deletes.
    keys: (usize, usize),
}

impl OneVerdict<'_> {
    /// Reads the newest version, unless `current` has it already, and returns its location. `None` if the record is
    /// gone.
    fn read(&mut self, attempt: &Attempt<'_>) -> Result<Option<Location>> {
        let (latest, records, record) = (attempt.latest, attempt.collection.records, self.record);
        let found = match &self.id_key {
            None => match self.known {
                None => latest.record(records, record, &mut self.current),
                Some(known) => latest.record_again(records, record, known, &mut self.current),
            },
            Some(key) => latest
                .record_by_primary_key(attempt.indexes[0].keyspace, records, key, &mut self.current)
                .map(|found| found.filter(|(holder, _)| *holder == record).map(|(_, location)| location)),
        };
        let location = found.map_err(from_storage)?;
        self.known = location.or(self.known);
        Ok(location)
    }
}

impl<'d> Statement<'d> for OneVerdict<'_> {
    type Outcome = Option<Lsn>;

    fn prepare(&mut self, attempt: &Attempt<'_>, stripes: &mut StripeNumbers) -> Result<()> {
        stripes.push(record_stripe(attempt.collection.records, self.record));
        Ok(())
    }

    fn read_records(&self) -> impl Iterator<Item = RecordId> {
        std::iter::once(self.record)
    }

    fn derive(&mut self, attempt: &Attempt<'_>) -> Result<Derivation<Self::Outcome>> {
        let Some(location) = self.read(attempt)? else { return Ok(Derivation::Nothing(None)) };
        let verdict = (self.decide)(DocumentRef::trusted(&self.current))?;
        self.change = Change::derive(attempt, (self.record, location, &self.current), verdict)?;
        Ok(if self.change.is_some() { Derivation::Keys } else { Derivation::Nothing(None) })
    }

    fn claimed_records(&self) -> impl Iterator<Item = (RecordId, Option<Location>)> {
        self.change.iter().map(|change| (self.record, Some(change.location())))
    }

    fn unique_keys<'k>(&'k self, indexes: &'k [Arc<Index>]) -> impl Iterator<Item = UniqueKey<'k>> {
        self.change.iter().flat_map(|change| change.unique_keys(indexes))
    }

    fn effects<'a>(&mut self, attempt: &Attempt<'a>) -> Result<Option<Effects<'d, 'a>>> {
        let Some(change) = self.change.take() else { return Ok(None) };
        change.check_unique(attempt)?;
        self.keys = change.key_counts();
        let mut effects = attempt.effects(notes::batch_of(attempt.collection));
        change.put(&mut effects, attempt, &self.current, self.id_key.take())?;
        Ok(Some(effects))
    }

    fn settle(&mut self, operation: &dyn OperationSource, committed: Option<Result<Lsn>>) -> Result<Self::Outcome> {
        let lsn = committed.transpose()?;
        operation.operation().work_done().note_keys(self.keys.0, self.keys.1);
        Ok(lsn)
    }
}

/// The failure of a cursor over a dropped collection.
pub fn dropped(collection: &Collection) -> Failure {
    Failure::new(ErrorCode::QUERY_PLAN_KILLED, format!("collection dropped: {}", collection.namespace()))
}
