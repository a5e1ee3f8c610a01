//! Finds one document by its `_id`.

use super::template::Template;
use super::{Answer, Assignment, Effect, Insertions, Moves, Operation, Requests};
use bunko_bson::{ArrayRef, DocumentBuf, ValueRef};
use bunko_client::Reply;
use bunko_client::frame::{FrameWriter, ReplyMode};
use bunko_dataset::{Dataset, Distribution, Id, KeyStream};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Settings of the operation `find`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Find {
    /// Distribution of the documents that are read.
    pub keys: Distribution,
}

impl Operation for Find {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Reads]
    }

    fn moves(&self) -> Moves {
        Moves::WholeDocuments
    }

    fn start(&self, assignment: &Assignment<'_>) -> Result<Box<dyn Requests>, String> {
        Ok(Box::new(FindRequests::new(assignment, self.keys)))
    }
}

pub(super) struct FindRequests {
    dataset: Arc<Dataset>,
    insertions: Arc<Insertions>,
    command: Template,
    keys: KeyStream,
}

impl FindRequests {
    pub fn new(assignment: &Assignment<'_>, keys: Distribution) -> Self {
        let placeholder = Id::placeholder(assignment.dataset.id(0).kind());
        let command = DocumentBuf::new()
            .with("find", assignment.collection)
            .with("filter", &DocumentBuf::new().with("_id", placeholder.as_value()))
            .with("limit", 1_i32)
            .with("singleBatch", true)
            .with("$db", assignment.database);
        Self {
            dataset: Arc::clone(assignment.dataset),
            insertions: Arc::clone(assignment.insertions),
            command: Template::new(command, &placeholder),
            keys: KeyStream::new(keys, assignment.seed, assignment.stream),
        }
    }

    /// Chooses the place in the dataset of a document to read.
    pub fn choose(&mut self) -> u64 {
        self.insertions.readable(self.keys.next(self.insertions.readable_count()))
    }

    /// Appends a request for the document at a place.
    pub fn ask(&mut self, index: u64, request_id: i32, out: &mut Vec<u8>) {
        let command = self.command.set_id(0, &self.dataset.id(index)).command();
        FrameWriter::new(out, request_id, ReplyMode::Expected, command).finish().expect("a short command");
    }
}

/// Checks the reply to a find that must return one document.
pub(super) fn found_one(reply: Reply<'_>) -> Result<Answer, String> {
    let cursor = reply.document.get("cursor").and_then(ValueRef::as_document);
    let batch = cursor.and_then(|cursor| cursor.get("firstBatch")?.as_array());
    match batch.map_or(0, ArrayRef::count) {
        1 => Ok(Answer::Done { documents: 1 }),
        documents => Err(format!("find returned {documents} documents, not 1")),
    }
}

impl Requests for FindRequests {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Option<u64> {
        let index = self.choose();
        self.ask(index, request_id, out);
        Some(0)
    }

    fn on_reply(&mut self, _tag: u64, reply: Reply<'_>) -> Result<Answer, String> {
        found_one(reply)
    }
}
