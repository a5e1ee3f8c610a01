//! The session state of an invocation: the transaction or retryable write that it is part of, the past state that it
//! reads, and the wait after a conflict with another transaction.

use super::Invocation;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_catalog::{Namespace, RetryableWrite, Return, StateAsked, Transaction, Turn};
use bunko_errors::{Failure, Result};
use bunko_operation::UnitOfWork;
use bunko_session::awaiting::Await;
use bunko_session::sessions::{CheckedOut, NumberedCommand};
use bunko_session::transactions::{CONFLICT_LOOK, CONFLICT_WAIT_MAX, Entry, Fate, TransactionPart};
use bunko_store::Lsn;
use std::sync::Arc;
use std::time::Instant;

/// The consequence of a conflict with another transaction.
pub(crate) enum Conflict {
    /// The command waits for its turn and runs again.
    Again(Await, Turn),
    /// The command has failed, and its reply is held back.
    Over(Await),
}

impl Invocation<'_> {
    /// Waits for the session of a command with a transaction number, and takes it until the command ends.
    /// # Errors
    /// If the number does not allow the command, or if the operation is interrupted while it waits.
    pub(crate) fn check_out_session(&mut self, number: i64) -> Result<()> {
        let asked = NumberedCommand { number, part: self.options.part };
        while self.checked_out.is_none() {
            let Some(session) = self.connection.session.clone() else { return Ok(()) };
            self.checked_out = CheckedOut::take(&session, asked, self.service.transaction_context(), self)?;
            if self.checked_out.is_none() {
                // The session has just ended. It begins again, and the next round takes it.
                let sessions = &self.service.sessions;
                sessions.touch_again(&mut self.connection.session, session.id, self.service.world.clock.now())?;
            }
        }
        if let Some(transaction) = self.checked_out.as_ref().and_then(CheckedOut::transaction) {
            transaction.came_over(&self.connection.haste);
        }
        if asked.part == Some(TransactionPart::First) {
            self.note_transaction(number);
        }
        if let (Some(context), Some(unit)) = (self.context.get(), self.unit_shared()) {
            context.operation().join(unit);
        }
        Ok(())
    }

    /// Notes that the command has begun a transaction.
    fn note_transaction(&self, number: i64) {
        let Some(checked_out) = &self.checked_out else { return };
        let read_concern = self.request.body.get("readConcern").and_then(ValueRef::as_document);
        self.service.transactions.note_begin(Entry {
            session: Arc::clone(checked_out.session()),
            number,
            began: self.started(),
            read_concern: read_concern.map(DocumentRef::to_owned),
            connection: self.connection.id,
            client: self.connection.peer,
            owner: self.service.authority.owner(self.connection),
        });
    }

    /// The state that the read concern asks for; `None` for the present one.
    pub(crate) fn state_asked(&self) -> Option<StateAsked> {
        let concern = &self.options.read_concern;
        // A linearizable read of several members sees all that is written, and its reply waits until that is committed.
        let waits = concern.is_linearizable && self.service.is_of_several();
        let is_committed = concern.is_majority && !waits;
        let is_older = || is_committed && self.service.catalog.store().is_commit_held();
        concern.state.or_else(|| is_older().then_some(StateAsked::Committed))
    }

    /// Makes the command, or the transaction that it begins, read a past state.
    /// # Errors
    /// `SnapshotTooOld`, `SnapshotUnavailable`, `ReadConcernMajorityNotAvailableYet`; `CommandNotSupported` for the
    /// database `local`, which has no past states.
    pub(crate) fn read_past(&mut self, asked: StateAsked) -> Result<()> {
        let catalog = &self.service.catalog;
        let transaction = self.checked_out.as_ref().filter(|own| own.is_of_transaction()).and_then(CheckedOut::unit);
        if let Some(transaction) = transaction.as_ref().and_then(|unit| unit.downcast_ref::<Transaction>()) {
            return match asked {
                StateAsked::Present | StateAsked::Committed => Ok(()),
                StateAsked::At(time) => catalog.set_time_of(transaction, time, self),
            };
        }
        let is_local = self.request.database == Namespace::OPLOG_DATABASE;
        if is_local && asked == StateAsked::Committed {
            // The collections of `local` are the member's own: no rollback removes their writes.
            return Ok(());
        }
        if is_local {
            return Err(Failure::not_supported_yet("read concern snapshot for the database local"));
        }
        let (at, read) = catalog.read_past(asked, self)?;
        if let Some(context) = self.context.get() {
            context.operation().join(Arc::clone(&read) as _);
        }
        (self.outer_unit, self.state_at) = (Some(read as Arc<UnitOfWork>), at);
        Ok(())
    }

    /// Appends the time of the state that the command reads, if it reads a past one.
    pub(crate) fn write_state_time(&self, reply: &mut Writer<'_>) {
        if let Some(at) = self.state_at {
            reply.append("atClusterTime", at);
        }
    }

    pub(super) fn unit_shared(&self) -> Option<Arc<UnitOfWork>> {
        self.checked_out.as_ref().and_then(CheckedOut::unit).or_else(|| self.outer_unit.clone())
    }

    /// The command's retryable write, if it is one.
    pub(crate) fn retryable_write(&self) -> Option<&Arc<RetryableWrite>> {
        self.checked_out.as_ref().and_then(CheckedOut::write)
    }

    /// Whether the command is part of a transaction.
    pub(crate) fn is_of_transaction(&self) -> bool {
        self.checked_out.as_ref().is_some_and(CheckedOut::is_of_transaction)
    }

    /// The number of the transaction that the command is part of; `None` outside transactions.
    pub(crate) fn transaction_number(&self) -> Option<i64> {
        self.options.transaction_number.filter(|_| self.is_of_transaction())
    }

    /// Sets the fate of the transaction when the command ends, if the command is part of one.
    pub(crate) fn set_fate(&mut self, fate: Fate) {
        if let Some(checked_out) = &mut self.checked_out {
            checked_out.set_fate(fate);
        }
    }

    /// Commits the transaction that the command is part of.
    /// # Errors
    /// As `Transaction::commit`.
    pub(crate) fn commit_transaction(&mut self) -> Result<Option<Lsn>> {
        self.checked_out.as_mut().map_or(Ok(None), CheckedOut::commit)
    }

    /// Aborts the transaction that the command is part of.
    pub(crate) fn abort_transaction(&mut self) {
        if let Some(checked_out) = &mut self.checked_out {
            checked_out.abort();
        }
    }

    /// The wait after a conflict with another transaction, if waiting may help. `until` is the end of a wait that was
    /// begun before.
    pub(crate) fn wait_after_conflict(&self, until: Option<Instant>) -> Option<Conflict> {
        let transaction = self.checked_out.as_ref()?.transaction()?;
        let until = until.unwrap_or_else(|| self.started() + CONFLICT_WAIT_MAX);
        // A command that asked for the state at some time would read that state again, and conflict again.
        if matches!(self.options.read_concern.state, Some(StateAsked::At(_))) || self.now() >= until {
            return None;
        }
        let is_first = self.options.part == Some(TransactionPart::First);
        let comes_back = if is_first { Return::AtOnce } else { Return::Anew };
        let turn = transaction.turn_after_obstacle(comes_back, until)?;
        // Requests of other connections wait until this one has had its turn.
        self.connection.haste.set(true);
        let (news, stop) = (turn.bell().after(0), self.stop_bell());
        let stop = stop.after(stop.rings());
        Some(if is_first {
            // The command that is called before this one may never return.
            let until = until.min(self.now() + CONFLICT_LOOK);
            Conflict::Again(Await { news, stop, until, turn: None }, turn)
        } else {
            Conflict::Over(Await { news, stop, until, turn: Some(turn) })
        })
    }
}
