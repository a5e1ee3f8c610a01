//! Past states: how long they are kept, and operations that read one.
//!
//! A state can be read only while a view of it is open, because versions that no view sees are dropped. So clients can
//! return only to states that were given to some snapshot read: the view of each stays open for a configured window,
//! and a client that names its time reads it again. A time after a kept state is served by that state if nothing was
//! written in between. A server without snapshot reads keeps no states and pays nothing.

use crate::transaction::changed_since;
use crate::{Catalog, Collection, Namespace, Transaction, from_storage};
use bunko_bson::Timestamp;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{Lsn, Snapshot, Store};
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Default time that a state is kept, in seconds.
/// Source: MongoDB manual, parameter `minSnapshotHistoryWindowInSeconds`.
pub const SNAPSHOT_WINDOW_S: u32 = 300;
/// Maximum number of states that are kept; the oldest is dropped for a new one.
pub const KEPT_STATES_MAX: usize = 1000;

/// Part (1/n) of the kept states that is dropped at once if engines retain too much for them, before the next check.
const FORGOTTEN_PART: usize = 4;

/// The state that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateAsked {
    /// The committed state, which is kept; the client is told its time.
    Present,
    /// The committed state.
    Committed,
    /// The state at this time.
    At(Timestamp),
}

/// A state and its time, which is that of its newest record.
#[derive(Clone)]
struct KeptState {
    at: Timestamp,
    snapshot: Arc<Snapshot>,
    /// When it was given as the present state for the last time, in seconds since 1970. That may be long after `at`: on a
    /// delayed member, and where nothing is written.
    given_s: u64,
}

/// The kept states, by time.
pub struct PastStates {
    kept: Mutex<VecDeque<KeptState>>,
    window_s: AtomicU32,
    /// Names that collections lost, with the LSN of the last loss.
    removed: Mutex<HashMap<Namespace, Lsn, RandomState>>,
}

impl Default for PastStates {
    fn default() -> Self {
        Self { kept: Mutex::default(), window_s: AtomicU32::new(SNAPSHOT_WINDOW_S), removed: Mutex::default() }
    }
}

/// The unit of work of an operation that reads one past state.
pub struct SnapshotRead {
    /// Replaced by a later state only if the client asked for the committed state.
    snapshot: Mutex<Arc<Snapshot>>,
    asked: StateAsked,
}

/// The state that an operation reads.
pub enum Reading<'o> {
    /// The current state.
    Present,
    /// A past state.
    Past(&'o SnapshotRead),
    /// The state that the operation's transaction reads.
    Inside(&'o Transaction),
}

impl<'o> Reading<'o> {
    /// The state that `operation` reads.
    pub fn of(operation: &'o dyn OperationSource) -> Self {
        let Some(unit) = operation.unit() else { return Self::Present };
        match (unit.downcast_ref(), unit.downcast_ref()) {
            (Some(transaction), _) => Self::Inside(transaction),
            (None, Some(read)) => Self::Past(read),
            (None, None) => Self::Present,
        }
    }

    /// Whether the operation reads the current state.
    pub fn is_present(&self) -> bool {
        matches!(self, Self::Present)
    }
}

impl SnapshotRead {
    fn new(snapshot: Arc<Snapshot>, asked: StateAsked) -> Arc<Self> {
        Arc::new(Self { snapshot: Mutex::new(snapshot), asked })
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.lock())
    }

    /// The state, for reading `collection`. A read of the committed state waits until the collection's last change is
    /// committed, and then reads the state with that change.
    /// # Errors
    /// `SnapshotUnavailable` if the collection was changed after another state, or is capped; as
    /// `OperationContext::check` while it waits.
    pub(crate) fn read(&self, collection: &Collection, operation: &dyn OperationSource) -> Result<Snapshot> {
        if collection.cap().is_some() && self.asked != StateAsked::Committed {
            let message = format!(
                "Reading from non-replicated or capped collection {} with readConcern snapshot is not supported",
                collection.namespace()
            );
            return Err(Failure::new(ErrorCode::SNAPSHOT_UNAVAILABLE, message));
        }
        loop {
            let (snapshot, changed_at) = (self.snapshot(), collection.occupancy.changed_at());
            if collection.is_dropped() || changed_at >= snapshot.lsn() && self.asked != StateAsked::Committed {
                return Err(changed_since(&collection.namespace()));
            }
            if changed_at < snapshot.lsn() {
                return Ok(snapshot.share());
            }
            self.renew(collection.store(), Lsn(changed_at.0 + 1), operation)?;
        }
    }

    /// Waits until all records below `end` are committed; later reads see the committed state of that moment.
    fn renew(&self, store: &Store, end: Lsn, operation: &dyn OperationSource) -> Result<()> {
        await_committed(store, end, operation)?;
        *self.snapshot.lock() = Arc::new(committed_snapshot(store)?);
        Ok(())
    }
}

/// Waits until all records below `end` are committed.
/// # Errors
/// As `OperationContext::check`.
fn await_committed(store: &Store, end: Lsn, operation: &dyn OperationSource) -> Result<()> {
    while store.committed() < end {
        store.await_committed(end, operation.operation().may_wait_until()?);
    }
    Ok(())
}

/// Takes a snapshot of the committed state.
/// # Errors
/// `ReadConcernMajorityNotAvailableYet`.
fn committed_snapshot(store: &Store) -> Result<Snapshot> {
    store.committed_snapshot().ok_or_else(|| {
        let message = "Read concern majority reads are currently not possible.";
        Failure::new(ErrorCode::READ_CONCERN_MAJORITY_NOT_AVAILABLE_YET, message)
    })
}

impl PastStates {
    /// How long states are kept, in seconds.
    pub fn window_s(&self) -> u32 {
        self.window_s.load(Ordering::Relaxed)
    }

    /// Sets how long states are kept, in seconds.
    pub fn set_window_s(&self, seconds: u32) {
        self.window_s.store(seconds, Ordering::Relaxed);
    }

    /// Number of kept states.
    pub fn kept(&self) -> usize {
        self.kept.lock().len()
    }

    /// Drops a quarter of the kept states, the oldest, because engines retain too much for them. Returns how many.
    pub fn forget_oldest(&self) -> usize {
        let mut kept = self.kept.lock();
        let count = kept.len().div_ceil(FORGOTTEN_PART);
        let old: Vec<_> = kept.drain(..count).collect();
        drop(kept);
        old.len()
    }

    /// Drops states that were present before the window began; `now_s` is in seconds since 1970.
    pub fn forget_old(&self, now_s: u64) {
        let window_s = u64::from(self.window_s());
        let is_old = |state: &KeptState| state.given_s + window_s < now_s;
        let mut kept = self.kept.lock();
        let count = kept.iter().take_while(|state| is_old(state)).count();
        let old: Vec<_> = kept.drain(..count).collect();
        drop(kept);
        drop(old);
    }

    /// The committed state of this moment, which is kept from now on.
    fn present(&self, store: &Store) -> Result<KeptState> {
        let mut kept = self.kept.lock();
        let (snapshot, at) = if store.is_commit_held() {
            let snapshot = committed_snapshot(store)?;
            let at = store.newest_time_before(snapshot.lsn()).map_err(from_storage)?;
            (snapshot, at)
        } else {
            store.timed_snapshot()
        };
        let given_s = store.clock().now_ms() / 1000;
        if let Some(last) = kept.back_mut().filter(|last| last.snapshot.lsn() == snapshot.lsn()) {
            last.given_s = given_s;
            return Ok(last.clone());
        }
        let state = KeptState { at, snapshot: Arc::new(snapshot), given_s };
        kept.push_back(state.clone());
        let oldest = (kept.len() > KEPT_STATES_MAX).then(|| kept.pop_front());
        drop(kept);
        drop(oldest);
        Ok(state)
    }

    /// The state at a time that is not in the future. Waits until that state is committed.
    /// # Errors
    /// `SnapshotTooOld` if the states of that time may have been dropped, `SnapshotUnavailable` if none was kept; as
    /// `OperationContext::check` while it waits.
    fn at(&self, store: &Store, time: Timestamp, operation: &dyn OperationSource) -> Result<KeptState> {
        let (before, is_oldest) = {
            let kept = self.kept.lock();
            let behind = kept.partition_point(|state| state.at <= time);
            (behind.checked_sub(1).map(|place| kept[place].clone()), behind == 0)
        };
        if let Some(state) = before {
            if state.at == time {
                return Ok(state);
            }
            let next = store.moment_at(state.snapshot.lsn()).map_err(from_storage)?;
            if next.is_some_and(|next| next.timestamp(0) > time) {
                return Ok(state);
            }
        }
        let end = store.visible_end();
        let mut present = self.present(store)?;
        if present.at <= time && present.snapshot.lsn() < end {
            // More records with times up to `time` may follow, so wait until the present end is committed.
            await_committed(store, end, operation)?;
            present = self.present(store)?;
        }
        if present.at <= time {
            return Ok(present);
        }
        let text = format!("Timestamp({}, {})", time.seconds, time.increment);
        let window_s = self.window_s();
        let is_too_old = u64::from(time.seconds) + u64::from(window_s) < u64::from(present.at.seconds);
        Err(if is_too_old || is_oldest && self.kept() >= KEPT_STATES_MAX {
            let message = format!(
                "Read timestamp {text} is older than the oldest available timestamp: \
                 minSnapshotHistoryWindowInSeconds is {window_s}, and {KEPT_STATES_MAX} states are kept at most."
            );
            Failure::new(ErrorCode::SNAPSHOT_TOO_OLD, message)
        } else {
            let message = format!(
                "No state is kept of the time {text}: kept are those at which a read with readConcern snapshot began."
            );
            Failure::new(ErrorCode::SNAPSHOT_UNAVAILABLE, message)
        })
    }

    /// Notes that a collection lost its name with the log record `lsn`.
    pub(crate) fn note_removed(&self, store: &Store, namespace: &Namespace, lsn: Lsn) {
        let oldest = store.oldest_view();
        let mut removed = self.removed.lock();
        // Names that were lost before the oldest open view no longer matter.
        removed.retain(|_, lsn| *lsn >= oldest);
        removed.insert(namespace.clone(), lsn);
    }

    fn was_removed_since(&self, namespace: &Namespace, before: Lsn) -> bool {
        self.removed.lock().get(namespace).is_some_and(|lsn| *lsn >= before)
    }
}

impl Catalog {
    /// The kept past states.
    pub fn past_states(&self) -> &PastStates {
        &self.past_states
    }

    /// Keeps the committed state of this moment: a client will ask for the state at a time in the near future.
    /// # Errors
    /// `ReadConcernMajorityNotAvailableYet`; failures of the storage.
    pub fn keep_present_state(&self) -> Result<()> {
        self.past_states.present(&self.store).map(drop)
    }

    /// A read of the asked state, and its time if the reply names it.
    /// # Errors
    /// `SnapshotTooOld`, `SnapshotUnavailable`, `ReadConcernMajorityNotAvailableYet`; as `OperationContext::check`
    /// while it waits for the state to be committed.
    pub fn read_past(
        &self,
        asked: StateAsked,
        operation: &dyn OperationSource,
    ) -> Result<(Option<Timestamp>, Arc<SnapshotRead>)> {
        let KeptState { at, snapshot, .. } = match asked {
            StateAsked::Present => self.past_states.present(&self.store)?,
            StateAsked::Committed => {
                let snapshot = Arc::new(committed_snapshot(&self.store)?);
                return Ok((None, SnapshotRead::new(snapshot, asked)));
            }
            StateAsked::At(time) => self.past_states.at(&self.store, time, operation)?,
        };
        let at = if let StateAsked::At(time) = asked { time } else { at };
        Ok((Some(at), SnapshotRead::new(snapshot, asked)))
    }

    /// Sets the snapshot of a transaction to the state at a time, unless it has one.
    /// # Errors
    /// As [`Self::read_past`]; `NoSuchTransaction`.
    pub fn set_time_of(
        &self,
        transaction: &Transaction,
        time: Timestamp,
        operation: &dyn OperationSource,
    ) -> Result<()> {
        transaction.set_snapshot(self.past_states.at(&self.store, time, operation)?.snapshot)
    }

    /// Checks that a collection which is missing now was also missing in the state that the operation reads. A read of
    /// the committed state waits until the loss of the name is committed.
    /// # Errors
    /// `SnapshotUnavailable` if a collection lost the name after that state; as `OperationContext::check` while it
    /// waits.
    pub fn check_never_removed(&self, namespace: &Namespace, operation: &dyn OperationSource) -> Result<()> {
        let was_removed_since = |before| self.past_states.was_removed_since(namespace, before);
        match Reading::of(operation) {
            Reading::Past(read) if was_removed_since(read.snapshot().lsn()) => {
                if read.asked == StateAsked::Committed {
                    return read.renew(&self.store, self.store.visible_end(), operation);
                }
            }
            Reading::Inside(transaction) if transaction.snapshot_lsn().is_some_and(was_removed_since) => {}
            _ => return Ok(()),
        }
        Err(changed_since(namespace))
    }
}
