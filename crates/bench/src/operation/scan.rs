//! Reads the whole collection, in natural order, over one cursor.

use super::reply_cursor::OpenReads;
use super::{Answer, Assignment, Effect, Insertions, Moves, Operation, Requests};
use bunko_bson::DocumentBuf;
use bunko_client::Reply;
use bunko_client::frame::{FrameWriter, ReplyMode};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Settings of the operation `scan`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Scan {
    /// Maximum number of documents in one batch; `None` leaves it to the server.
    pub batch_size: Option<u32>,
}

impl Operation for Scan {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Reads]
    }

    fn moves(&self) -> Moves {
        Moves::WholeDocuments
    }

    /// One scan on each connection.
    fn natural_requests(&self, _documents: u64, slots: u64) -> Option<u64> {
        Some(slots)
    }

    fn start(&self, assignment: &Assignment<'_>) -> Result<Box<dyn Requests>, String> {
        let mut command = DocumentBuf::new().with("find", assignment.collection).with("filter", &DocumentBuf::new());
        if let Some(batch_size) = self.batch_size {
            command.append("batchSize", i32::try_from(batch_size).map_err(|_| "batch-size: too large")?);
        }
        command.append("$db", assignment.database);
        let insertions = Arc::clone(assignment.insertions);
        Ok(Box::new(ScanRequests { command, insertions, reads: OpenReads::new(assignment) }))
    }
}

struct ScanRequests {
    command: DocumentBuf,
    insertions: Arc<Insertions>,
    reads: OpenReads,
}

impl Requests for ScanRequests {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Option<u64> {
        let frame = FrameWriter::new(out, request_id, ReplyMode::Expected, self.command.as_ref());
        frame.finish().expect("a short command");
        Some(self.reads.begin(self.insertions.readable_count()))
    }

    fn on_reply(&mut self, tag: u64, reply: Reply<'_>) -> Result<Answer, String> {
        self.reads.on_reply(tag, reply)
    }

    fn follow(&mut self, step: u64, request_id: i32, out: &mut Vec<u8>) -> u64 {
        self.reads.follow(step, request_id, out)
    }

    fn on_failure(&mut self, tag: u64) {
        self.reads.forget(tag);
    }
}
