//! Inserts of one document or of a batch, as drivers send them: with the documents in a section of their own.

use super::{Answer, Assignment, Effect, Insertions, Moves, Operation, Requests};
use crate::database::Collections;
use bunko_bson::DocumentBuf;
use bunko_client::Reply;
use bunko_client::frame::{FrameWriter, ReplyMode};
use bunko_dataset::Dataset;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of bytes of documents in one insert: less than MongoDB's 48,000,000 bytes a message, and enough for
/// any batch.
const BATCH_BYTES_MAX: usize = 16 << 20;
const BATCH_MAX: u64 = 100_000;

/// Settings of the operation `insert`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Insert {
    /// Documents per insert command; fewer if they would exceed a command's limit.
    pub batch: u64,
}

impl Default for Insert {
    fn default() -> Self {
        Self { batch: 1 }
    }
}

impl Operation for Insert {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Inserts]
    }

    fn moves(&self) -> Moves {
        Moves::WholeDocuments
    }

    fn check(&self, _dataset: &Dataset) -> Result<(), String> {
        check_batch(self.batch)
    }

    fn start(&self, assignment: &Assignment<'_>) -> Result<Box<dyn Requests>, String> {
        Ok(Box::new(InsertRequests::new(assignment, self.batch)))
    }
}

pub(super) fn check_batch(batch: u64) -> Result<(), String> {
    if (1..=BATCH_MAX).contains(&batch) { Ok(()) } else { Err(format!("batch: {batch} is not in 1..{BATCH_MAX}")) }
}

pub(super) struct InsertRequests {
    dataset: Arc<Dataset>,
    insertions: Arc<Insertions>,
    collections: Collections,
    /// One command for each collection.
    commands: Vec<DocumentBuf>,
    mode: ReplyMode,
    batch: u64,
    /// Unsent rest of a batch that goes into several collections.
    rest: Option<Range<u64>>,
}

impl InsertRequests {
    /// `batch` must have been checked.
    pub fn new(assignment: &Assignment<'_>, batch: u64) -> Self {
        let command = |collection: &String| {
            DocumentBuf::new()
                .with("insert", collection)
                .with("ordered", true)
                .with("writeConcern", &assignment.write_concern.to_document())
                .with("$db", assignment.database)
        };
        Self {
            dataset: Arc::clone(assignment.dataset),
            insertions: Arc::clone(assignment.insertions),
            collections: assignment.collections,
            commands: assignment.collections.names().iter().map(command).collect(),
            rest: None,
            mode: assignment.reply_mode(),
            batch: batch.min((BATCH_BYTES_MAX / assignment.dataset.document_bytes()).max(1) as u64),
        }
    }
}

impl InsertRequests {
    /// Takes the numbers of the next batch, all in one collection.
    fn take(&mut self) -> Option<Range<u64>> {
        let numbers = self.rest.take().or_else(|| self.insertions.take(self.batch))?;
        let batch = self.collections.split(&numbers, |number| self.insertions.index(number));
        self.rest = Some(batch.end..numbers.end).filter(|rest| !rest.is_empty());
        Some(batch)
    }
}

/// A tag holds the first number in its upper 40 bits and the number of documents in its lower 24.
const COUNT_BITS: u32 = 24;

impl Requests for InsertRequests {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Option<u64> {
        let numbers = self.take()?;
        let collection = self.collections.of(self.insertions.index(numbers.start));
        let tag = numbers.start << COUNT_BITS | (numbers.end - numbers.start);
        let mut frame = FrameWriter::new(out, request_id, self.mode, self.commands[collection].as_ref());
        frame.sequence("documents", |out| {
            numbers.for_each(|number| self.dataset.write(self.insertions.index(number), out));
        });
        frame.finish().expect("a batch's bytes are limited");
        Some(tag)
    }

    fn sent(&mut self, tag: u64) -> u64 {
        let (first, count) = (tag >> COUNT_BITS, tag & ((1 << COUNT_BITS) - 1));
        self.insertions.acknowledge(first..first + count);
        count
    }

    fn on_reply(&mut self, tag: u64, reply: Reply<'_>) -> Result<Answer, String> {
        let (first, count) = (tag >> COUNT_BITS, tag & ((1 << COUNT_BITS) - 1));
        if reply.n as u64 != count {
            return Err(format!("insert of {count} documents answered n: {}", reply.n));
        }
        self.insertions.acknowledge(first..first + count);
        Ok(Answer::Done { documents: count })
    }
}
