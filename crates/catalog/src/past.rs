//! Reads of past states: which are kept for how long, and operations that read one.
//!
//! A state can be looked at only while a view of it is open, for versions that no view sees are forgotten. So the states
//! that clients may come back to are those that some snapshot read was given: its view stays open for the window that is
//! set, and who names its time reads it again. A time in between is that of a state that is kept where nothing was written
//! since that. Whoever never asks for a snapshot keeps nothing, and pays nothing.

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

/// How long a state is kept, in seconds, unless something else is said.
/// Source: MongoDB manual, parameter `minSnapshotHistoryWindowInSeconds`.
pub const SNAPSHOT_WINDOW_S: u32 = 300;
/// Most states that are kept; the oldest goes for one more.
pub const KEPT_STATES_MAX: usize = 1000;

/// The part of them that goes where engines keep too much for them, before it is asked again whether that is enough.
const FORGOTTEN_PART: usize = 4;

/// Which state a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateAsked {
    /// The present one, whose time it is told.
    Present,
    /// The one of that time.
    At(Timestamp),
}

/// A state and its time, that of the newest record in it.
#[derive(Clone)]
struct KeptState {
    at: Timestamp,
    snapshot: Arc<Snapshot>,
}

/// The states that are kept, by time.
pub struct PastStates {
    kept: Mutex<VecDeque<KeptState>>,
    window_s: AtomicU32,
    /// Names that collections lost, with the record of the log by which the last one did.
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
}

/// What an operation reads.
pub enum Reading<'o> {
    /// What there is.
    Present,
    /// A past state.
    Past(&'o SnapshotRead),
    /// The state of its transaction.
    Inside(&'o Transaction),
}

impl<'o> Reading<'o> {
    /// What that operation reads.
    pub fn of(operation: &'o dyn OperationSource) -> Self {
        let Some(unit) = operation.unit() else { return Self::Present };
        match (unit.downcast_ref(), unit.downcast_ref()) {
            (Some(transaction), _) => Self::Inside(transaction),
            (None, Some(read)) => Self::Past(read),
            (None, None) => Self::Present,
        }
    }

    /// Whether it reads what there is.
    pub fn is_present(&self) -> bool {
        matches!(self, Self::Present)
    }
}

impl SnapshotRead {
    /// The state as it is read in a collection.
    /// # Errors
    /// `SnapshotUnavailable` where the collection has been changed since, and for a capped one.
    pub(crate) fn read(&self, collection: &Collection) -> Result<Snapshot> {
        if collection.cap().is_some() {
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

    /// Lets states be kept for that long.
    pub fn set_window_s(&self, seconds: u32) {
        self.window_s.store(seconds, Ordering::Relaxed);
    }

    /// How many are kept.
    pub fn kept(&self) -> usize {
        self.kept.lock().len()
    }

    /// Gives up the oldest states, where engines keep too much for them; how many.
    pub fn forget_oldest(&self) -> usize {
        let mut kept = self.kept.lock();
        let count = kept.len().div_ceil(FORGOTTEN_PART);
        let old: Vec<_> = kept.drain(..count).collect();
        drop(kept);
        old.len()
    }

    /// Gives up what is older than the window, at a time in seconds since 1970.
    pub fn forget_old(&self, now_s: u64) {
        let window_s = u64::from(self.window_s());
        let is_old = |state: &KeptState| u64::from(state.at.seconds) + window_s < now_s;
        let mut kept = self.kept.lock();
        let count = kept.iter().take_while(|state| is_old(state)).count();
        let old: Vec<_> = kept.drain(..count).collect();
        drop(kept);
        drop(old);
    }

    /// The present state, which is kept from now on.
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

    /// The state of a time that is not to come.
    /// # Errors
    /// `SnapshotTooOld` where what was kept of that time has been given up, `SnapshotUnavailable` where nothing was.
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

    /// Notes that a collection lost its name by that record of the log.
    pub(crate) fn note_removed(&self, store: &Store, namespace: &Namespace, lsn: Lsn) {
        let oldest = store.oldest_snapshot();
        let mut removed = self.removed.lock();
        // What no view that is open saw is as if it had never been.
        removed.retain(|_, lsn| *lsn >= oldest);
        removed.insert(namespace.clone(), lsn);
    }

    fn was_removed_since(&self, namespace: &Namespace, before: Lsn) -> bool {
        self.removed.lock().get(namespace).is_some_and(|lsn| *lsn >= before)
    }
}

impl Catalog {
    /// What is kept of past states.
    pub fn past_states(&self) -> &PastStates {
        &self.past_states
    }

    /// A read of a state, and its time.
    /// # Errors
    /// `SnapshotTooOld`, `SnapshotUnavailable`.
    pub fn read_past(&self, asked: StateAsked) -> Result<(Timestamp, Arc<SnapshotRead>)> {
        let KeptState { at, snapshot } = match asked {
            StateAsked::Present => self.past_states.present(&self.store),
            StateAsked::At(time) => self.past_states.at(&self.store, time)?,
        };
        let at = if let StateAsked::At(time) = asked { time } else { at };
        Ok((at, Arc::new(SnapshotRead { snapshot })))
    }

    /// Lets a transaction that has read nothing yet read the state of a time.
    /// # Errors
    /// `SnapshotTooOld`, `SnapshotUnavailable`; `NoSuchTransaction`.
    pub fn set_time_of(&self, transaction: &Transaction, time: Timestamp) -> Result<()> {
        transaction.set_snapshot(self.past_states.at(&self.store, time)?.snapshot)
    }

    /// Refuses to say that there is no collection with a name to an operation that reads a state in which there was one.
    /// # Errors
    /// `SnapshotUnavailable`.
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
