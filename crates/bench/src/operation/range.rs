//! Reads documents that follow one another in the order of `_id`.

use super::reply_cursor::OpenReads;
use super::template::Template;
use super::{Answer, Assignment, Effect, Insertions, Moves, Operation, Requests};
use bunko_bson::DocumentBuf;
use bunko_client::Reply;
use bunko_client::frame::{FrameWriter, ReplyMode};
use bunko_dataset::{Dataset, Distribution, Id, KeyStream};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const LIMIT_MAX: u32 = 1_000_000;

/// Settings of the operation `range`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Range {
    /// Maximum number of documents in one request.
    pub limit: u32,
    /// Whether every request asks for `limit` documents, or for a random number from 1 to `limit`.
    pub length: Length,
    /// Distribution of the first documents of requests.
    pub keys: Distribution,
    /// Share of the collection after which the operation is complete.
    pub share: Option<f64>,
}

/// Number of documents in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// Always the limit.
    Constant,
    /// A random number from 1 to the limit.
    Uniform,
}

impl Default for Range {
    fn default() -> Self {
        Self { limit: 100, length: Length::Constant, keys: Distribution::Uniform, share: None }
    }
}

impl Range {
    fn limit(&self, documents: u64) -> u32 {
        u64::from(self.limit).min(documents.max(1)) as u32
    }
}

impl Operation for Range {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Reads]
    }

    fn moves(&self) -> Moves {
        Moves::WholeDocuments
    }

    fn natural_requests(&self, documents: u64, _slots: u64) -> Option<u64> {
        super::requests_for_share(self.share, documents, self.limit(documents).into())
    }

    fn check(&self, _dataset: &Dataset) -> Result<(), String> {
        if !(1..=LIMIT_MAX).contains(&self.limit) {
            return Err(format!("limit: {} is not in 1..{LIMIT_MAX}", self.limit));
        }
        super::check_share(self.share)
    }

    fn start(&self, assignment: &Assignment<'_>) -> Result<Box<dyn Requests>, String> {
        let placeholder = Id::placeholder(assignment.dataset.id(0).kind());
        let from = DocumentBuf::new().with("$gte", placeholder.as_value());
        let command = DocumentBuf::new()
            .with("find", assignment.collection)
            .with("filter", &DocumentBuf::new().with("_id", &from))
            .with("sort", &DocumentBuf::new().with("_id", 1_i32))
            .with("limit", LIMIT_PLACEHOLDER)
            .with("batchSize", self.limit as i32)
            .with("$db", assignment.database);
        Ok(Box::new(RangeRequests {
            dataset: Arc::clone(assignment.dataset),
            insertions: Arc::clone(assignment.insertions),
            command: Template::new(command, &placeholder).with_value(&LIMIT_PLACEHOLDER.to_le_bytes()),
            keys: KeyStream::new(self.keys, assignment.seed, assignment.stream),
            random: Xoshiro256PlusPlus::seed_from_u64(assignment.seed ^ assignment.stream.rotate_left(32)),
            reads: OpenReads::new(assignment),
            limit: self.limit(assignment.insertions.readable_count()),
            length: self.length,
        }))
    }
}

/// Placeholder of the limit. `Template` finds it by its bytes, so they must occur nowhere else in the command.
const LIMIT_PLACEHOLDER: i32 = 0x7e57_ab1e;

struct RangeRequests {
    dataset: Arc<Dataset>,
    insertions: Arc<Insertions>,
    command: Template,
    keys: KeyStream,
    random: Xoshiro256PlusPlus,
    reads: OpenReads,
    limit: u32,
    length: Length,
}

impl Requests for RangeRequests {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Option<u64> {
        let limit = match self.length {
            Length::Constant => self.limit,
            Length::Uniform => self.random.next_u32() % self.limit + 1,
        };
        // Requests do not begin near the end, where fewer documents follow.
        let beginnings = self.insertions.readable_count().saturating_sub(u64::from(limit)) + 1;
        let number = self.keys.next(beginnings);
        // Hashed ids do not ascend with the numbers, so any of them may be the beginning.
        let (beginning, at_least) = if self.dataset.id_kind().ascends() {
            (self.dataset.id_at_rank(number), u64::from(limit))
        } else {
            (self.dataset.id(self.insertions.readable(number)), 1)
        };
        self.command.set_id(0, &beginning);
        self.command.value(4).copy_from_slice(&(limit as i32).to_le_bytes());
        let frame = FrameWriter::new(out, request_id, ReplyMode::Expected, self.command.command());
        frame.finish().expect("a short command");
        Some(self.reads.begin(at_least))
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
