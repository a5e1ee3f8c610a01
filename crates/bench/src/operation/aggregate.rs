//! An aggregation pipeline.

use super::reply_cursor::OpenReads;
use super::{Answer, Assignment, Effect, Insertions, Operation, Requests};
use bunko_bson::{ArrayBuf, DocumentBuf, Value, extended_json};
use bunko_client::Reply;
use bunko_client::frame::{FrameWriter, ReplyMode};
use bunko_dataset::Dataset;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Settings of the operation `aggregate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Aggregate {
    /// An array of stages as Extended JSON.
    pub pipeline: String,
    /// Minimum number of documents that it must return.
    #[serde(default)]
    pub expect_documents: u64,
    /// The documents that the cost of a run is divided by.
    #[serde(default)]
    pub per: Per,
}

/// The documents that a pipeline's cost is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// The documents that it returns.
    #[default]
    Result,
    /// The documents of the collection, which it reads.
    Input,
}

impl Aggregate {
    fn parsed(&self) -> Result<ArrayBuf, String> {
        match extended_json::parse_value(&self.pipeline) {
            Ok(Value::Array(stages)) => Ok(stages),
            Ok(_) => Err("pipeline: it is not an array of stages".into()),
            Err(error) => Err(format!("pipeline: {error}")),
        }
    }
}

impl Operation for Aggregate {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Reads]
    }

    fn natural_requests(&self, _documents: u64, slots: u64) -> Option<u64> {
        Some(slots)
    }

    fn check(&self, _dataset: &Dataset) -> Result<(), String> {
        self.parsed().map(|_| ())
    }

    fn start(&self, assignment: &Assignment<'_>) -> Result<Box<dyn Requests>, String> {
        let command = DocumentBuf::new()
            .with("aggregate", assignment.collection)
            .with("pipeline", &self.parsed()?)
            .with("cursor", &DocumentBuf::new())
            .with("$db", assignment.database);
        let reads = OpenReads::new(assignment);
        let inputs = match self.per {
            Per::Result => None,
            Per::Input => Some(Arc::clone(assignment.insertions)),
        };
        Ok(Box::new(AggregateRequests { command, at_least: self.expect_documents, reads, inputs }))
    }
}

struct AggregateRequests {
    command: DocumentBuf,
    at_least: u64,
    reads: OpenReads,
    /// Counts the collection's documents, which stand for the results; `None` to count results.
    inputs: Option<Arc<Insertions>>,
}

impl Requests for AggregateRequests {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Option<u64> {
        let frame = FrameWriter::new(out, request_id, ReplyMode::Expected, self.command.as_ref());
        frame.finish().expect("a scenario's pipeline is short");
        Some(self.reads.begin(self.at_least))
    }

    fn on_reply(&mut self, tag: u64, reply: Reply<'_>) -> Result<Answer, String> {
        let answer = self.reads.on_reply(tag, reply)?;
        let Some(inputs) = &self.inputs else { return Ok(answer) };
        Ok(match answer {
            Answer::Done { .. } => Answer::Done { documents: inputs.readable_count() },
            Answer::More { step, .. } => Answer::More { documents: 0, step },
        })
    }

    fn follow(&mut self, step: u64, request_id: i32, out: &mut Vec<u8>) -> u64 {
        self.reads.follow(step, request_id, out)
    }

    fn on_failure(&mut self, tag: u64) {
        self.reads.forget(tag);
    }
}
