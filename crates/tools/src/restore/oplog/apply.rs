//! Sending operations: many in one `applyOps`.

use super::super::run::Run;
use crate::progress::Activity;
use crate::{Link, ToolError};
use bunko_bson::{ArrayBuf, DocumentBuf, Timestamp};
use bunko_client::CommandError;

/// Operations in one command, at most.
const OPERATIONS_MAX: usize = 1000;
/// Bytes of operations in one command, unless a single one is longer: they stand in one document.
const OPERATIONS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// MongoDB's `NamespaceNotFound`, `IndexNotFound` and `NamespaceExists`: the dump was made while this happened, and has
/// its result already.
const ALREADY_DONE: [i32; 3] = [26, 27, CommandError::NAMESPACE_EXISTS];

/// Gathers operations and applies them in order.
///
/// One link and one command at a time: operations on different documents could go over several, by `_id`, between two
/// flushes.
pub(super) struct Applier<'r> {
    run: &'r Run<'r>,
    link: Box<dyn Link>,
    operations: ArrayBuf,
    bytes: usize,
    first_at: Timestamp,
    last_at: Timestamp,
    applied: u64,
}

impl<'r> Applier<'r> {
    pub(super) fn new(run: &'r Run<'r>) -> Result<Self, ToolError> {
        let zero = Timestamp { seconds: 0, increment: 0 };
        let link = run.connect("")?;
        Ok(Self { run, link, operations: ArrayBuf::new(), bytes: 0, first_at: zero, last_at: zero, applied: 0 })
    }

    /// Operations that were applied.
    pub(super) fn applied(&self) -> u64 {
        self.applied
    }

    /// Adds one operation behind the others.
    /// # Errors
    /// As [`Self::flush`].
    pub(super) fn add(&mut self, at: Timestamp, operation: &DocumentBuf) -> Result<(), ToolError> {
        let length = operation.as_ref().len_bytes();
        if self.operations.count() >= OPERATIONS_MAX || self.bytes + length > OPERATIONS_BYTES_MAX {
            self.flush()?;
        }
        if self.operations.count() == 0 {
            self.first_at = at;
        }
        self.last_at = at;
        self.bytes += length;
        self.operations.push(operation);
        Ok(())
    }

    /// Applies what was gathered.
    /// # Errors
    /// What the server refuses, with the time of the operations; what happened to the connection.
    pub(super) fn flush(&mut self) -> Result<(), ToolError> {
        let count = self.operations.count();
        if count == 0 {
            return Ok(());
        }
        let concern = self.run.options.write_concern.to_document();
        let command = DocumentBuf::new().with("applyOps", &self.operations).with("writeConcern", &concern);
        // Over a new link the same operations are applied once more, which changes nothing.
        let reply = self.run.command(&mut self.link, Activity::Server, ("admin", "$cmd"), &command)?;
        match reply {
            Err(refusal) if count > 1 || !ALREADY_DONE.contains(&refusal.code) => return Err(self.refused(&refusal)),
            _ => {}
        }
        self.applied += count as u64;
        self.operations = ArrayBuf::new();
        self.bytes = 0;
        Ok(())
    }

    fn refused(&self, refusal: &CommandError) -> ToolError {
        let shown = |at: Timestamp| format!("{}:{}", at.seconds, at.increment);
        let times = match self.operations.count() {
            1 => shown(self.first_at),
            _ => format!("{} to {}", shown(self.first_at), shown(self.last_at)),
        };
        ToolError::Failed(format!("the server refuses to apply the oplog entries at {times}: {refusal}"))
    }
}
