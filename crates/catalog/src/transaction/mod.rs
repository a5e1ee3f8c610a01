//! Transactions of several statements: a unit of work that stays open.
//!
//! A transaction reads one snapshot, with its own changes over it ([`bunko_store::Overlay`]). A write inside derives its
//! batch as any other write does, against that view and under the same locks; then it claims what the batch changes, so
//! that nobody else changes it before the end ([`owners`]), looks whether anybody has since the snapshot, and puts the batch
//! into the overlay in place of the log. The commit is one batch of all that is left.
//!
//! ```text
//! open ──commit──► committed
//!   └────abort, drop, or a commit that the log refuses──► aborted
//! ```
//!
//! **Invariant:** nothing of a transaction is in the log or an engine before its commit, and then all of it.
//! **Invariant:** what it owns is given back after its last effect is seen, or after none was made.

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

/// Commits that are longer are a chain of batches of about that many bytes. The oplog makes an entry of the operations
/// of each, and an entry is a document.
const PART_BYTES: usize = (SEGMENT_BYTES / 5) as usize;

/// A transaction, as the unit of work of its statements' operations. One statement at a time works for it.
pub struct Transaction {
    catalog: Arc<Catalog>,
    session: SessionName,
    number: i64,
    owner: Owner,
    course: Mutex<Course>,
    /// Whoever was in the way of a statement.
    obstacle: Mutex<Option<Obstacle>>,
}

/// How far it has come.
enum Course {
    Open(Open),
    Committed(Option<Lsn>),
    Aborted,
}

/// What an open one holds.
#[derive(Default)]
struct Open {
    /// Taken by the first statement that reads or writes.
    snapshot: Option<Arc<Snapshot>>,
    overlay: Arc<Overlay>,
    /// The collections that it has been in, by their record stores.
    stays: Vec<(KeyspaceId, Stay)>,
    owned: Vec<Owned>,
    batches: u64,
    operations: Operations,
    /// What [`TransactionMemory`] was told of it.
    told_bytes: u64,
    /// Collections that nobody else knows of before the commit.
    created: Vec<Arc<Collection>>,
}

/// How far a transaction has come, for who only looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// Statements may come.
    Open,
    /// Its changes are in the log.
    Committed,
    /// It has changed nothing.
    Aborted,
}

/// What an open transaction takes; zeros once it has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionStatistics {
    /// Memory that its changes take, about.
    pub bytes: u64,
    /// Batches of changes.
    pub batches: u64,
    /// Records and unique keys that it keeps others from.
    pub owned: u64,
    /// Collections that it has read or written.
    pub collections: u64,
}

impl Transaction {
    /// Begins a transaction of a session under that number. Its snapshot is taken by the first statement.
    pub fn begin(catalog: &Arc<Catalog>, session: SessionName, number: i64) -> Arc<Self> {
        let course = Mutex::new(Course::Open(Open::default()));
        let (catalog, owner, obstacle) = (Arc::clone(catalog), Owner::default(), Mutex::default());
        Arc::new(Self { catalog, session, number, owner, course, obstacle })
    }

    /// Notes which connection its client is at, whose requests are hurried while others wait for the transaction.
    pub fn came_over(&self, haste: &Arc<Haste>) {
        self.owner.came_over(haste);
    }

    /// The one that an operation's reads and writes belong to, if they do.
    pub fn of(operation: &dyn OperationSource) -> Option<&Self> {
        operation.unit()?.downcast_ref()
    }

    /// Its number within the session.
    pub fn number(&self) -> i64 {
        self.number
    }

    /// How far it has come.
    pub fn state(&self) -> TransactionState {
        match &*self.course.lock() {
            Course::Open(_) => TransactionState::Open,
            Course::Committed(_) => TransactionState::Committed,
            Course::Aborted => TransactionState::Aborted,
        }
    }

    /// What it takes.
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

    /// The state that a statement reads in a collection: the snapshot, and what the transaction has done up to now.
    /// # Errors
    /// `LockTimeout` where the collection is being changed, `SnapshotUnavailable` where it has been since the snapshot;
    /// `NoSuchTransaction` where the transaction is over.
    pub(crate) fn read(&self, collection: &Collection) -> Result<Snapshot> {
        let mut course = self.course.lock();
        let open = self.open(&mut course)?;
        let snapshot = Arc::clone(open.enter(collection, &self.catalog.transaction_memory)?);
        Ok(snapshot.with(&open.overlay))
    }

    /// Lets it read that state, unless it has read already.
    pub(crate) fn set_snapshot(&self, snapshot: Arc<Snapshot>) -> Result<()> {
        let mut course = self.course.lock();
        self.open(&mut course)?.snapshot.get_or_insert(snapshot);
        Ok(())
    }

    /// Its snapshot has everything below; `None` before it has one, and once it has ended.
    pub(crate) fn snapshot_lsn(&self) -> Option<Lsn> {
        match &*self.course.lock() {
            Course::Open(open) => open.snapshot.as_ref().map(|snapshot| snapshot.lsn()),
            Course::Committed(_) | Course::Aborted => None,
        }
    }

    /// The same for a statement that writes.
    /// # Errors
    /// Besides, `OperationNotSupportedInTransaction` for a capped collection and `LockTimeout` while an index is built.
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

    /// Takes in a batch, whose records and unique keys have been claimed.
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

    /// What [`Bug::EventBeforeCommit`] does.
    fn tell_early(&self, batch: &Batch<'_>) -> Result<()> {
        let (mut operations, mut early) = (Operations::default(), vec![Batch::new()]);
        operations.add(batch);
        operations.put_into(self.session, self.number, &mut early, PART_BYTES);
        self.catalog.store.commit(&early[0]).map(drop).map_err(from_storage)
    }

    /// Makes all that it did visible at once, in one record or one chain of records of the log, together with a record in `history`, which is the
    /// session's, that it is committed. Returns the record of the log: none where nothing was changed, and the same again
    /// where it is committed already.
    /// # Errors
    /// `NoSuchTransaction` where it is aborted; those of the log, which abort it.
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
        // The last part has the last operation, so that its time is that of the commit.
        open.operations.put_into(self.session, self.number, &mut parts, PART_BYTES);
        let committed = retry::commit_transaction(&self.catalog, history, (self.session, self.number), &mut parts);
        let lsn = committed.map_err(from_storage)?;
        self.show_created(open, lsn);
        Ok(Some(lsn))
    }

    /// Gives up all that it did, unless it has ended.
    pub fn abort(&self) {
        let mut course = self.course.lock();
        if let Course::Open(open) = &*course {
            if planted::active(Bug::DirtyRead) {
                let _ = self.commit_open(open, &mut WriteHistory::default());
            }
            self.end(std::mem::replace(&mut *course, Course::Aborted));
        }
    }

    /// Lets others in.
    fn end(&self, course: Course) {
        if let Course::Open(open) = course {
            self.catalog.transaction_memory.tell(open.told_bytes, 0);
            self.catalog.owners.release(&open.owned);
            self.owner.end();
            // What is private still was never created.
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

    /// Comes into a collection, or is in it already; the snapshot.
    fn enter(&mut self, collection: &Collection, limits: &TransactionMemory) -> Result<&Arc<Snapshot>> {
        if !self.stays.iter().any(|(records, _)| *records == collection.records) {
            let stay = Stay::begin(collection, limits.lock_request_ms_max())?;
            let is_as_of = |snapshot: &Arc<Snapshot>| collection.occupancy.is_as_of(snapshot.lsn());
            if collection.is_dropped() || !self.snapshot.as_ref().is_none_or(is_as_of) {
                return Err(changed_since(&collection.namespace()));
            }
            self.stays.push((collection.records, stay));
        }
        // With the collection held, so that the snapshot has it as it is.
        Ok(self.snapshot.get_or_insert_with(|| Arc::new(collection.store.snapshot())))
    }
}
