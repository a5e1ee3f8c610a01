//! `$inc` of one document found by its `_id`, uniformly at random; the document's size does not change.

use super::id_template::{IdTemplate, PLACEHOLDER};
use super::{Assignment, Claims, Needs, Operation, Requests};
use crate::dataset::{Dataset, Shape};
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_client::Reply;
use bunko_client::frame::{FrameWriter, ReplyMode};
use bunko_client::load::Next;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

pub(super) const OPERATION: Operation = Operation {
    name: "inc",
    about: "add 1 to a field of one document found by _id, uniformly at random",
    needs: Needs::LoadedDocuments,
    shape: Shape::Counter,
    batches: false,
    start: |assignment| Box::new(Increment::new(assignment)),
};

struct Increment {
    dataset: Arc<Dataset>,
    claims: Arc<Claims>,
    command: IdTemplate,
    mode: ReplyMode,
    random: Xoshiro256PlusPlus,
}

impl Increment {
    fn new(assignment: &Assignment<'_>) -> Self {
        let update = DocumentBuf::new()
            .with("q", &DocumentBuf::new().with("_id", PLACEHOLDER))
            .with("u", &DocumentBuf::new().with("$inc", &DocumentBuf::new().with("n", 1_i32)));
        let command = DocumentBuf::new()
            .with("update", assignment.collection)
            .with("updates", &[&update].into_iter().collect::<ArrayBuf>())
            .with("ordered", true)
            .with("writeConcern", &assignment.write_concern.to_document())
            .with("$db", assignment.database);
        Self {
            dataset: Arc::clone(assignment.dataset),
            claims: Arc::clone(assignment.claims),
            command: IdTemplate::new(command),
            mode: assignment.reply_mode(),
            random: Xoshiro256PlusPlus::seed_from_u64(assignment.seed),
        }
    }
}

impl Requests for Increment {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Next {
        if self.claims.take(1).is_none() {
            return Next::Finished;
        }
        let id = self.dataset.id(self.random.next_u64() % self.claims.total());
        let frame = FrameWriter::new(out, request_id, self.mode, self.command.about(id));
        frame.finish().expect("a short command");
        Next::Appended
    }

    fn acknowledged(&self, reply: Reply<'_>) -> Result<u64, String> {
        if reply.n == 1 { Ok(1) } else { Err(format!("update matched {} documents, not 1", reply.n)) }
    }
}
