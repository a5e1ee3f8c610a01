//! One session.

use super::asked::NumberedCommand;
use super::id::SessionId;
use super::last_write::LastWrite;
use super::standing::{Held, Standing};
use crate::transactions::Open;
use bunko_catalog::WriteHistory;
use bunko_errors::Result;
use bunko_operation::OperationSource;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A session in use, shared by the table and by the connections that keep it at hand.
pub struct Session {
    /// The session's id.
    pub id: SessionId,
    last_use_ms: AtomicU64,
    /// Whether a client has ended the session. Using it begins it again.
    is_ended: AtomicBool,
    is_over: AtomicBool,
    belongings: Mutex<Belongings>,
    given_back: Condvar,
}

struct Belongings {
    /// `None` while a command works under the session's number, and when the session is over.
    held: Option<Held>,
    /// Whether to abort the transaction once the command that works with it has ended.
    is_to_abort: bool,
    last_write: Option<LastWrite>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Session {
    pub(super) fn new(id: SessionId, now_ms: u64, history: WriteHistory) -> Self {
        let last_write = LastWrite::of_history(&history);
        Self {
            id,
            last_use_ms: AtomicU64::new(now_ms),
            is_ended: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            belongings: Mutex::new(Belongings { held: Some(Held::new(history)), is_to_abort: false, last_write }),
            given_back: Condvar::new(),
        }
    }

    /// Takes over a write history, unless a command works with the session or a transaction is open: neither outlives the
    /// primary's term.
    pub(super) fn adopt(&self, history: WriteHistory) {
        let mut belongings = self.belongings.lock();
        let is_idle =
            belongings.held.as_ref().is_some_and(|held| !matches!(held.standing, Standing::InProgress { .. }));
        if is_idle {
            belongings.last_write = LastWrite::of_history(&history);
            belongings.held = Some(Held::new(history));
        }
    }

    pub(super) fn note_use(&self, now_ms: u64) {
        self.last_use_ms.fetch_max(now_ms, Ordering::Relaxed);
        if self.is_ended.load(Ordering::Relaxed) {
            self.is_ended.store(false, Ordering::Relaxed);
        }
    }

    /// When the session was last used, in milliseconds since the table began.
    pub fn last_use_ms(&self) -> u64 {
        self.last_use_ms.load(Ordering::Relaxed)
    }

    /// Whether a client has ended the session.
    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    pub(super) fn note_ended(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
    }

    /// Whether the session has left the table. A connection that still keeps it must ask the table again.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Whether a command works under the session's number.
    pub fn is_at_work(&self) -> bool {
        self.belongings.lock().held.is_none()
    }

    /// Ends the session for good and takes its write history. Does nothing while a command works with it or a
    /// transaction is open, nor, with [`Kept::WithHistory`], if it has a write history.
    pub(super) fn take_over(&self, kept: Kept) -> Option<WriteHistory> {
        let mut belongings = self.belongings.lock();
        let Held { history, standing } = belongings.held.as_ref()?;
        let stays = matches!(standing, Standing::InProgress { .. }) || kept == Kept::WithHistory && !history.is_empty();
        if stays {
            return None;
        }
        let taken = belongings.held.take()?;
        self.is_over.store(true, Ordering::Release);
        Some(taken.history)
    }

    /// Takes the session's state for a command, once no other command works under the session's number. `None` if the
    /// session is over.
    /// # Errors
    /// If the operation is interrupted while it waits; errors of [`NumberedCommand::judge`].
    pub(super) fn take(&self, asked: NumberedCommand, operation: &dyn OperationSource) -> Result<Option<Held>> {
        let mut belongings = self.belongings.lock();
        loop {
            if self.is_over() {
                return Ok(None);
            }
            match &belongings.held {
                Some(held) => {
                    asked.judge(self.id, held)?;
                    belongings.is_to_abort = false;
                    return Ok(belongings.held.take());
                }
                None => {
                    let until = operation.operation().may_wait_until()?;
                    self.given_back.wait_until(&mut belongings, until);
                }
            }
        }
    }

    /// Returns the state after a command, with the command's last write, if it wrote. Returns the transaction if it was
    /// to be aborted meanwhile.
    pub(super) fn give_back(&self, mut held: Held, last_write: Option<LastWrite>) -> Option<Box<Open>> {
        let mut belongings = self.belongings.lock();
        if last_write.is_some() {
            belongings.last_write = last_write;
        }
        let aborted = if std::mem::take(&mut belongings.is_to_abort) { held.abort() } else { None };
        belongings.held = Some(held);
        drop(belongings);
        self.given_back.notify_one();
        aborted
    }

    /// Takes out the transaction of that number and aborts it; `None` if it is not in progress. If a command works with
    /// the transaction, that happens when the command ends.
    pub fn abort(&self, number: i64) -> Option<Box<Open>> {
        let mut belongings = self.belongings.lock();
        match &mut belongings.held {
            Some(held) if held.standing.number() == Some(number) => held.abort(),
            Some(_) => None,
            None => {
                belongings.is_to_abort = true;
                None
            }
        }
    }

    /// The last write of the commands that have ended; `None` if the session is over.
    pub fn last_write(&self) -> Option<LastWrite> {
        let belongings = self.belongings.lock();
        belongings.last_write.filter(|_| !self.is_over())
    }

    /// Total run time of the commands of the session's open transaction; `None` without one, and while a command runs.
    pub fn active_time(&self) -> Option<std::time::Duration> {
        match &self.belongings.lock().held.as_ref()?.standing {
            Standing::InProgress { open, .. } => Some(open.active),
            _ => None,
        }
    }
}

/// The sessions that are not taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Sessions with a running command.
    AtWork,
    /// Sessions with a running command, and sessions that have a write history.
    WithHistory,
}
