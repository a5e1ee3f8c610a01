//! Sends operations: many in one `applyOps`.

use super::super::run::Run;
use crate::progress::Activity;
use crate::{Link, ToolError};
use bunko_bson::{ArrayBuf, DocumentBuf, Timestamp, ValueRef};
use bunko_client::CommandError;

/// Operations in one command, at most.
const OPERATIONS_MAX: usize = 1000;
/// Bytes of operations in one command, unless a single one is longer: they are in one document.
const OPERATIONS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// MongoDB's `NamespaceNotFound`, `IndexNotFound` and `NamespaceExists`: the operation happened while the dump was
/// made, and the dump has its result already.
const OVERTAKEN: [i32; 3] = [26, 27, CommandError::NAMESPACE_EXISTS];
/// MongoDB's `UnknownError`. A server returns it, among other cases, for the update of a document that does not exist.
const UNKNOWN_ERROR: i32 = 8;

/// Whether the operation may be refused because the dump already contains the result of later operations.
fn is_overtaken(operation: ValueRef<'_>, refusal: &CommandError) -> bool {
    let kind = operation.as_document().and_then(|operation| operation.get("op")).and_then(ValueRef::as_str);
    OVERTAKEN.contains(&refusal.code) || refusal.code == UNKNOWN_ERROR && kind == Some("u")
}

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

    /// Adds one operation after the others.
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

    /// Applies the gathered operations.
    /// # Errors
    /// The server's refusal, with the time of the operations; the error of the connection.
    pub(super) fn flush(&mut self) -> Result<(), ToolError> {
        let count = self.operations.count();
        if count == 0 {
            return Ok(());
        }
        let operations = std::mem::take(&mut self.operations);
        match self.send(&operations)? {
            Err(refusal) if operations.as_ref().iter().any(|operation| is_overtaken(operation, &refusal)) => {
                // A single refused operation is overtaken, and is skipped. If there are several, the others must
                // still be applied.
                if count > 1 {
                    self.apply_each(&operations)?;
                }
            }
            Err(refusal) => return Err(self.refused(count, &refusal)),
            Ok(_) => {}
        }
        self.applied += count as u64;
        self.bytes = 0;
        Ok(())
    }

    /// Applies operations one by one, and skips those that later ones have overtaken. Applying an operation again
    /// changes nothing.
    fn apply_each(&mut self, operations: &ArrayBuf) -> Result<(), ToolError> {
        for operation in operations.as_ref().iter() {
            let one: ArrayBuf = [operation].into_iter().collect();
            match self.send(&one)? {
                Err(refusal) if !is_overtaken(operation, &refusal) => {
                    return Err(self.refused(operations.count(), &refusal));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn send(&mut self, operations: &ArrayBuf) -> Result<Result<DocumentBuf, CommandError>, ToolError> {
        let concern = self.run.options.write_concern.to_document();
        let command = DocumentBuf::new().with("applyOps", operations).with("writeConcern", &concern);
        // If the link breaks, the same operations are applied once more over a new one, which changes nothing.
        self.run.command(&mut self.link, Activity::Server, ("admin", "$cmd"), &command)
    }

    fn refused(&self, count: usize, refusal: &CommandError) -> ToolError {
        let shown = |at: Timestamp| format!("{}:{}", at.seconds, at.increment);
        let times = match count {
            1 => shown(self.first_at),
            _ => format!("{} to {}", shown(self.first_at), shown(self.last_at)),
        };
        ToolError::Failed(format!("the server refuses to apply the oplog entries at {times}: {refusal}"))
    }
}
