//! A session checked out by a command, and its state when the command ends.

use super::SessionId;
use super::last_write::LastWrite;
use super::session::Session;
use super::standing::{Held, Standing};
use crate::service::Service;
use crate::transactions::{Fate, Open, Part};
use bunko_catalog::{RetryableWrite, Transaction};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::UnitOfWork;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number under which a command takes its session, and its part in the transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub number: i64,
    /// `None` for a retryable write.
    pub part: Option<Part>,
}

/// A session that a command works with, under a transaction number.
pub(crate) struct CheckedOut<'s> {
    service: &'s Service,
    session: Arc<Session>,
    work: Work,
}

enum Work {
    Write {
        write: Arc<RetryableWrite>,
        standing: Standing,
    },
    Transaction {
        held: Option<Held>,
        /// The standing before the command began a transaction, if it did.
        before: Option<Standing>,
        /// The fate of a transaction that is still open.
        fate: Fate,
        /// When the command took the session.
        since: Instant,
        /// The transaction that the command committed.
        committed: Option<LastWrite>,
    },
}

impl Asked {
    /// # Errors
    /// `TransactionTooOld`, `NoSuchTransaction`, `TransactionCommitted`, `IncompleteTransactionHistory` and
    /// `ConflictingOperationInProgress` if the number does not allow this command.
    pub(super) fn judge(self, session: SessionId, held: &Held) -> Result<()> {
        let Self { number, part } = self;
        let newest = held.newest();
        if let Some(newer) = newest.filter(|newest| number < *newest) {
            return Err(self.too_old(session, newer));
        }
        let is_of_transaction = held.standing.number() == Some(number);
        match part {
            None if is_of_transaction => {
                let message = "Cannot retry a retryable write that has been converted into a transaction";
                Err(Failure::new(ErrorCode::INCOMPLETE_TRANSACTION_HISTORY, message))
            }
            None => Ok(()),
            Some(Part::First) if newest == Some(number) => {
                // Only a router may begin a transaction again under its number, whatever the outcome of the first
                // attempt.
                let message = format!(
                    "Only servers in a sharded cluster can start a new transaction at the active transaction number \
                     {number} of session {}",
                    super::id::text(session)
                );
                Err(Failure::new(ErrorCode::CONFLICTING_OPERATION_IN_PROGRESS, message))
            }
            Some(Part::First) => Ok(()),
            Some(part) if is_of_transaction => goes_on(number, part, &held.standing),
            Some(_) => {
                let active = newest.unwrap_or(-1);
                let message = format!(
                    "Given transaction number {number} does not match any in-progress transactions. The active transaction \
                     number is {active}"
                );
                Err(Failure::new(ErrorCode::NO_SUCH_TRANSACTION, message))
            }
        }
    }

    fn too_old(self, session: SessionId, newer: i64) -> Failure {
        let (number, session) = (self.number, super::id::text(session));
        let message = match self.part {
            None => format!(
                "Retryable write with txnNumber {number} is prohibited on session {session} because a newer retryable write \
                 with txnNumber {newer} has already started on this session."
            ),
            Some(_) => format!(
                "Cannot start transaction with {{ txnNumber: {number} }} on session {session} because a newer transaction \
                 with txnNumber {newer} has already started on this session."
            ),
        };
        Failure::new(ErrorCode::TRANSACTION_TOO_OLD, message)
    }
}

/// Checks whether a transaction accepts a command that is not its first.
fn goes_on(number: i64, part: Part, standing: &Standing) -> Result<()> {
    match standing {
        Standing::InProgress { .. } | Standing::None => Ok(()),
        Standing::Committed { .. } if part == Part::Commit => Ok(()),
        Standing::Committed { .. } => {
            let message = format!("Transaction with {{ txnNumber: {number} }} has been committed.");
            Err(Failure::new(ErrorCode::TRANSACTION_COMMITTED, message))
        }
        Standing::Aborted { .. } => {
            let message = format!("Transaction with {{ txnNumber: {number} }} has been aborted.");
            Err(Failure::new(ErrorCode::NO_SUCH_TRANSACTION, message))
        }
    }
}

impl<'s> CheckedOut<'s> {
    /// Takes a session for a command. A new number aborts the transaction of the number before.
    pub(super) fn new(session: Arc<Session>, asked: Asked, mut held: Held, service: &'s Service) -> Self {
        if held.standing.number() != Some(asked.number)
            && let Some(open) = held.abort()
        {
            service.end_transaction(session.id, &open);
        }
        let work = match asked.part {
            None => {
                let write = Arc::new(RetryableWrite::new(session.id, held.history, asked.number));
                Work::Write { write, standing: held.standing }
            }
            Some(Part::First) => {
                let unit = Transaction::begin(&service.catalog, session.id, asked.number);
                let open = Box::new(Open { unit, active: Duration::ZERO });
                let begun = Standing::InProgress { number: asked.number, open };
                let before = std::mem::replace(&mut held.standing, begun);
                let since = Instant::now();
                Work::Transaction {
                    held: Some(held),
                    before: Some(before),
                    fate: Fate::Aborted,
                    since,
                    committed: None,
                }
            }
            Some(_) => {
                let since = Instant::now();
                Work::Transaction { held: Some(held), before: None, fate: Fate::Aborted, since, committed: None }
            }
        };
        Self { service, session, work }
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The command's retryable write, if it is one.
    pub(crate) fn write(&self) -> Option<&Arc<RetryableWrite>> {
        match &self.work {
            Work::Write { write, .. } => Some(write),
            Work::Transaction { .. } => None,
        }
    }

    /// The transaction, if it is open.
    pub(crate) fn transaction(&self) -> Option<&Arc<Transaction>> {
        match &self.work {
            Work::Transaction { held: Some(Held { standing: Standing::InProgress { open, .. }, .. }), .. } => {
                Some(&open.unit)
            }
            _ => None,
        }
    }

    /// The unit of work that the command's writes belong to.
    pub(crate) fn unit(&self) -> Option<Arc<UnitOfWork>> {
        match self.write() {
            Some(write) => Some(Arc::clone(write) as _),
            None => self.transaction().map(|transaction| Arc::clone(transaction) as _),
        }
    }

    /// As [`Self::unit`], borrowed.
    pub(crate) fn unit_lent(&self) -> Option<&UnitOfWork> {
        match self.write() {
            Some(write) => Some(&**write as _),
            None => self.transaction().map(|transaction| &**transaction as _),
        }
    }

    /// Whether the command is part of a transaction.
    pub(crate) fn is_of_transaction(&self) -> bool {
        matches!(self.work, Work::Transaction { .. })
    }

    /// Sets the fate of a transaction that is open when the command ends. Without it, the transaction is aborted.
    pub(crate) fn set_fate(&mut self, next: Fate) {
        if let Work::Transaction { fate, .. } = &mut self.work {
            *fate = next;
        }
    }

    /// Commits the transaction, unless it is committed already. Returns the log record, if the transaction wrote any.
    /// # Errors
    /// As `Transaction::commit`; the transaction is aborted then.
    pub(crate) fn commit(&mut self) -> Result<Option<bunko_store::Lsn>> {
        let Work::Transaction { held: Some(held), committed, .. } = &mut self.work else { return Ok(None) };
        let (number, unit) = match &held.standing {
            Standing::InProgress { number, open } => (*number, Arc::clone(&open.unit)),
            Standing::Committed { lsn, .. } => return Ok(*lsn),
            Standing::None | Standing::Aborted { .. } => return Ok(None),
        };
        let lsn = unit.commit(&mut held.history)?;
        held.standing = Standing::Committed { number, lsn };
        // A transaction that changed nothing leaves no record.
        *committed = lsn.map(|lsn| LastWrite::transaction(number, lsn));
        self.service.transactions.note_commit(self.session.id);
        self.service.cursors.end_transaction(self.session.id, number);
        Ok(lsn)
    }
}

impl CheckedOut<'_> {
    /// Aborts the transaction, if it is open.
    pub(crate) fn abort(&mut self) {
        let Work::Transaction { held: Some(held), .. } = &mut self.work else { return };
        if let Some(open) = held.abort() {
            self.service.end_transaction(self.session.id, &open);
        }
    }
}

impl fmt::Debug for CheckedOut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedOut").field("session", &self.session.id).finish_non_exhaustive()
    }
}

impl Drop for CheckedOut<'_> {
    fn drop(&mut self) {
        let (service, session) = (self.service, &self.session);
        let (held, last_write) = match &mut self.work {
            Work::Write { write, standing } => {
                // Others may still hold the write, such as a cursor that the command left.
                let (history, written) = write.end();
                let last_write = written.map(|lsn| LastWrite::retryable(write.number(), lsn));
                (Some(Held { history, standing: std::mem::take(standing) }), last_write)
            }
            Work::Transaction { held, before, fate, since, committed } => {
                let held = held.take().map(|held| settled(held, before.take(), *fate, *since, service, session));
                (held, *committed)
            }
        };
        if let Some(open) = held.and_then(|held| session.give_back(held, last_write)) {
            service.end_transaction(session.id, &open);
        }
    }
}

/// The session's state after a command of a transaction.
fn settled(
    mut held: Held,
    before: Option<Standing>,
    fate: Fate,
    since: Instant,
    service: &Service,
    session: &Arc<Session>,
) -> Held {
    match (fate, before) {
        (Fate::AsBefore, Some(before)) => {
            if let Some(open) = held.abort() {
                open.unit.abort();
                service.transactions.note_undone(session.id);
            }
            held.standing = before;
        }
        (Fate::Open | Fate::AsBefore, _) => {
            if let Standing::InProgress { open, .. } = &mut held.standing {
                open.active += since.elapsed();
            }
        }
        (Fate::Aborted, _) => {
            if let Some(open) = held.abort() {
                service.end_transaction(session.id, &open);
            }
        }
    }
    held
}
