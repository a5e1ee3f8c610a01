//! All open cursors. The head of `cursors` lists how a cursor ends.

use super::closed::{ClosedCursors, Room, not_found};
use super::open_cursor::OpenCursor;
use super::shares::{CURSORS_MAX, CursorShares, Share};
use super::spooled::may_be_spooled;
use super::tally::QueryTally;
use super::told::{CursorOrigin, CursorProgress, CursorTold};
use crate::operations::Context;
use crate::sessions::{SessionId, id};
use bunko_access::Owner;
use bunko_catalog::{NOBODY, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

struct Slot {
    state: CursorState,
    owner: Option<Owner>,
    _share: Share,
}

enum CursorState {
    Waiting(Box<OpenCursor>),
    /// A `getMore` works with the cursor. `is_killed` is set if the cursor was killed meanwhile.
    Working {
        is_killed: bool,
        namespace: Namespace,
        /// The context of the cursor, for interrupting the `getMore`.
        context: Context,
        /// The cursor's facts, shown by `currentOp` meanwhile.
        origin: Arc<CursorOrigin>,
        progress: CursorProgress,
        last_use: Instant,
    },
}

impl CursorState {
    /// The state of a cursor that is being taken out.
    fn working(cursor: &OpenCursor) -> Self {
        Self::Working {
            is_killed: false,
            namespace: cursor.namespace.clone(),
            context: cursor.context.clone(),
            origin: Arc::clone(&cursor.origin),
            progress: cursor.progress,
            last_use: cursor.last_use,
        }
    }
}

/// All cursors by id.
#[derive(Default)]
pub struct CursorStore {
    slots: Mutex<FxHashMap<i64, Slot>>,
    /// Locked while `slots` is locked.
    shares: CursorShares,
    timed_out: AtomicU64,
    closed_for_room: AtomicU64,
    /// The cursors closed last for room or memory, to tell their clients why. Locked while `slots` is locked.
    closed: Mutex<ClosedCursors>,
    ended_for_memory: AtomicU64,
    read_ahead: AtomicU64,
}

/// A cursor that waits for its next `getMore`.
pub struct IdleCursor {
    /// The user who opened the cursor; `None` if privileges were not checked then.
    pub owner: Option<Owner>,
    /// The cursor's id.
    pub id: i64,
    /// The namespace that the cursor reads.
    pub namespace: String,
    /// The session that opened the cursor.
    pub session: Option<SessionId>,
    /// The facts that are shown of every cursor.
    pub told: CursorTold,
    /// The summary of the cursor's plan; `None` if it has no plan.
    pub plan_summary: Option<String>,
}

/// Outcome of killing a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// The cursor is closed.
    Closed,
    /// There was no such cursor.
    NotFound,
}

fn other_session(cursor: i64, opened_by: Option<SessionId>, asks: Option<SessionId>) -> Failure {
    let (code, what) = match (opened_by.map(id::text), asks.map(id::text)) {
        (None, asks) => (50736, format!("not created in a session, in session {}", asks.unwrap_or_default())),
        (Some(opened_by), None) => (50737, format!("created in session {opened_by}, without an lsid")),
        (Some(opened_by), Some(asks)) => (50738, format!("created in session {opened_by}, in session {asks}")),
    };
    Failure::new(ErrorCode(code), format!("Cannot run getMore on cursor {cursor}, which was {what}"))
}

fn other_transaction(id: i64, opened_by: Option<i64>, asks: Option<i64>) -> Failure {
    let (code, what) = match (opened_by, asks) {
        (None, asks) => (50739, format!("not created in a transaction, in transaction {}", asks.unwrap_or_default())),
        (Some(opened_by), None) => (50740, format!("created in transaction {opened_by}, without a txnNumber")),
        (Some(opened_by), Some(asks)) => (50741, format!("created in transaction {opened_by}, in transaction {asks}")),
    };
    Failure::new(ErrorCode(code), format!("Cannot run getMore on cursor {id}, which was {what}"))
}

impl CursorStore {
    /// Keeps a cursor under a new id from `random`.
    /// # Errors
    /// If too many cursors are open, in total or for its client.
    pub fn insert(&self, cursor: OpenCursor, owner: Option<Owner>, random: &dyn Fn() -> u64) -> Result<i64> {
        let mut slots = self.slots.lock();
        if slots.len() >= CURSORS_MAX {
            return Err(Failure::new(
                ErrorCode::OPERATION_FAILED,
                format!("{CURSORS_MAX} cursors are open already; close some or let them time out"),
            ));
        }
        let user = owner.as_ref().map_or(NOBODY, |owner| owner.digest);
        let share = self.shares.take((user, cursor.peer.network()), CURSORS_MAX - slots.len())?;
        loop {
            let id = (random() >> 1) as i64;
            if id != 0 && !slots.contains_key(&id) {
                slots.insert(id, Slot { state: CursorState::Waiting(Box::new(cursor)), owner, _share: share });
                return Ok(id);
            }
        }
    }

    /// Takes a cursor out for work; [`Self::put_back`] or [`Self::finish`] must follow.
    /// # Errors
    /// `CursorNotFound`; `Unauthorized` if it reads another namespace; 50736 to 50741 if another session or transaction
    /// opened it; `CursorInUse`.
    pub fn take(
        &self,
        id: i64,
        namespace: &Namespace,
        session: Option<SessionId>,
        transaction: Option<i64>,
    ) -> Result<Box<OpenCursor>> {
        let mut slots = self.slots.lock();
        let slot = slots.get_mut(&id).ok_or_else(|| self.closed.lock().is_gone(id))?;
        match &slot.state {
            CursorState::Working { .. } => {
                Err(Failure::new(ErrorCode::CURSOR_IN_USE, format!("cursor id {id} is already in use")))
            }
            CursorState::Waiting(cursor) if cursor.namespace != *namespace => Err(Failure::new(
                ErrorCode::UNAUTHORIZED,
                format!(
                    "Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace {}",
                    cursor.namespace
                ),
            )),
            CursorState::Waiting(cursor) if cursor.session != session => {
                Err(other_session(id, cursor.session, session))
            }
            CursorState::Waiting(cursor) if cursor.transaction != transaction => {
                Err(other_transaction(id, cursor.transaction, transaction))
            }
            CursorState::Waiting(cursor) => {
                let working = CursorState::working(cursor);
                match std::mem::replace(&mut slot.state, working) {
                    CursorState::Waiting(cursor) => Ok(cursor),
                    CursorState::Working { .. } => Err(not_found(id)),
                }
            }
        }
    }

    /// Takes a cursor out to read ahead of its client; [`Self::put_back`] must follow. `None` if the cursor is gone or
    /// in use, if it may not be read ahead, or if it belongs to a transaction, whose own changes it reads.
    pub(super) fn take_to_spool(&self, id: i64) -> Option<Box<OpenCursor>> {
        let mut slots = self.slots.lock();
        let slot = slots.get_mut(&id)?;
        let CursorState::Waiting(cursor) = &slot.state else { return None };
        if cursor.transaction.is_some() || !may_be_spooled(cursor.source.as_ref()) {
            return None;
        }
        let working = CursorState::working(cursor);
        match std::mem::replace(&mut slot.state, working) {
            CursorState::Waiting(cursor) => {
                self.read_ahead.fetch_add(1, Ordering::Relaxed);
                Some(cursor)
            }
            CursorState::Working { .. } => None,
        }
    }

    /// Whether the cursor exists and is not the caller's own. A cursor opened while privileges were not checked has no
    /// owner.
    pub fn is_anothers(&self, id: i64, is_own: impl FnOnce(&Owner) -> bool) -> bool {
        self.slots.lock().get(&id).is_some_and(|slot| !slot.owner.as_ref().is_some_and(is_own))
    }

    /// The owner of a cursor, if it has one, and its namespace; `None` if there is no such cursor.
    pub fn owner_and_namespace(&self, id: i64) -> Option<(Option<Owner>, Namespace)> {
        let slots = self.slots.lock();
        let slot = slots.get(&id)?;
        let namespace = match &slot.state {
            CursorState::Waiting(cursor) => &cursor.namespace,
            CursorState::Working { namespace, .. } => namespace,
        };
        Some((slot.owner.clone(), namespace.clone()))
    }

    /// The cursors that have an owner, with their owners.
    pub fn owners(&self) -> Vec<(i64, Owner)> {
        let slots = self.slots.lock();
        slots.iter().filter_map(|(id, slot)| Some((*id, slot.owner.clone()?))).collect()
    }

    /// Whether a cursor's next batch may take long.
    pub fn is_long(&self, id: i64) -> bool {
        let slots = self.slots.lock();
        matches!(slots.get(&id).map(|slot| &slot.state), Some(CursorState::Waiting(cursor)) if cursor.is_long)
    }

    /// Puts a cursor back to wait. Returns false if it was killed meanwhile.
    pub fn put_back(&self, id: i64, mut cursor: Box<OpenCursor>, now: Instant) -> bool {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get_mut(&id)
            && let CursorState::Working { is_killed: false, .. } = slot.state
        {
            cursor.last_use = now;
            slot.state = CursorState::Waiting(cursor);
            return true;
        }
        slots.remove(&id);
        drop(slots);
        false
    }

    /// Gives a waiting cursor the tally of its query. If the cursor is gone or in use, the tally is dropped.
    pub fn keep_tally(&self, id: i64, tally: Box<dyn QueryTally>) {
        let mut slots = self.slots.lock();
        if let Some(Slot { state: CursorState::Waiting(cursor), .. }) = slots.get_mut(&id) {
            cursor.tally = Some(tally);
        } else {
            // Dropping a tally takes the lock of the statistics, so it must not happen under the lock of `slots`.
            drop(slots);
            drop(tally);
        }
    }

    /// Removes a cursor that has ended.
    pub fn finish(&self, id: i64) {
        self.slots.lock().remove(&id);
    }

    /// The cursors that wait for their next `getMore`, by id.
    pub fn idle(&self, now: Instant) -> Vec<IdleCursor> {
        let slots = self.slots.lock();
        let waiting = |(id, slot): (&i64, &Slot)| match &slot.state {
            CursorState::Waiting(cursor) => Some(IdleCursor {
                owner: slot.owner.clone(),
                id: *id,
                namespace: cursor.namespace.as_str().to_owned(),
                session: cursor.session,
                told: CursorTold {
                    origin: Arc::clone(&cursor.origin),
                    progress: cursor.progress,
                    unused_for: now.saturating_duration_since(cursor.last_use),
                },
                plan_summary: cursor.source.report().map(|report| report.summary),
            }),
            CursorState::Working { .. } => None,
        };
        let mut idle: Vec<_> = slots.iter().filter_map(waiting).collect();
        drop(slots);
        idle.sort_by_key(|cursor| cursor.id);
        idle
    }

    /// The facts of a cursor that a `getMore` works with; `None` if it is gone or waits.
    pub fn in_use(&self, id: i64, now: Instant) -> Option<CursorTold> {
        match &self.slots.lock().get(&id)?.state {
            CursorState::Working { origin, progress, last_use, .. } => Some(CursorTold {
                origin: Arc::clone(origin),
                progress: *progress,
                unused_for: now.saturating_duration_since(*last_use),
            }),
            CursorState::Waiting(_) => None,
        }
    }

    /// Closes a cursor; with a namespace, only if the cursor reads that. A `getMore` that works with the cursor ends
    /// soon.
    pub fn kill(&self, id: i64, namespace: Option<&Namespace>) -> Killed {
        let mut slots = self.slots.lock();
        match slots.get_mut(&id).map(|slot| &mut slot.state) {
            Some(CursorState::Working { is_killed, namespace: its, context, .. })
                if !*is_killed && namespace.is_none_or(|namespace| its == namespace) =>
            {
                *is_killed = true;
                context.note_killed_cursor();
                Killed::Closed
            }
            Some(CursorState::Waiting(cursor)) if namespace.is_none_or(|namespace| cursor.namespace == *namespace) => {
                let closed = slots.remove(&id);
                // Dropping a snapshot takes a lock of the store, so it must not happen under the lock of `slots`.
                drop(slots);
                drop(closed);
                Killed::Closed
            }
            _ => Killed::NotFound,
        }
    }

    /// Closes cursors that exceeded the idle timeout, and returns their number.
    pub fn purge(&self, now: Instant, timeout: Duration) -> usize {
        let is_over = |cursor: &OpenCursor| !cursor.has_no_timeout && now.duration_since(cursor.last_use) > timeout;
        let closed = self.remove_where(is_over);
        self.shares.forget_unused();
        self.timed_out.fetch_add(closed as u64, Ordering::Relaxed);
        closed
    }

    /// Number of cursors closed since the start because they exceeded the idle timeout.
    pub fn timed_out(&self) -> u64 {
        self.timed_out.load(Ordering::Relaxed)
    }

    /// Number of cursors closed since the start because the snapshots kept for them took too much room.
    pub fn closed_for_room(&self) -> u64 {
        self.closed_for_room.load(Ordering::Relaxed)
    }

    /// Whether no cursor is open.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.lock().is_empty()
    }

    /// Calls `show` for each cursor that waits for its next `getMore`.
    pub(super) fn for_each_waiting(&self, mut show: impl FnMut(i64, &OpenCursor)) {
        for (id, slot) in &*self.slots.lock() {
            if let CursorState::Waiting(cursor) = &slot.state {
                show(*id, cursor);
            }
        }
    }

    /// Closes those cursors in `ids` that still wait, to free the room they take. Returns their number.
    pub(super) fn close_for_room(&self, ids: impl Iterator<Item = i64>) -> usize {
        let mut slots = self.slots.lock();
        let mut remembered = self.closed.lock();
        let mut closed = Vec::new();
        for id in ids {
            if matches!(slots.get(&id).map(|slot| &slot.state), Some(CursorState::Waiting(_))) {
                closed.extend(slots.remove(&id));
                remembered.note(id, Room::Snapshots);
            }
        }
        drop((remembered, slots));
        self.closed_for_room.fetch_add(closed.len() as u64, Ordering::Relaxed);
        closed.len()
    }

    /// Ends a cursor that still waits, to free its memory. Returns whether it did.
    pub(super) fn end_for_memory(&self, id: i64) -> bool {
        let mut slots = self.slots.lock();
        if !matches!(slots.get(&id).map(|slot| &slot.state), Some(CursorState::Waiting(_))) {
            return false;
        }
        let ended = slots.remove(&id);
        if let Some(Slot { state: CursorState::Waiting(cursor), .. }) = &ended {
            // The command that opened the cursor may not have ended and keeps the operation alive, so the bytes of the
            // idle cursor are given back here.
            cursor.context.operation().end_rest();
        }
        self.closed.lock().note(id, Room::Memory);
        drop(slots);
        drop(ended);
        self.ended_for_memory.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Number of times a cursor was taken to be read ahead since the start.
    pub fn read_ahead(&self) -> u64 {
        self.read_ahead.load(Ordering::Relaxed)
    }

    /// Number of cursors ended since the start because of their memory.
    pub fn ended_for_memory(&self) -> u64 {
        self.ended_for_memory.load(Ordering::Relaxed)
    }

    /// Closes the waiting cursors of the chosen sessions, and returns their number.
    pub fn end_sessions(&self, is_chosen: impl Fn(SessionId) -> bool) -> usize {
        self.remove_where(|cursor| cursor.session.is_some_and(&is_chosen))
    }

    /// Closes the waiting cursors that a transaction opened, and returns their number.
    pub(crate) fn end_transaction(&self, session: SessionId, number: i64) -> usize {
        self.remove_where(|cursor| cursor.transaction == Some(number) && cursor.session == Some(session))
    }

    fn remove_where(&self, mut is_over: impl FnMut(&OpenCursor) -> bool) -> usize {
        let mut slots = self.slots.lock();
        let over: Vec<i64> = slots
            .iter()
            .filter_map(|(id, slot)| {
                matches!(&slot.state, CursorState::Waiting(cursor) if is_over(cursor)).then_some(*id)
            })
            .collect();
        let removed: Vec<_> = over.iter().filter_map(|id| slots.remove(id)).collect();
        drop(slots);
        removed.len()
    }

    /// Open cursors: all, and the waiting ones without a timeout.
    pub fn open_counts(&self) -> (usize, usize) {
        let slots = self.slots.lock();
        let without_timeout = slots
            .values()
            .filter(|slot| matches!(&slot.state, CursorState::Waiting(cursor) if cursor.has_no_timeout))
            .count();
        (slots.len(), without_timeout)
    }
}
