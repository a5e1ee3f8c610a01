//! The statements of a retryable write: their numbers, and which of them were done before.
//!
//! Source: MongoDB's specification of retryable writes for drivers; `stmtId` and `stmtIds` as its own tools send them.

use crate::invocation::Invocation;
use crate::service::Service;
use bunko_bson::{ValueRef, Writer};
use bunko_catalog::{Outcome, RetryableWrite, StatementNumbers};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::write::UpdateOutcome;
use bunko_request::fields::Fields;
use bunko_session::Halt;
use bunko_store::Lsn;
use std::cell::Cell;
use std::sync::Arc;

/// State for doing each statement of a command only once. Empty if the command is not a retryable write.
pub(crate) struct Retries<'i> {
    write: Option<Arc<RetryableWrite>>,
    service: &'i Service,
    ids: StatementNumbers,
    retried: Vec<i32>,
    lsn: Option<Lsn>,
    /// Whether a failpoint asked for closing the connection instead of a reply.
    closes_connection: Cell<bool>,
}

impl<'i> Retries<'i> {
    /// For a command with `count` statements.
    /// # Errors
    /// `InvalidLength` if the number of statement ids differs from `count`; `InvalidOptions`, `TypeMismatch`.
    pub(crate) fn of(invocation: &Invocation<'i>, count: usize) -> Result<Self> {
        let write = invocation.retryable_write().cloned();
        if write.is_some() && invocation.service.fail_points.is_any_on() {
            // A command that started again on its own thread would meet each statement's failpoint twice.
            invocation.operation().leave_shared_thread()?;
        }
        // Statement ids matter only in a retryable write, but MongoDB parses them in any command.
        let ids = parse(invocation, count)?;
        let ids = if write.is_some() { ids } else { StatementNumbers::From(0) };
        let (retried, closes_connection) = (Vec::new(), Cell::new(false));
        Ok(Self { write, service: invocation.service, ids, retried, lsn: None, closes_connection })
    }

    /// Refuses statements for several documents, which may be half done when the reply is lost. `asked` is the option
    /// to blame.
    /// # Errors
    /// `InvalidOptions`.
    pub(crate) fn refuse_many(&self, mut are_many: impl Iterator<Item = bool>, asked: &str) -> Result<()> {
        if self.write.is_some() && are_many.any(|is_many| is_many) {
            let message = format!("Cannot use (or request) retryable writes with {asked}");
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        Ok(())
    }

    /// Looks up the outcome of the statement at that position, and notes the statement as retried; `None` if it was not
    /// done.
    /// # Errors
    /// Errors of the storage.
    pub(crate) fn did(&mut self, position: usize) -> Result<Option<Outcome>> {
        let Some(write) = &self.write else { return Ok(None) };
        let id = self.id(position);
        let Some((outcome, lsn)) = write.outcome_of(&self.service.catalog, id)? else { return Ok(None) };
        self.retried.push(id);
        self.lsn = self.lsn.max(lsn);
        Ok(Some(outcome))
    }

    /// Begins the statement at that position.
    /// # Errors
    /// The failure that a failpoint injects.
    pub(crate) fn begin(&self, position: usize) -> Result<()> {
        let Some(write) = &self.write else { return Ok(()) };
        self.meet_failpoint().map_or(Ok(()), Err)?;
        write.begin(self.id(position));
        Ok(())
    }

    /// As [`Self::begin`], for an update. Returns the outcome if the statement was done before.
    /// # Errors
    /// As [`Self::did`] and [`Self::begin`]; `InvalidOptions` if the statement was not an update.
    pub(crate) fn begin_update(&mut self, position: usize) -> Result<Option<UpdateOutcome>> {
        Ok(match self.did(position)? {
            None => {
                self.begin(position)?;
                None
            }
            Some(Outcome::One) => Some(UpdateOutcome { matched: 1, modified: 1, upserted: None }),
            Some(Outcome::Upserted(id)) => Some(UpdateOutcome { upserted: Some(id), ..UpdateOutcome::default() }),
            Some(Outcome::Returned { .. }) => return Err(other_kind("update")),
        })
    }

    /// As [`Self::begin`], for a delete. Returns the number of deleted documents if the statement was done before.
    /// # Errors
    /// As [`Self::did`] and [`Self::begin`]; `InvalidOptions` if the statement was not a delete.
    pub(crate) fn begin_delete(&mut self, position: usize) -> Result<Option<u64>> {
        Ok(match self.did(position)? {
            None => {
                self.begin(position)?;
                None
            }
            Some(Outcome::One) => Some(1),
            Some(Outcome::Upserted(_) | Outcome::Returned { .. }) => return Err(other_kind("delete")),
        })
    }

    /// Begins inserts of the documents at these positions among the statements. If a failpoint fires, returns how many
    /// documents to insert before it, and the failure of the next one.
    pub(crate) fn begin_inserts(&self, positions: impl Iterator<Item = usize>) -> Option<(usize, Failure)> {
        let write = self.write.as_ref()?;
        let (mut ids, mut refused) = (StatementNumbers::Each(Vec::new()), None);
        for (count, position) in positions.enumerate() {
            if let Some(failure) = self.meet_failpoint() {
                refused = Some((count, failure));
                break;
            }
            push(&mut ids, count, self.id(position));
        }
        write.begin_inserts(ids);
        refused
    }

    fn id(&self, position: usize) -> i32 {
        self.ids.at(position).expect("there are as many as statements")
    }

    fn meet_failpoint(&self) -> Option<Failure> {
        let trouble = self.service.fail_points.meet_statement()?;
        self.closes_connection.set(self.closes_connection.get() | trouble.closes_connection);
        trouble.failure
    }

    /// Call when all statements have been done.
    /// # Errors
    /// [`Halt::ClosesConnection`] if a failpoint asked for it.
    pub(crate) fn end(&self) -> Result<(), Halt> {
        if self.closes_connection.get() { Err(Halt::ClosesConnection) } else { Ok(()) }
    }

    /// The log record that must be durable before statements done earlier are acknowledged; `None` if there are none.
    pub(crate) fn written(&self) -> Option<Lsn> {
        self.lsn
    }

    /// Appends the ids of statements that had been done before.
    pub(crate) fn write(&self, reply: &mut Writer<'_>) {
        if self.retried.is_empty() {
            return;
        }
        reply.begin_array("retriedStmtIds");
        for (index, id) in self.retried.iter().enumerate() {
            reply.push(index, *id);
        }
        reply.end();
    }

    /// Appends the id of a statement that had been done before, for a command with one statement.
    pub(crate) fn write_one(&self, reply: &mut Writer<'_>) {
        if let [id] = self.retried[..] {
            reply.append("retriedStmtId", id);
        }
    }
}

/// Appends the id of the statement at position `count`.
fn push(numbers: &mut StatementNumbers, count: usize, id: i32) {
    match numbers {
        StatementNumbers::Each(_) if count == 0 => *numbers = StatementNumbers::From(id),
        StatementNumbers::From(first) if first.wrapping_add(count as i32) == id => {}
        StatementNumbers::From(first) => {
            let mut each: Vec<i32> = (0..count).map(|before| first.wrapping_add(before as i32)).collect();
            each.push(id);
            *numbers = StatementNumbers::Each(each);
        }
        StatementNumbers::Each(each) => each.push(id),
    }
}

/// `stmtId` or `stmtIds` of a command with `count` statements.
/// # Errors
/// As [`Retries::of`].
pub(crate) fn parse(fields: &Fields<'_>, count: usize) -> Result<StatementNumbers> {
    let whole = |name: &str, value: ValueRef<'_>| match value {
        ValueRef::Int32(id) => Ok(id),
        other => Err(fields.mismatch(name, other, "type 'int'")),
    };
    let first = fields.field("stmtId").map(|id| whole("stmtId", id)).transpose()?;
    let Some(each) = fields.array("stmtIds")? else { return Ok(StatementNumbers::From(first.unwrap_or(0))) };
    if first.is_some() {
        let message = format!("May not specify both stmtId and stmtIds in {} command", fields.command);
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    let each = each.iter().map(|id| whole("stmtIds", id)).collect::<Result<Vec<_>>>()?;
    if each.len() != count {
        let message = format!(
            "Number of statement ids must match the number of batch entries. Got {} statement ids but {count} batch \
             entries.",
            each.len()
        );
        return Err(Failure::new(ErrorCode::INVALID_LENGTH, message));
    }
    Ok(StatementNumbers::Each(each))
}

/// The error for a retried statement of another kind than the one that was done.
pub(crate) fn other_kind(command: &str) -> Failure {
    let message = format!("the statement was retried as {command}, and was of another kind when it was done");
    Failure::new(ErrorCode::INVALID_OPTIONS, message)
}
