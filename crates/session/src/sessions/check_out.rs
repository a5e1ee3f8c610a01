//! A session checked out by a command, and its state when the command ends.

use super::asked::NumberedCommand;
use super::last_write::LastWrite;
use super::session::Session;
use super::standing::{Held, Standing};
use crate::transactions::{Fate, Open, TransactionContext, TransactionPart};
use bunko_catalog::{RetryableWrite, Transaction};
use bunko_errors::Result;
use bunko_operation::{OperationSource, UnitOfWork};
use bunko_store::Lsn;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A session that a command works with, under a transaction number.
pub struct CheckedOut<'s> {
    context: TransactionContext<'s>,
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
        /// The standing before the command began a transaction; `None` if it began none.
        before: Option<Standing>,
        /// The fate of a transaction that is still open.
        fate: Fate,
        /// When the command took the session.
        since: Instant,
        /// The transaction that the command committed.
        committed: Option<LastWrite>,
    },
}

impl<'s> CheckedOut<'s> {
    /// Takes a session for a command, once no other command works under the session's number. A new number aborts the
    /// transaction of the number before. `None` if the session is over.
    /// # Errors
    /// `TransactionTooOld`, `NoSuchTransaction`, `TransactionCommitted`, `IncompleteTransactionHistory` and
    /// `ConflictingOperationInProgress` if the number does not allow this command; the reason of an interruption.
    pub fn take(
        session: &Arc<Session>,
        asked: NumberedCommand,
        context: TransactionContext<'s>,
        operation: &dyn OperationSource,
    ) -> Result<Option<Self>> {
        let Some(held) = session.take(asked, operation)? else { return Ok(None) };
        Ok(Some(Self::new(Arc::clone(session), asked, held, context)))
    }

    fn new(session: Arc<Session>, asked: NumberedCommand, mut held: Held, context: TransactionContext<'s>) -> Self {
        if held.standing.number() != Some(asked.number)
            && let Some(open) = held.abort()
        {
            context.end(session.id, &open);
        }
        let work = match asked.part {
            None => {
                let write = Arc::new(RetryableWrite::new(session.id, held.history, asked.number));
                Work::Write { write, standing: held.standing }
            }
            Some(TransactionPart::First) => {
                let unit = Transaction::begin(context.catalog, session.id, asked.number);
                let open = Box::new(Open { unit, active: Duration::ZERO });
                let begun = Standing::InProgress { number: asked.number, open };
                let before = std::mem::replace(&mut held.standing, begun);
                let since = context.transactions.clock().now();
                Work::Transaction {
                    held: Some(held),
                    before: Some(before),
                    fate: Fate::Aborted,
                    since,
                    committed: None,
                }
            }
            Some(_) => {
                let since = context.transactions.clock().now();
                Work::Transaction { held: Some(held), before: None, fate: Fate::Aborted, since, committed: None }
            }
        };
        Self { context, session, work }
    }

    /// The session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The command's retryable write, if it is one.
    #[inline]
    pub fn write(&self) -> Option<&Arc<RetryableWrite>> {
        match &self.work {
            Work::Write { write, .. } => Some(write),
            Work::Transaction { .. } => None,
        }
    }

    /// The transaction, if it is open.
    #[inline]
    pub fn transaction(&self) -> Option<&Arc<Transaction>> {
        match &self.work {
            Work::Transaction { held: Some(Held { standing: Standing::InProgress { open, .. }, .. }), .. } => {
                Some(&open.unit)
            }
            _ => None,
        }
    }

    /// The unit of work that the command's writes belong to; `None` if its transaction is over.
    pub fn unit(&self) -> Option<Arc<UnitOfWork>> {
        match self.write() {
            Some(write) => Some(Arc::clone(write) as _),
            None => self.transaction().map(|transaction| Arc::clone(transaction) as _),
        }
    }

    /// As [`Self::unit`], borrowed.
    #[inline]
    pub fn unit_lent(&self) -> Option<&UnitOfWork> {
        match self.write() {
            Some(write) => Some(&**write as _),
            None => self.transaction().map(|transaction| &**transaction as _),
        }
    }

    /// Whether the command is part of a transaction.
    #[inline]
    pub fn is_of_transaction(&self) -> bool {
        matches!(self.work, Work::Transaction { .. })
    }

    /// Sets the fate of a transaction that is open when the command ends. Without it, the transaction is aborted.
    pub fn set_fate(&mut self, next: Fate) {
        if let Work::Transaction { fate, .. } = &mut self.work {
            *fate = next;
        }
    }

    /// Commits the transaction, unless it is committed already. Returns the log record, if the transaction wrote any.
    /// # Errors
    /// As `Transaction::commit`; the transaction is aborted then.
    pub fn commit(&mut self) -> Result<Option<Lsn>> {
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
        self.context.transactions.note_commit(self.session.id);
        self.context.cursors.end_transaction(self.session.id, number);
        Ok(lsn)
    }
}

impl CheckedOut<'_> {
    /// Aborts the transaction, if it is open.
    pub fn abort(&mut self) {
        let Work::Transaction { held: Some(held), .. } = &mut self.work else { return };
        if let Some(open) = held.abort() {
            self.context.end(self.session.id, &open);
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
        let (context, session) = (self.context, &self.session);
        let (held, last_write) = match &mut self.work {
            Work::Write { write, standing } => {
                // Others may still hold the write, such as a cursor that the command left open; nothing more is
                // recorded in it.
                let (history, written) = write.end();
                let last_write = written.map(|lsn| LastWrite::retryable(write.number(), lsn));
                (Some(Held { history, standing: std::mem::take(standing) }), last_write)
            }
            Work::Transaction { held, before, fate, since, committed } => {
                let held = held.take().map(|held| settled(held, before.take(), *fate, *since, context, session));
                (held, *committed)
            }
        };
        if let Some(open) = held.and_then(|held| session.give_back(held, last_write)) {
            context.end(session.id, &open);
        }
    }
}

/// The session's state after a command of a transaction.
fn settled(
    mut held: Held,
    before: Option<Standing>,
    fate: Fate,
    since: Instant,
    context: TransactionContext<'_>,
    session: &Session,
) -> Held {
    match (fate, before) {
        (Fate::AsBefore, Some(before)) => {
            if let Some(open) = held.abort() {
                open.unit.abort();
                context.transactions.note_undone(session.id);
            }
            held.standing = before;
        }
        (Fate::Open | Fate::AsBefore, _) => {
            if let Standing::InProgress { open, .. } = &mut held.standing {
                open.active += context.transactions.clock().since(since);
            }
        }
        (Fate::Aborted, _) => {
            if let Some(open) = held.abort() {
                context.end(session.id, &open);
            }
        }
    }
    held
}
