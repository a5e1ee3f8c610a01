//! Inserts of one document or of a batch, as drivers send them: the documents beside the command.

use super::{Assignment, Claims, Needs, Operation, Requests};
use crate::dataset::{Dataset, Shape};
use bunko_bson::DocumentBuf;
use bunko_client::Reply;
use bunko_client::frame::{FrameWriter, ReplyMode};
use bunko_client::load::Next;
use std::sync::Arc;

pub(super) const OPERATION: Operation = Operation {
    name: "insert",
    about: "insert documents, --batch of them at a time",
    needs: Needs::EmptyCollection,
    shape: Shape::Plain,
    batches: true,
    start: |assignment| Box::new(Insert::new(assignment)),
};

struct Insert {
    dataset: Arc<Dataset>,
    claims: Arc<Claims>,
    command: DocumentBuf,
    mode: ReplyMode,
    batch: usize,
}

impl Insert {
    fn new(assignment: &Assignment<'_>) -> Self {
        let command = DocumentBuf::new()
            .with("insert", assignment.collection)
            .with("ordered", true)
            .with("writeConcern", &assignment.write_concern.to_document())
            .with("$db", assignment.database);
        Self {
            dataset: Arc::clone(assignment.dataset),
            claims: Arc::clone(assignment.claims),
            command,
            mode: assignment.reply_mode(),
            batch: assignment.batch,
        }
    }
}

impl Requests for Insert {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Next {
        let Some(documents) = self.claims.take(self.batch) else { return Next::Finished };
        let mut frame = FrameWriter::new(out, request_id, self.mode, self.command.as_ref());
        frame.sequence("documents", |out| documents.for_each(|index| self.dataset.write(index, out)));
        frame.finish().expect("the plan limits a batch's bytes");
        Next::Appended
    }

    fn acknowledged(&self, reply: Reply<'_>) -> Result<u64, String> {
        Ok(reply.n.try_into().unwrap_or(0))
    }
}
