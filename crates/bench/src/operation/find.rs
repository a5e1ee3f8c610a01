//! Reads of one document by its `_id`, uniformly at random.

use super::id_template::{IdTemplate, PLACEHOLDER};
use super::{Assignment, Claims, Needs, Operation, Requests};
use crate::dataset::{Dataset, Shape};
use bunko_bson::{ArrayRef, DocumentBuf, ValueRef};
use bunko_client::Reply;
use bunko_client::frame::{FrameWriter, ReplyMode};
use bunko_client::load::Next;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

pub(super) const OPERATION: Operation = Operation {
    name: "find",
    about: "find one document by _id, uniformly at random",
    needs: Needs::LoadedDocuments,
    shape: Shape::Plain,
    batches: false,
    start: |assignment| Box::new(Find::new(assignment)),
};

struct Find {
    dataset: Arc<Dataset>,
    claims: Arc<Claims>,
    command: IdTemplate,
    random: Xoshiro256PlusPlus,
}

impl Find {
    fn new(assignment: &Assignment<'_>) -> Self {
        let command = DocumentBuf::new()
            .with("find", assignment.collection)
            .with("filter", &DocumentBuf::new().with("_id", PLACEHOLDER))
            .with("limit", 1_i32)
            .with("singleBatch", true)
            .with("$db", assignment.database);
        Self {
            dataset: Arc::clone(assignment.dataset),
            claims: Arc::clone(assignment.claims),
            command: IdTemplate::new(command),
            random: Xoshiro256PlusPlus::seed_from_u64(assignment.seed),
        }
    }
}

impl Requests for Find {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Next {
        if self.claims.take(1).is_none() {
            return Next::Finished;
        }
        let id = self.dataset.id(self.random.next_u64() % self.claims.total());
        let frame = FrameWriter::new(out, request_id, ReplyMode::Expected, self.command.about(id));
        frame.finish().expect("a short command");
        Next::Appended
    }

    fn acknowledged(&self, reply: Reply<'_>) -> Result<u64, String> {
        let cursor = reply.document.get("cursor").and_then(ValueRef::as_document);
        let batch = cursor.and_then(|cursor| cursor.get("firstBatch")?.as_array());
        let documents = batch.map_or(0, ArrayRef::count);
        if documents == 1 { Ok(1) } else { Err(format!("find returned {documents} documents, not 1")) }
    }
}
