//! Memory for the reply with a cursor's batch, and the size limit of replies.
//!
//! Short batches draw no memory. A longer batch draws as it grows. If there is no memory, it ends with the documents
//! that it has, and the others come with the next `getMore`. A batch waits for memory only if it may not end yet: if
//! its first document is long, or if no other batch follows.

use crate::invocation::Invocation;
use bunko_bson::MAX_INTERNAL_DOCUMENT_BYTES;
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{Draw, Purpose, RunOn, ServerMemory};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a batch that draw no memory.
const FREE_BYTES: usize = 256 * 1024;
/// Bytes that a batch draws at a time.
const STEP_BYTES: usize = 1 << 20;
/// How long a batch that may not end waits for more memory after it has drawn some, for which others may wait. Clients
/// that do not read their replies are disconnected sooner, so there should be memory by then; otherwise the batch
/// continues, and its reply is counted beyond the limit.
const PATIENCE: Duration = Duration::from_secs(10);

/// Refuses a reply that exceeds the size limit of a document.
/// # Errors
/// `BSONObjectTooLarge`.
pub(crate) fn check_reply_bytes(bytes: usize) -> Result<()> {
    if bytes <= MAX_INTERNAL_DOCUMENT_BYTES {
        return Ok(());
    }
    let message =
        format!("the reply has {bytes} bytes. Size must be between 0 and {MAX_INTERNAL_DOCUMENT_BYTES}(16MB)");
    Err(Failure::new(ErrorCode::BSON_OBJECT_TOO_LARGE, message))
}

/// The reaction of a batch when there is no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// The batch ends: the cursor stays open.
    EndsBatch,
    /// The batch waits for memory, because no other batch follows, or it has no document yet.
    Waits,
}

/// The memory of one batch.
pub(crate) struct ReplyRoom<'i, 'a> {
    invocation: &'i Invocation<'a>,
    is_only: bool,
    drawn: Option<Draw>,
    bytes: usize,
    /// The time until which the batch waits for memory once it has drawn some. Set by the first such wait.
    patience: Option<Instant>,
}

impl<'i, 'a> ReplyRoom<'i, 'a> {
    /// Memory for a batch. `is_only` says that no other batch follows.
    pub fn new(invocation: &'i Invocation<'a>, is_only: bool) -> Self {
        Self { invocation, is_only, drawn: None, bytes: FREE_BYTES, patience: None }
    }

    /// Draws memory for the first document of a collection with long documents, before a thread of its own reads it:
    /// the document is in memory before its length is known.
    /// # Errors
    /// As [`Self::grow`].
    pub fn begin(&mut self, namespace: &Namespace) -> Result<()> {
        if self.invocation.run_on != RunOn::OwnThread {
            return Ok(());
        }
        let Some(collection) = self.invocation.collection(namespace) else { return Ok(()) };
        self.grow(usize::try_from(collection.usual_document_bytes()).unwrap_or(0), 0).map(drop)
    }

    /// Bytes that the batch may have before the next draw.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn memory(&self) -> &Arc<ServerMemory> {
        &self.invocation.service.facts.memory_limits.server
    }

    /// Counts the documents of a finished batch.
    pub fn note_returned(&self, documents: u64) {
        self.invocation.service.counters.note_returned(documents);
    }

    /// Whether memory is short, so that batches should be short.
    pub fn is_short(&self) -> bool {
        self.memory().is_short()
    }

    /// Draws memory for a batch with `documents` documents, which would have `bytes` bytes with the next. Returns
    /// whether there is memory.
    /// # Errors
    /// As [`bunko_operation::OperationContext::check`] for a batch that waits; [`bunko_errors::Failure::too_long`] on a
    /// thread that is not its own.
    pub fn grow(&mut self, bytes: usize, documents: u64) -> Result<bool> {
        let missing = bytes.saturating_sub(self.bytes);
        if missing == 0 {
            return Ok(true);
        }
        let shortage = if documents == 0 || self.is_only { Shortage::Waits } else { Shortage::EndsBatch };
        let step = missing.next_multiple_of(STEP_BYTES) as u64;
        let draw = match self.memory().draw(step, Purpose::Reply) {
            Some(draw) => draw,
            None if shortage == Shortage::EndsBatch => return Ok(false),
            None => self.wait_for(step)?,
        };
        self.invocation.operation().prepay(step);
        self.bytes += step as usize;
        match &mut self.drawn {
            Some(drawn) => drawn.join(draw),
            none => *none = Some(draw),
        }
        Ok(true)
    }

    fn wait_for(&mut self, bytes: u64) -> Result<Draw> {
        let operation = self.invocation.operation();
        if operation.run_on() != RunOn::OwnThread && operation.patience_ends().is_some() {
            operation.leave_shared_thread()?;
        }
        let mut drawing = self.memory().draw_in_turn(bytes, Purpose::Reply);
        let end = match &self.drawn {
            Some(_) => Some(*self.patience.get_or_insert_with(|| self.invocation.now() + PATIENCE)),
            None => None,
        };
        // The thread may serve other connections.
        while self.invocation.run_on == RunOn::OwnThread && end.is_none_or(|end| self.invocation.now() < end) {
            let until = operation.may_wait_until()?;
            if let Some(draw) = drawing.wait_until(end.map_or(until, |end| until.min(end)), operation.clock()) {
                return Ok(draw);
            }
        }
        Ok(self.memory().count(bytes, Purpose::Reply))
    }

    /// The draw, adjusted to the length of the reply.
    pub fn into_draw(self, reply_bytes: usize) -> Option<Draw> {
        let mut drawn = self.drawn?;
        drawn.set(reply_bytes as u64);
        Some(drawn)
    }
}
