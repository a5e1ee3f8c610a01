//! Transactions of several statements: a unit of work that stays open between them.
//!
//! A transaction reads one snapshot with its own changes on top ([`bunko_store::Overlay`]). A write in a transaction
//! derives its batch as any other write does, against that view and under the same locks. It then claims the records
//! and unique keys that the batch changes, so that no other writer changes them before the end ([`owners`]), checks
//! that they have not changed since the snapshot, and puts the batch into the overlay instead of the log. The commit
//! writes the net changes as one batch, or as one chain of batches.
//!
//! ```text
//! open ──commit──► committed
//!   └────abort, drop, or a commit that the log refuses──► aborted
//! ```
//!
//! A write outside transactions asks the owners once it has its locks. If a transaction owns a record or key, the write
//! releases its locks, waits in the queue of that record or key, and tries again; while nothing is owned, this costs
//! one load.
//!
//! With an oplog, the commit's record has the operations as notes: the oplog shows them as one `applyOps`, change
//! streams as one event each. The last records of a chain have its operations, as many each as an entry of the oplog
//! holds. A point read of the latest state that overlaps with a commit reads a snapshot instead (`whole.rs` of
//! `store`). Collections that the transaction creates are private to it ([`creation`]): the commit locks the catalog's
//! changes, checks that their names are still free, and puts them into the same batch.
//!
//! **Invariant:** before its commit, nothing of a transaction is in the log or an engine; afterwards all of it is.
//! **Invariant:** its claims are released only after its last effect is visible, or after it has ended without any.

mod claims;
mod creation;
mod memory;
mod occupancy;
mod operations;
mod owner;
mod owners;
mod turn;

pub use memory::{TRANSACTION_BYTES_MAX, TransactionMemory};
pub(crate) use occupancy::{Occupancy, announce, changed_since, exclude_all};
pub use owner::Haste;
pub(crate) use owners::{Owned, Owners};
pub use turn::{Return, Turn};

use crate::retry::{self, SessionName, WriteHistory};
use crate::{Catalog, Collection, from_storage};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::planted::{self, Bug};
use bunko_store::{Batch, KeyspaceId, Lsn, NOT_LOGGED, Overlay, SEGMENT_BYTES, Snapshot};
use occupancy::Stay;
use operations::Operations;
use owner::Owner;
use parking_lot::Mutex;
use std::sync::Arc;
use turn::Obstacle;

/// A longer commit becomes a chain of batches of about this many bytes. The operations of each batch become one oplog
/// entry, which must fit a document.
const PART_BYTES: usize = (SEGMENT_BYTES / 5) as usize;

/// A transaction, as the unit of work of its statements' operations. One statement at a time runs in it.
pub struct Transaction {
    catalog: Arc<Catalog>,
    session: SessionName,
    number: i64,
    owner: Owner,
    course: Mutex<Course>,
    /// The claim or newer change that the last `WriteConflict` met.
    obstacle: Mutex<Option<Obstacle>>,
}

/// The transaction's state.
enum Course {
    Open(Open),
    Committed(Option<Lsn>),
    Aborted,
}

/// The data of an open transaction.
#[derive(Default)]
struct Open {
    /// Taken by the first statement that reads or writes.
    snapshot: Option<Arc<Snapshot>>,
    overlay: Arc<Overlay>,
    /// The transaction's stays in collections that it has used, by their record stores.
    stays: Vec<(KeyspaceId, Stay)>,
    owned: Vec<Owned>,
    batches: u64,
    operations: Operations,
    /// Bytes last reported to [`TransactionMemory`].
    told_bytes: u64,
    /// Collections that the transaction has created; private until the commit.
    created: Vec<Arc<Collection>>,
}

/// A transaction's state without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// More statements may follow.
    Open,
    /// The transaction's changes are in the log.
    Committed,
    /// The transaction has ended, and has changed nothing.
    Aborted,
}

/// Resources of an open transaction; zeros once it has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionStatistics {
    /// Approximate memory of the transaction's changes, in bytes.
    pub bytes: u64,
    /// Number of batches of changes.
    pub batches: u64,
    /// Number of records and unique keys that the transaction has claimed.
    pub owned: u64,
    /// Number of collections that the transaction has read or written.
    pub collections: u64,
}

impl Transaction {
    /// Begins a transaction of a session under `number`. The first statement takes the snapshot.
    pub fn begin(catalog: &Arc<Catalog>, session: SessionName, number: i64) -> Arc<Self> {
        let course = Mutex::new(Course::Open(Open::default()));
        let (catalog, owner, obstacle) = (Arc::clone(catalog), Owner::default(), Mutex::default());
        Arc::new(Self { catalog, session, number, owner, course, obstacle })
    }

    /// Notes the connection of the transaction's client. Requests of this connection are hurried while other operations
    /// wait for the transaction.
    pub fn came_over(&self, haste: &Arc<Haste>) {
        self.owner.came_over(haste);
    }

    /// The transaction that an operation belongs to, if any.
    pub fn of(operation: &dyn OperationSource) -> Option<&Self> {
        operation.unit()?.downcast_ref()
    }

    /// The transaction's number within the session.
    pub fn number(&self) -> i64 {
        self.number
    }

    /// The transaction's state.
    pub fn state(&self) -> TransactionState {
        match &*self.course.lock() {
            Course::Open(_) => TransactionState::Open,
            Course::Committed(_) => TransactionState::Committed,
            Course::Aborted => TransactionState::Aborted,
        }
    }

    /// The transaction's resources.
    pub fn statistics(&self) -> TransactionStatistics {
        match &*self.course.lock() {
            Course::Open(open) => TransactionStatistics {
                bytes: open.bytes(),
                batches: open.batches,
                owned: open.owned.len() as u64,
                collections: open.stays.len() as u64,
            },
            Course::Committed(_) | Course::Aborted => TransactionStatistics::default(),
        }
    }

    /// The state that a statement reads in a collection: the snapshot and the transaction's changes so far.
    /// # Errors
    /// `LockTimeout` while the collection is being changed, `SnapshotUnavailable` if it was changed after the snapshot;
    /// `NoSuchTransaction` if the transaction is over.
    pub(crate) fn read(&self, collection: &Collection) -> Result<Snapshot> {
        let mut course = self.course.lock();
        let open = self.open(&mut course)?;
        let snapshot = Arc::clone(open.enter(collection, &self.catalog.transaction_memory)?);
        Ok(snapshot.with(&open.overlay))
    }

    /// Sets the snapshot, unless the transaction has one.
    pub(crate) fn set_snapshot(&self, snapshot: Arc<Snapshot>) -> Result<()> {
        let mut course = self.course.lock();
        self.open(&mut course)?.snapshot.get_or_insert(snapshot);
        Ok(())
    }

    /// The LSN of the snapshot, which has everything below it. `None` before the first read and after the end.
    pub(crate) fn snapshot_lsn(&self) -> Option<Lsn> {
        match &*self.course.lock() {
            Course::Open(open) => open.snapshot.as_ref().map(|snapshot| snapshot.lsn()),
            Course::Committed(_) | Course::Aborted => None,
        }
    }

    /// As [`Self::read`], for a statement that writes.
    /// # Errors
    /// As [`Self::read`]; `OperationNotSupportedInTransaction` for a capped collection; `LockTimeout` while an index is
    /// built.
    pub(crate) fn read_for_write(&self, collection: &Collection) -> Result<Snapshot> {
        if collection.cap().is_some() {
            let message = format!(
                "Collection '{}' is a capped collection. Writes in transactions are not allowed on capped collections.",
                collection.namespace()
            );
            return Err(Failure::new(ErrorCode::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, message));
        }
        let view = self.read(collection)?;
        if collection.indexes_lent().iter().any(|index| index.build().is_some()) {
            let message = format!("an index of collection '{}' is being built", collection.namespace());
            return Err(Failure::new(ErrorCode::LOCK_TIMEOUT, message));
        }
        Ok(view)
    }

    /// Adds a batch whose records and unique keys have been claimed to the overlay.
    /// # Errors
    /// `TransactionTooLarge`, `ExceededMemoryLimit`; `NoSuchTransaction`.
    pub(crate) fn absorb(&self, batch: &Batch<'_>) -> Result<Lsn> {
        let mut course = self.course.lock();
        let open = self.open(&mut course)?;
        let memory = &self.catalog.transaction_memory;
        memory.check(open.told_bytes, open.bytes() + batch.len_bytes() as u64)?;
        open.overlay.absorb(batch);
        if planted::active(Bug::EventBeforeCommit) {
            self.tell_early(batch)?;
        }
        open.operations.add(batch);
        open.batches += 1;
        let bytes = open.bytes();
        let held = std::mem::replace(&mut open.told_bytes, bytes);
        memory.tell(held, bytes);
        memory.check(bytes, bytes).map(|()| NOT_LOGGED)
    }

    /// Commits the batch's events before the transaction commits: the planted fault [`Bug::EventBeforeCommit`].
    fn tell_early(&self, batch: &Batch<'_>) -> Result<()> {
        let (mut operations, mut early) = (Operations::default(), vec![Batch::new()]);
        operations.add(batch);
        operations.put_into(self.session, self.number, &mut early, PART_BYTES);
        self.catalog.store.commit(&early[0]).map(drop).map_err(from_storage)
    }

    /// Makes all changes visible at once, in one log record or one chain of them. With them it records the commit in
    /// `history`, which is the session's. Returns the log record: `None` if nothing was changed, and the first commit's
    /// again for a repeated commit.
    /// # Errors
    /// `NoSuchTransaction` if the transaction is aborted. A failure of the commit itself aborts it: `WriteConflict` and
    /// `LockTimeout` for created collections, and failures of the log.
    pub fn commit(&self, history: &mut WriteHistory) -> Result<Option<Lsn>> {
        let mut course = self.course.lock();
        let open = match &mut *course {
            Course::Open(open) => open,
            Course::Committed(lsn) => return Ok(*lsn),
            Course::Aborted => return Err(self.no_such()),
        };
        let committed = self.commit_open(open, history);
        let ended = match &committed {
            Ok(lsn) => Course::Committed(*lsn),
            Err(_) => Course::Aborted,
        };
        self.end(std::mem::replace(&mut *course, ended));
        drop(course);
        committed
    }

    fn commit_open(&self, open: &Open, history: &mut WriteHistory) -> Result<Option<Lsn>> {
        let net = open.overlay.net();
        if net.is_empty() && open.created.is_empty() {
            return Ok(None);
        }
        let _changes = self.reserve(open)?;
        let mut parts = vec![Batch::new()];
        self.put_created(open, &mut parts[0])?;
        net.put_into(&mut parts, if planted::active(Bug::TornCommit) { 1 } else { PART_BYTES });
        // The last part has the last operation, so that the operation's time is that of the commit.
        open.operations.put_into(self.session, self.number, &mut parts, PART_BYTES);
        let committed = retry::commit_transaction(&self.catalog, history, (self.session, self.number), &mut parts);
        let lsn = committed.map_err(from_storage)?;
        self.show_created(open, lsn);
        Ok(Some(lsn))
    }

    /// Discards all changes; does nothing if the transaction has ended.
    pub fn abort(&self) {
        let mut course = self.course.lock();
        if let Course::Open(open) = &*course {
            if planted::active(Bug::DirtyRead) {
                let _ = self.commit_open(open, &mut WriteHistory::default());
            }
            self.end(std::mem::replace(&mut *course, Course::Aborted));
        }
    }

    /// Releases the claims, the memory and the stays.
    fn end(&self, course: Course) {
        if let Course::Open(open) = course {
            self.catalog.transaction_memory.tell(open.told_bytes, 0);
            self.catalog.owners.release(&open.owned);
            self.owner.end();
            // Collections that are still private were never created.
            open.created.iter().filter(|created| created.is_private()).for_each(|created| created.set_dropped());
        }
    }

    fn open<'c>(&self, course: &'c mut Course) -> Result<&'c mut Open> {
        match course {
            Course::Open(open) => Ok(open),
            Course::Committed(_) | Course::Aborted => Err(self.no_such()),
        }
    }

    fn no_such(&self) -> Failure {
        let message = format!("Transaction with {{ txnNumber: {} }} has been aborted.", self.number);
        Failure::new(ErrorCode::NO_SUCH_TRANSACTION, message)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.abort();
    }
}

impl Open {
    fn bytes(&self) -> u64 {
        self.overlay.bytes() + self.operations.bytes()
    }

    /// Enters a collection unless the transaction is in it already, and returns the snapshot.
    fn enter(&mut self, collection: &Collection, limits: &TransactionMemory) -> Result<&Arc<Snapshot>> {
        if !self.stays.iter().any(|(records, _)| *records == collection.records) {
            let stay = Stay::begin(collection, limits.lock_request_ms_max())?;
            let is_as_of = |snapshot: &Arc<Snapshot>| collection.occupancy.is_as_of(snapshot.lsn());
            if collection.is_dropped() || !self.snapshot.as_ref().is_none_or(is_as_of) {
                return Err(changed_since(&collection.namespace()));
            }
            self.stays.push((collection.records, stay));
        }
        // Taken once the stay has begun, so that the snapshot shows the collection in its present form.
        Ok(self.snapshot.get_or_insert_with(|| Arc::new(collection.store.snapshot())))
    }
}
