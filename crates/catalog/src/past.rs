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
    /// The current state; the client is told its time.
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
    snapshot: Arc<Snapshot>,
    asked: StateAsked,
}

/// The state that an operation reads.
pub enum Reading<'o> {
    /// The current state.
    Present,
    /// A past state.
    Past(&'o SnapshotRead),
    /// The state of its transaction.
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

    /// Whether it is the current state.
    pub fn is_present(&self) -> bool {
        matches!(self, Self::Present)
    }
}

impl SnapshotRead {
    /// The state, for reading `collection`.
    /// # Errors
    /// `SnapshotUnavailable` if the collection was changed after the snapshot, or is capped.
    pub(crate) fn read(&self, collection: &Collection) -> Result<Snapshot> {
        if collection.cap().is_some() && self.asked != StateAsked::Committed {
            let message = format!(
                "Reading from non-replicated or capped collection {} with readConcern snapshot is not supported",
                collection.namespace()
            );
            return Err(Failure::new(ErrorCode::SNAPSHOT_UNAVAILABLE, message));
        }
        if collection.is_dropped() || !collection.occupancy.is_as_of(self.snapshot.lsn()) {
            return Err(changed_since(&collection.namespace()));
        }
        Ok(self.snapshot.share())
    }
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

    /// Drops the oldest states, because engines retain too much for them. Returns how many.
    pub fn forget_oldest(&self) -> usize {
        let mut kept = self.kept.lock();
        let count = kept.len().div_ceil(FORGOTTEN_PART);
        let old: Vec<_> = kept.drain(..count).collect();
        drop(kept);
        old.len()
    }

    /// Drops states older than the window; `now_s` is in seconds since 1970.
    pub fn forget_old(&self, now_s: u64) {
        let window_s = u64::from(self.window_s());
        let is_old = |state: &KeptState| u64::from(state.at.seconds) + window_s < now_s;
        let mut kept = self.kept.lock();
        let count = kept.iter().take_while(|state| is_old(state)).count();
        let old: Vec<_> = kept.drain(..count).collect();
        drop(kept);
        drop(old);
    }

    /// The current state, which is kept from now on.
    fn present(&self, store: &Store) -> KeptState {
        let mut kept = self.kept.lock();
        let (snapshot, at) = store.timed_snapshot();
        if let Some(last) = kept.back().filter(|last| last.snapshot.lsn() == snapshot.lsn()) {
            return last.clone();
        }
        let state = KeptState { at, snapshot: Arc::new(snapshot) };
        kept.push_back(state.clone());
        let oldest = (kept.len() > KEPT_STATES_MAX).then(|| kept.pop_front());
        drop(kept);
        drop(oldest);
        state
    }

    /// The state at a time that is not in the future.
    /// # Errors
    /// `SnapshotTooOld` if the states of that time may have been dropped, `SnapshotUnavailable` if none was kept.
    fn at(&self, store: &Store, time: Timestamp) -> Result<KeptState> {
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
        let present = self.present(store);
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
        let oldest = store.oldest_snapshot();
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

    /// A read of the asked state, with the time that the client is told, if it is told any.
    /// # Errors
    /// `SnapshotTooOld`, `SnapshotUnavailable`, `ReadConcernMajorityNotAvailableYet`.
    pub fn read_past(&self, asked: StateAsked) -> Result<(Option<Timestamp>, Arc<SnapshotRead>)> {
        let KeptState { at, snapshot } = match asked {
            StateAsked::Present => self.past_states.present(&self.store),
            StateAsked::Committed => return Ok((None, self.read_committed()?)),
            StateAsked::At(time) => self.past_states.at(&self.store, time)?,
        };
        let at = if let StateAsked::At(time) = asked { time } else { at };
        Ok((Some(at), Arc::new(SnapshotRead { snapshot, asked })))
    }

    fn read_committed(&self) -> Result<Arc<SnapshotRead>> {
        let snapshot = self.store.committed_snapshot().ok_or_else(|| {
            let message = "Read concern majority reads are currently not possible.";
            Failure::new(ErrorCode::READ_CONCERN_MAJORITY_NOT_AVAILABLE_YET, message)
        })?;
        Ok(Arc::new(SnapshotRead { snapshot: Arc::new(snapshot), asked: StateAsked::Committed }))
    }

    /// Sets the snapshot of a transaction to the state at a time, unless it has one.
    /// # Errors
    /// `SnapshotTooOld`, `SnapshotUnavailable`; `NoSuchTransaction`.
    pub fn set_time_of(&self, transaction: &Transaction, time: Timestamp) -> Result<()> {
        transaction.set_snapshot(self.past_states.at(&self.store, time)?.snapshot)
    }

    /// Checks that a collection which is missing now was also missing in the state that the operation reads.
    /// # Errors
    /// `SnapshotUnavailable` if a collection lost the name after that state.
    pub fn check_never_removed(&self, namespace: &Namespace, operation: &dyn OperationSource) -> Result<()> {
        let before = match Reading::of(operation) {
            Reading::Present => None,
            Reading::Past(read) => Some(read.snapshot.lsn()),
            Reading::Inside(transaction) => transaction.snapshot_lsn(),
        };
        match before {
            Some(before) if self.past_states.was_removed_since(namespace, before) => Err(changed_since(namespace)),
            _ => Ok(()),
        }
    }
}
