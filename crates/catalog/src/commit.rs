//! The one path by which documents are written.
//!
//! A [`Statement`] is derived: the records and keys that it puts and deletes, what it claims, and what must still be
//! true. It reads, but it takes no lock, waits for no transaction and commits nothing. [`Catalog::write`] commits every
//! statement in the same way:
//!
//! ```text
//! prepare ──► lock ──► records free? ──► derive ──► locks complete? ──► claim, keys free? ──► effects ──► commit ──► settle
//!    ▲                      │ no                         │ no                  │ no
//!    └──────────────────────┴────────────────────────────┴─────────────────────┘ unlock, wait, derive again
//! ```
//! Statements are [`NewDocuments`](crate::new_documents::NewDocuments), and verdicts about [one record](crate::change)
//! or [several](crate::change_several). They differ in what they derive. Transactions, retryable writes, blocks of user
//! writes and engines that lag behind are handled here, indexes that are being built in [`Effects`].
//!
//! **Invariant:** a statement reads under the locks that it holds until its effects are applied, and it reads a record
//! or a unique key only once no transaction owns it. So its effects fit the newest versions.
//!
//! Rejected: to derive an update before its record is locked, and to compare versions afterwards. That takes a second
//! lookup for each update, and writers of one record would derive again after each other's commit.

use crate::effects::Effects;
use crate::index_keys::own_part;
use crate::transaction::Owned;
use crate::user_writes;
use crate::waiting::{lock_stripes, share};
use crate::write::{KeyChange, UniqueKey, is_guarded};
use crate::{Catalog, Collection, Index, RetryableWrite, Transaction, from_storage};
use bunko_errors::Result;
use bunko_operation::{OperationSource, RunOn};
use bunko_store::{Batch, Lag, Location, Lsn, RecordId, Snapshot, StripeNumbers, View};
use std::sync::Arc;

/// A write of documents of one collection that becomes one batch. The batch may borrow documents for `'d`.
pub(crate) trait Statement<'d> {
    /// The result of the statement.
    type Outcome;

    /// Derives everything that does not depend on other documents, and adds the stripes of the records and of the
    /// unique keys known so far. Each attempt begins with this; no stripe is locked.
    fn prepare(&mut self, attempt: &Attempt<'_>, stripes: &mut StripeNumbers) -> Result<()>;

    /// Records whose newest versions the statement reads.
    fn read_records(&self) -> impl Iterator<Item = RecordId> {
        std::iter::empty()
    }

    /// The outcome if a transaction owns one of [`Self::read_records`]; `None` if the statement waits for that
    /// transaction.
    fn outcome_if_owned(&self) -> Option<Self::Outcome> {
        None
    }

    /// Derives the change from the newest versions. The stripes that `prepare` added are locked.
    fn derive(&mut self, _attempt: &Attempt<'_>) -> Result<Derivation<Self::Outcome>> {
        Ok(Derivation::Locked)
    }

    /// Records that a transaction claims: with the location from which the change was derived, or `None` for a new
    /// record.
    fn claimed_records(&self) -> impl Iterator<Item = (RecordId, Option<Location>)> {
        std::iter::empty()
    }

    /// Keys that the statement puts and deletes in indexes that lock their keys.
    fn unique_keys<'k>(&'k self, _indexes: &'k [Arc<Index>]) -> impl Iterator<Item = UniqueKey<'k>> {
        std::iter::empty()
    }

    /// Checks conditions that may have changed since the derivation, and makes the batch; `None` if there is nothing to
    /// commit. All records and keys are locked and claimed.
    fn effects<'a>(&mut self, attempt: &Attempt<'a>) -> Result<Option<Effects<'d, 'a>>>;

    /// Positions of the documents that the batch inserts, in the command's list.
    fn inserted_positions(&self) -> impl Iterator<Item = usize> {
        std::iter::empty()
    }

    /// Turns the outcome of the commit, `None` if there was nothing to commit, into the statement's. The locks are
    /// still held.
    fn settle(&mut self, operation: &dyn OperationSource, committed: Option<Result<Lsn>>) -> Result<Self::Outcome>;
}

/// The result of [`Statement::derive`].
pub(crate) enum Derivation<O> {
    /// There is nothing to do.
    Nothing(O),
    /// The locks of all keys are held.
    Locked,
    /// [`Statement::unique_keys`] has keys that may not be locked.
    Keys,
}

/// One attempt to carry out a statement. The collection's structure is shared meanwhile.
pub(crate) struct Attempt<'a> {
    pub catalog: &'a Catalog,
    pub collection: &'a Collection,
    pub indexes: &'a [Arc<Index>],
    pub operation: &'a dyn OperationSource,
    /// The newest state; in a transaction, its snapshot with its own changes.
    pub latest: &'a dyn View,
    transaction: Option<&'a Transaction>,
}

/// The end of an attempt.
enum Step<O> {
    Done(O),
    /// More locks are needed.
    Again,
    /// A transaction owns this record or key, and the statement waits for it.
    Awaits(Owned),
}

/// Lock stripes of a statement.
struct Stripes {
    /// Stripes that the current attempt locks.
    locked: StripeNumbers,
    /// Stripes of keys that earlier attempts derived.
    derived: Vec<usize>,
}

impl Catalog {
    /// Carries out a statement; `None` if the collection is dropped.
    /// # Errors
    /// As the statement; `UserWritesBlocked`; as `OperationContext::check` while this waits for locks. In a
    /// transaction, also `WriteConflict` and the errors of [`Transaction::read_for_write`].
    pub(crate) fn write<'d, S: Statement<'d>>(
        &self,
        collection: &Collection,
        operation: &dyn OperationSource,
        statement: &mut S,
    ) -> Result<Option<S::Outcome>> {
        user_writes::check_collection(collection, operation)?;
        self.keep_pace(operation);
        let transaction = Transaction::of(operation);
        // The transaction enters the collection here and may have to wait, so this comes before any lock.
        let view = transaction.map(|transaction| transaction.read_for_write(collection)).transpose()?;
        let mut stripes = Stripes { locked: StripeNumbers::new(), derived: Vec::new() };
        loop {
            let step = {
                let _structure = share(&collection.structure, operation)?;
                if collection.is_dropped() {
                    return Ok(None);
                }
                let indexes = collection.indexes_lent();
                let latest = view.as_ref().map_or(self.store.latest(), |view: &Snapshot| view as &dyn View);
                let attempt = Attempt { catalog: self, collection, indexes: &indexes, operation, latest, transaction };
                attempt.run(statement, &mut stripes)?
            };
            // This thread holds no lock here, so its wait for the owning transactions blocks no other writer.
            match step {
                Step::Done(outcome) => return Ok(Some(outcome)),
                Step::Again => {}
                Step::Awaits(owned) => self.owners.wait(&owned, operation)?,
            }
        }
    }

    /// Between two batches, waits for engines that lag behind. On a thread that serves other operations it does not
    /// wait unless they are far behind; there the reply is delayed instead, without holding a thread, and such a
    /// command writes little. The caller holds no locks that others wait for.
    fn keep_pace(&self, operation: &dyn OperationSource) {
        match self.store.lag() {
            Lag::None => {}
            // Inside a transaction nothing waits: other operations wait for its claims, and engines get its changes
            // only at the commit.
            _ if Transaction::of(operation).is_some() => {}
            Lag::Behind if operation.operation().run_on() != RunOn::OwnThread => {}
            Lag::Behind | Lag::FarBehind => self.store.catch_up(),
        }
    }

    /// Commits a statement's batch. For a retryable write, the batch also gets the record of its statements. In a
    /// transaction, the batch is added to the transaction and nothing is committed.
    fn commit(
        &self,
        batch: &mut Batch<'_>,
        inserted: impl Iterator<Item = usize>,
        operation: &dyn OperationSource,
    ) -> Result<Lsn> {
        let committed = match operation.unit() {
            None => self.store.commit(batch),
            Some(unit) => match (unit.downcast_ref::<RetryableWrite>(), unit.downcast_ref::<Transaction>()) {
                (Some(write), _) => write.commit(self, batch, inserted),
                (None, Some(transaction)) => return transaction.absorb(batch),
                (None, None) => self.store.commit(batch),
            },
        };
        committed.map_err(from_storage)
    }
}

impl<'a> Attempt<'a> {
    /// The effects of a batch that has no keys yet.
    pub fn effects<'d>(&self, batch: Batch<'d>) -> Effects<'d, 'a> {
        Effects::new(batch, self.latest, self.indexes)
    }

    fn run<'d, S: Statement<'d>>(&self, statement: &mut S, stripes: &mut Stripes) -> Result<Step<S::Outcome>> {
        let Stripes { locked, derived } = stripes;
        locked.clear();
        statement.prepare(self, locked)?;
        if !derived.is_empty() {
            locked.extend_from_slice(derived);
        }
        let _locked = lock_stripes(self.catalog.store.locks(), locked, self.operation)?;
        let records = statement.read_records().map(|record| Owned::record(self.collection, record));
        if let Some(owned) = self.first_owned(records) {
            return Ok(statement.outcome_if_owned().map_or(Step::Awaits(owned), Step::Done));
        }
        match statement.derive(self)? {
            Derivation::Nothing(outcome) => return Ok(Step::Done(outcome)),
            Derivation::Locked => {}
            Derivation::Keys => {
                let lacking = self.lacking(statement.unique_keys(self.indexes), locked);
                if !lacking.is_empty() {
                    derived.extend(lacking);
                    return Ok(Step::Again);
                }
            }
        }
        if let Some(owned) = self.claim(statement)? {
            return Ok(Step::Awaits(owned));
        }
        let committed = match statement.effects(self)? {
            None => None,
            Some(mut effects) => {
                let inserted = statement.inserted_positions();
                let committed = self.catalog.commit(&mut effects.batch, inserted, self.operation);
                if committed.is_ok() {
                    effects.notes.tell();
                }
                Some(committed)
            }
        };
        statement.settle(self.operation, committed).map(Step::Done)
    }

    /// Stripes of those keys that must be locked and are not yet.
    fn lacking<'k>(&self, keys: impl Iterator<Item = UniqueKey<'k>>, locked: &[usize]) -> Vec<usize> {
        // A writer that deletes a key from an index being built must know whose key it is. A transaction keeps other
        // writers from the keys that it deletes.
        let is_locked =
            |key: &UniqueKey<'k>| key.change == KeyChange::Put || self.transaction.is_some() || !is_guarded(key.index);
        let stripes = keys.filter(is_locked).map(|key| key.stripe());
        stripes.filter(|stripe| !locked.contains(stripe)).collect()
    }

    /// In a transaction, claims the statement's records and keys and returns `None`. Otherwise returns the first of its
    /// unique keys that a transaction owns. The locks of all of them are held.
    fn claim<'d>(&self, statement: &impl Statement<'d>) -> Result<Option<Owned>> {
        let Some(transaction) = self.transaction else {
            return Ok(self.first_owned(statement.unique_keys(self.indexes).map(|key| owned(&key))));
        };
        for (record, location) in statement.claimed_records() {
            match location {
                Some(location) => transaction.claim_record(self.collection, record, location)?,
                None => transaction.claim_new_record(self.collection, record)?,
            }
        }
        for UniqueKey { index, key, .. } in statement.unique_keys(self.indexes) {
            transaction.claim_key(index, key)?;
        }
        Ok(None)
    }

    /// The first of these records and keys that a writer outside transactions has to wait for; `None` if no transaction
    /// owns any. The locks of all of them are held.
    fn first_owned(&self, wanted: impl Iterator<Item = Owned>) -> Option<Owned> {
        let owners = &self.catalog.owners;
        if self.transaction.is_none() && owners.are_any() { owners.first_owned(wanted) } else { None }
    }
}

fn owned(UniqueKey { index, key, .. }: &UniqueKey<'_>) -> Owned {
    Owned::key(index, own_part(index, key))
}
