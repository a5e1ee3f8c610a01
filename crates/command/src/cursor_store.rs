//! Cursors that wait for their next `getMore`.

use crate::invocation::{Context, Examined};
use crate::session_id::SessionId;
use bunko_bson::text::ValueText;
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a cursor may wait before it is closed.
/// Source: MongoDB manual, parameter `cursorTimeoutMillis`.
pub const CURSOR_TIMEOUT: Duration = Duration::from_mins(10);
/// Most cursors that wait at once; each keeps a snapshot.
const CURSORS_MAX: usize = 100_000;

/// Where a cursor's documents come from; one is lent until the next call.
pub trait CursorSource: Send {
    /// The next document, or `None` at the end.
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>>;

    /// Whether it is known, without looking for one, that there is no other document.
    fn is_over(&self) -> bool {
        false
    }

    /// What has been looked at so far, where it is counted.
    fn examined(&self) -> Option<Examined> {
        None
    }

    /// Asked before each batch but the first.
    /// # Errors
    /// `QueryPlanKilled` where what it reads is no more.
    fn resume(&self) -> Result<()> {
        Ok(())
    }
}

/// A source without documents: a collection that does not exist.
pub struct NoDocuments;

impl CursorSource for NoDocuments {
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>> {
        Ok(None)
    }
}

/// A cursor and what `getMore` must know of it.
pub struct OpenCursor {
    /// What it reads.
    pub namespace: Namespace,
    /// Where its documents come from.
    pub source: Box<dyn CursorSource>,
    /// A document that did not fit into the batch before.
    pub pending: Option<DocumentBuf>,
    /// The session that opened it.
    pub session: Option<SessionId>,
    /// Whether the next batch may take long to fill.
    pub is_long: bool,
    /// Whether the idle timeout spares it.
    pub has_no_timeout: bool,
    /// What is left of the time that the command that opened it may take. The time between batches does not count.
    pub time_left: Option<Duration>,
    /// How long the last `nextBatch` was.
    pub batch_bytes: usize,
    /// When it was used last.
    pub last_use: Instant,
    /// What its source counts its work at, for the command that reads it.
    pub(crate) context: Context,
    /// The command that opened it, for `currentOp`.
    pub originating_command: DocumentBuf,
}

enum Slot {
    Waiting(Box<OpenCursor>),
    /// A `getMore` has it; true when it was killed meanwhile.
    Working {
        is_killed: bool,
        namespace: Namespace,
        /// What the `getMore` counts its work at.
        context: Context,
    },
}

/// All cursors by id.
#[derive(Default)]
pub struct CursorStore {
    slots: Mutex<FxHashMap<i64, Slot>>,
    timed_out: AtomicU64,
}

/// A cursor that waits for its next `getMore`.
pub(crate) struct IdleCursor {
    pub id: i64,
    pub namespace: String,
    pub session: Option<SessionId>,
    pub has_no_timeout: bool,
    pub idle_for: Duration,
    pub originating_command: DocumentBuf,
}

/// What became of a cursor that was to be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// It is gone.
    Closed,
    /// There was none.
    NotFound,
}

fn not_found(id: i64) -> Failure {
    Failure::new(ErrorCode::CURSOR_NOT_FOUND, format!("cursor id {id} not found"))
}

fn other_session(id: i64, opened_by: Option<SessionId>, asks: Option<SessionId>) -> Failure {
    let text =
        |session: SessionId| ValueText(ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &session }).to_string();
    let (code, what) = match (opened_by.map(text), asks.map(text)) {
        (None, asks) => (50736, format!("not created in a session, in session {}", asks.unwrap_or_default())),
        (Some(opened_by), None) => (50737, format!("created in session {opened_by}, without an lsid")),
        (Some(opened_by), Some(asks)) => (50738, format!("created in session {opened_by}, in session {asks}")),
    };
    Failure::new(ErrorCode(code), format!("Cannot run getMore on cursor {id}, which was {what}"))
}

impl CursorStore {
    /// Keeps a cursor under a new id made from `random`.
    /// # Errors
    /// Where too many are open.
    pub fn insert(&self, cursor: OpenCursor, random: &dyn Fn() -> u64) -> Result<i64> {
        let mut slots = self.slots.lock();
        if slots.len() >= CURSORS_MAX {
            return Err(Failure::new(
                ErrorCode::OPERATION_FAILED,
                format!("{CURSORS_MAX} cursors are open already; close some or let them time out"),
            ));
        }
        loop {
            let id = (random() >> 1) as i64;
            if id != 0 && !slots.contains_key(&id) {
                slots.insert(id, Slot::Waiting(Box::new(cursor)));
                return Ok(id);
            }
        }
    }

    /// Takes a cursor out to work with it; [`Self::put_back`] or [`Self::finish`] must follow.
    /// # Errors
    /// `CursorNotFound`; `Unauthorized` where it reads another namespace; 50736 to 50738 where another session opened it;
    /// `CursorInUse`.
    pub fn take(&self, id: i64, namespace: &Namespace, session: Option<SessionId>) -> Result<Box<OpenCursor>> {
        let mut slots = self.slots.lock();
        let slot = slots.get_mut(&id).ok_or_else(|| not_found(id))?;
        match slot {
            Slot::Working { .. } => {
                Err(Failure::new(ErrorCode::CURSOR_IN_USE, format!("cursor id {id} is already in use")))
            }
            Slot::Waiting(cursor) if cursor.namespace != *namespace => Err(Failure::new(
                ErrorCode::UNAUTHORIZED,
                format!(
                    "Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace {}",
                    cursor.namespace
                ),
            )),
            Slot::Waiting(cursor) if cursor.session != session => Err(other_session(id, cursor.session, session)),
            Slot::Waiting(cursor) => {
                let (namespace, context) = (namespace.clone(), cursor.context.clone());
                match std::mem::replace(slot, Slot::Working { is_killed: false, namespace, context }) {
                    Slot::Waiting(cursor) => Ok(cursor),
                    Slot::Working { .. } => Err(not_found(id)),
                }
            }
        }
    }

    /// Whether a cursor's next batch may take long.
    pub fn is_long(&self, id: i64) -> bool {
        matches!(self.slots.lock().get(&id), Some(Slot::Waiting(cursor)) if cursor.is_long)
    }

    /// Lets a cursor wait again, unless it was killed meanwhile; whether it still is there.
    pub fn put_back(&self, id: i64, mut cursor: Box<OpenCursor>, now: Instant) -> bool {
        let mut slots = self.slots.lock();
        if let Some(Slot::Working { is_killed: false, .. }) = slots.get(&id) {
            cursor.last_use = now;
            slots.insert(id, Slot::Waiting(cursor));
            return true;
        }
        slots.remove(&id);
        drop(slots);
        false
    }

    /// Forgets a cursor that came to its end.
    pub fn finish(&self, id: i64) {
        self.slots.lock().remove(&id);
    }

    /// The cursors that wait for their next `getMore`, by id.
    pub(crate) fn idle(&self) -> Vec<IdleCursor> {
        let slots = self.slots.lock();
        let waiting = |(id, slot): (&i64, &Slot)| match slot {
            Slot::Waiting(cursor) => Some(IdleCursor {
                id: *id,
                namespace: cursor.namespace.as_str().to_owned(),
                session: cursor.session,
                has_no_timeout: cursor.has_no_timeout,
                idle_for: cursor.last_use.elapsed(),
                originating_command: cursor.originating_command.clone(),
            }),
            Slot::Working { .. } => None,
        };
        let mut idle: Vec<_> = slots.iter().filter_map(waiting).collect();
        drop(slots);
        idle.sort_by_key(|cursor| cursor.id);
        idle
    }

    /// Closes a cursor of that namespace, or of any. A `getMore` that has it ends soon.
    pub fn kill(&self, id: i64, namespace: Option<&Namespace>) -> Killed {
        let mut slots = self.slots.lock();
        match slots.get_mut(&id) {
            Some(Slot::Working { is_killed, namespace: its, context })
                if !*is_killed && namespace.is_none_or(|namespace| its == namespace) =>
            {
                *is_killed = true;
                context.note_killed_cursor();
                Killed::Closed
            }
            Some(Slot::Waiting(cursor)) if namespace.is_none_or(|namespace| cursor.namespace == *namespace) => {
                let closed = slots.remove(&id);
                // Dropping a snapshot takes a lock of the store: not under ours.
                drop(slots);
                drop(closed);
                Killed::Closed
            }
            _ => Killed::NotFound,
        }
    }

    /// Closes what has waited too long, and all cursors of a session where one is given; how many.
    pub fn purge(&self, now: Instant, timeout: Duration) -> usize {
        let is_over = |cursor: &OpenCursor| !cursor.has_no_timeout && now.duration_since(cursor.last_use) > timeout;
        let closed = self.remove_where(is_over);
        self.timed_out.fetch_add(closed as u64, Ordering::Relaxed);
        closed
    }

    /// How many were closed since the start because nobody asked for them.
    pub fn timed_out(&self) -> u64 {
        self.timed_out.load(Ordering::Relaxed)
    }

    /// Closes the cursors of the chosen sessions; how many.
    pub fn end_sessions(&self, is_chosen: impl Fn(SessionId) -> bool) -> usize {
        self.remove_where(|cursor| cursor.session.is_some_and(&is_chosen))
    }

    fn remove_where(&self, mut is_over: impl FnMut(&OpenCursor) -> bool) -> usize {
        let mut slots = self.slots.lock();
        let over: Vec<i64> = slots
            .iter()
            .filter_map(|(id, slot)| matches!(slot, Slot::Waiting(cursor) if is_over(cursor)).then_some(*id))
            .collect();
        let removed: Vec<_> = over.iter().filter_map(|id| slots.remove(id)).collect();
        drop(slots);
        removed.len()
    }

    /// Open cursors: all, and those without a timeout.
    pub fn open_counts(&self) -> (usize, usize) {
        let slots = self.slots.lock();
        let without_timeout =
            slots.values().filter(|slot| matches!(slot, Slot::Waiting(cursor) if cursor.has_no_timeout)).count();
        (slots.len(), without_timeout)
    }
}
