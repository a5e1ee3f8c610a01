//! The statements of a retryable write: which numbers they have, and which were done before.
//!
//! Source: MongoDB's specification of retryable writes for drivers; `stmtId` and `stmtIds` as its own tools send them.

use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::service::Service;
use bunko_bson::{ValueRef, Writer, number};
use bunko_catalog::{Outcome, RetryableWrite};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_store::Lsn;
use std::cell::Cell;
use std::sync::Arc;

/// What a command must know to do each of its statements once; nothing where it is not to be retried.
pub(crate) struct Retries<'i> {
    write: Option<Arc<RetryableWrite>>,
    service: &'i Service,
    ids: StatementIds,
    retried: Vec<i32>,
    lsn: Option<Lsn>,
    /// Whether a failpoint asked for it instead of a reply.
    closes_connection: Cell<bool>,
}

/// The numbers of the statements, by position.
enum StatementIds {
    From(i32),
    Each(Vec<i32>),
}

impl<'i> Retries<'i> {
    /// Of a command with so many statements.
    /// # Errors
    /// `InvalidOptions` for other numbers of statements than there are statements; `TypeMismatch`.
    pub(crate) fn of(invocation: &Invocation<'i>, count: usize) -> Result<Self> {
        let write = invocation.retryable_write().cloned();
        // Without a number that of a statement means nothing, as in MongoDB.
        let ids = if write.is_some() { StatementIds::parse(invocation, count)? } else { StatementIds::From(0) };
        let (retried, closes_connection) = (Vec::new(), Cell::new(false));
        Ok(Self { write, service: invocation.service, ids, retried, lsn: None, closes_connection })
    }

    /// Refuses statements for many documents, of which a part may be done when the reply is lost; `asked` is what asks for
    /// them.
    /// # Errors
    /// `InvalidOptions`.
    pub(crate) fn refuse_many(&self, mut are_many: impl Iterator<Item = bool>, asked: &str) -> Result<()> {
        if self.write.is_some() && are_many.any(|is_many| is_many) {
            let message = format!("Cannot use (or request) retryable writes with {asked}");
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        Ok(())
    }

    /// What the statement at that position answered when it was done before.
    /// # Errors
    /// Those of the storage.
    pub(crate) fn did(&mut self, position: usize) -> Result<Option<Outcome>> {
        let Some(write) = &self.write else { return Ok(None) };
        let id = self.ids.at(position);
        let Some((outcome, lsn)) = write.outcome_of(&self.service.catalog, id)? else { return Ok(None) };
        self.retried.push(id);
        self.lsn = self.lsn.max(lsn);
        Ok(Some(outcome))
    }

    /// The statement at that position comes next.
    /// # Errors
    /// What a failpoint says.
    pub(crate) fn begin(&self, position: usize) -> Result<()> {
        let Some(write) = &self.write else { return Ok(()) };
        self.meet_failpoint().map_or(Ok(()), Err)?;
        write.begin(self.ids.at(position));
        Ok(())
    }

    /// Documents come next whose positions among the statements are these. How many of them are to be inserted, and what the
    /// next one fails with, if a failpoint says so.
    pub(crate) fn begin_inserts(&self, positions: impl Iterator<Item = usize>) -> Option<(usize, Failure)> {
        let write = self.write.as_ref()?;
        let (mut ids, mut refused) = (Vec::new(), None);
        for (count, position) in positions.enumerate() {
            if let Some(failure) = self.meet_failpoint() {
                refused = Some((count, failure));
                break;
            }
            ids.push(self.ids.at(position));
        }
        write.begin_inserts(ids);
        refused
    }

    fn meet_failpoint(&self) -> Option<Failure> {
        let trouble = self.service.fail_points.meet_statement(&self.service.world)?;
        self.closes_connection.set(self.closes_connection.get() | trouble.closes_connection);
        trouble.failure
    }

    /// All statements were done that are to be done.
    /// # Errors
    /// [`Halt::ClosesConnection`] where a failpoint asked for it.
    pub(crate) fn end(&self) -> Result<(), Halt> {
        if self.closes_connection.get() { Err(Halt::ClosesConnection) } else { Ok(()) }
    }

    /// The record that an acknowledgement of what was done before waits for.
    pub(crate) fn written(&self) -> Option<Lsn> {
        self.lsn
    }

    /// Says which statements had been done before.
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

    /// The one statement that had been done before, for a command that has no more.
    pub(crate) fn write_one(&self, reply: &mut Writer<'_>) {
        if let [id] = self.retried[..] {
            reply.append("retriedStmtId", id);
        }
    }
}

impl StatementIds {
    fn parse(invocation: &Invocation<'_>, count: usize) -> Result<Self> {
        let whole = |name: &str, value: ValueRef<'_>| {
            let id = number::as_i64_exact(value).and_then(|id| i32::try_from(id).ok());
            id.ok_or_else(|| invocation.mismatch(name, value, "type 'int'"))
        };
        let first = invocation.field("stmtId").map(|id| whole("stmtId", id)).transpose()?;
        let Some(each) = invocation.array("stmtIds")? else { return Ok(Self::From(first.unwrap_or(0))) };
        if first.is_some() {
            let message = format!("May not specify both stmtId and stmtIds in {} command", invocation.command.name);
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        let each = each.iter().map(|id| whole("stmtIds", id)).collect::<Result<Vec<_>>>()?;
        if each.len() != count {
            let message = format!(
                "Number of statement ids must match the number of batch entries. Got {} statement ids but {count} batch \
                 entries.",
                each.len()
            );
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        Ok(Self::Each(each))
    }

    fn at(&self, position: usize) -> i32 {
        match self {
            Self::From(first) => first.wrapping_add(position as i32),
            Self::Each(each) => each[position],
        }
    }
}

/// The refusal of a statement that was another kind of statement when it was done.
pub(crate) fn other_kind(command: &str) -> Failure {
    let message = format!("the statement was retried as {command}, and was of another kind when it was done");
    Failure::new(ErrorCode::INVALID_OPTIONS, message)
}
