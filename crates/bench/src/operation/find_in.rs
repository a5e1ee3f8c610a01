//! Finds several documents by their `_id`s, in random order: the fetch of experiment E4.

use super::reply_cursor::OpenReads;
use super::template::Template;
use super::{Answer, Assignment, Effect, Insertions, Moves, Operation, Requests};
use bunko_client::Reply;
use bunko_client::frame::{FrameWriter, ReplyMode};
use bunko_dataset::{Dataset, Distribution, KeyStream};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;

const IDS_MAX: u64 = 100_000;

/// Settings of the operation `find-in`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct FindIn {
    /// Ids in one request.
    pub ids: u64,
    /// Distribution of the documents that are read.
    pub keys: Distribution,
    /// Share of the collection after which the operation is complete.
    pub share: Option<f64>,
}

impl Default for FindIn {
    fn default() -> Self {
        Self { ids: 100, keys: Distribution::Uniform, share: None }
    }
}

/// Refuses a number of ids that no request can have.
pub(super) fn check_ids(ids: u64) -> Result<(), String> {
    if (1..=IDS_MAX).contains(&ids) { Ok(()) } else { Err(format!("ids: {ids} is not in 1..{IDS_MAX}")) }
}

impl FindIn {
    /// Number of ids in a request, at most the number of documents.
    fn ids(&self, documents: u64) -> u64 {
        self.ids.min(documents.max(1))
    }
}

impl Operation for FindIn {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Reads]
    }

    fn moves(&self) -> Moves {
        Moves::WholeDocuments
    }

    fn natural_requests(&self, documents: u64, _slots: u64) -> Option<u64> {
        super::requests_for_share(self.share, documents, self.ids(documents))
    }

    fn check(&self, _dataset: &Dataset) -> Result<(), String> {
        check_ids(self.ids)?;
        super::check_share(self.share)
    }

    fn start(&self, assignment: &Assignment<'_>) -> Result<Box<dyn Requests>, String> {
        let ids = self.ids(assignment.insertions.readable_count());
        Ok(Box::new(FindInRequests {
            dataset: Arc::clone(assignment.dataset),
            insertions: Arc::clone(assignment.insertions),
            command: Template::find_in(assignment, ids),
            keys: KeyStream::new(self.keys, assignment.seed, assignment.stream),
            reads: OpenReads::new(assignment),
            chosen: HashSet::with_capacity(ids as usize),
            ids: ids as usize,
        }))
    }
}

struct FindInRequests {
    dataset: Arc<Dataset>,
    insertions: Arc<Insertions>,
    command: Template,
    keys: KeyStream,
    reads: OpenReads,
    chosen: HashSet<u64>,
    ids: usize,
}

impl Requests for FindInRequests {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Option<u64> {
        let readable = self.insertions.readable_count();
        self.chosen.clear();
        for place in 0..self.ids {
            let mut number = self.keys.next(readable);
            // Each document once: a number that was already chosen is replaced by the next one.
            while !self.chosen.insert(number) {
                number = (number + 1) % readable;
            }
            self.command.set_id(place, &self.dataset.id(self.insertions.readable(number)));
        }
        let frame = FrameWriter::new(out, request_id, ReplyMode::Expected, self.command.command());
        frame.finish().expect("the ids are limited");
        Some(self.reads.begin(self.ids as u64))
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
