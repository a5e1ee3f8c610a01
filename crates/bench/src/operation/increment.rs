//! `$inc` of a field of one document found by its `_id`; the document's size does not change.

use super::template::Template;
use super::{Answer, Assignment, Effect, Insertions, Operation, Requests};
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_client::Reply;
use bunko_client::frame::{FrameWriter, ReplyMode};
use bunko_dataset::{Dataset, Distribution, Id, KeyStream};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Settings of the operation `increment`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Increment {
    /// The field, which holds a number.
    pub field: String,
    /// Distribution of the documents that are changed.
    #[serde(default)]
    pub keys: Distribution,
}

impl Operation for Increment {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Changes(vec![self.field.clone()])]
    }

    fn check(&self, dataset: &Dataset) -> Result<(), String> {
        super::check_field(dataset, "field", &self.field)
    }

    fn start(&self, assignment: &Assignment<'_>) -> Result<Box<dyn Requests>, String> {
        let placeholder = Id::placeholder(assignment.dataset.id(0).kind());
        let increment = DocumentBuf::new().with("$inc", &DocumentBuf::new().with(&self.field, 1_i32));
        Ok(Box::new(IncrementRequests {
            dataset: Arc::clone(assignment.dataset),
            insertions: Arc::clone(assignment.insertions),
            command: Template::new(update_command(assignment, &placeholder, &increment), &placeholder),
            mode: assignment.reply_mode(),
            keys: KeyStream::new(self.keys, assignment.seed, assignment.stream),
        }))
    }
}

/// An update of the document with that `_id`.
pub(super) fn update_command(assignment: &Assignment<'_>, id: &Id, update: &DocumentBuf) -> DocumentBuf {
    let statement = DocumentBuf::new().with("q", &DocumentBuf::new().with("_id", id.as_value())).with("u", update);
    DocumentBuf::new()
        .with("update", assignment.collection)
        .with("updates", &[&statement].into_iter().collect::<ArrayBuf>())
        .with("ordered", true)
        .with("writeConcern", &assignment.write_concern.to_document())
        .with("$db", assignment.database)
}

/// Checks the reply to an update that must match one document.
pub(super) fn matched_one(reply: Reply<'_>) -> Result<Answer, String> {
    if reply.n == 1 {
        Ok(Answer::Done { documents: 1 })
    } else {
        Err(format!("update matched {} documents, not 1", reply.n))
    }
}

struct IncrementRequests {
    dataset: Arc<Dataset>,
    insertions: Arc<Insertions>,
    command: Template,
    mode: ReplyMode,
    keys: KeyStream,
}

impl Requests for IncrementRequests {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Option<u64> {
        let index = self.insertions.readable(self.keys.next(self.insertions.readable_count()));
        let command = self.command.set_id(0, &self.dataset.id(index)).command();
        FrameWriter::new(out, request_id, self.mode, command).finish().expect("a short command");
        Some(0)
    }

    fn on_reply(&mut self, _tag: u64, reply: Reply<'_>) -> Result<Answer, String> {
        matched_one(reply)
    }
}
