//! Reads cursors in replies to their ends.

use super::{Answer, Assignment};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_client::Reply;
use bunko_client::frame::{FrameWriter, ReplyMode};
use slab::Slab;

/// A batch of a cursor.
struct Batch {
    documents: u64,
    /// The cursor's id; 0 for the last batch.
    cursor: i64,
}

impl Batch {
    /// Reads a reply to find, aggregate or getMore.
    fn read(reply: DocumentRef<'_>) -> Result<Self, String> {
        let cursor = reply.get("cursor").and_then(ValueRef::as_document).ok_or("the reply has no cursor")?;
        let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch")).and_then(ValueRef::as_array);
        let documents = batch.map(ArrayRef::count).ok_or("the reply has no batch")? as u64;
        match cursor.get("id") {
            Some(ValueRef::Int64(cursor)) => Ok(Self { documents, cursor }),
            Some(ValueRef::Int32(cursor)) => Ok(Self { documents, cursor: cursor.into() }),
            _ => Err("the reply's cursor has no id".into()),
        }
    }
}

/// Reads in progress, with each one's cursor and number of documents. The keys in the slab are the tags.
pub(super) struct OpenReads {
    database: String,
    collection: String,
    reads: Slab<OpenRead>,
}

struct OpenRead {
    cursor: i64,
    read: u64,
    at_least: u64,
}

impl OpenReads {
    pub fn new(assignment: &Assignment<'_>) -> Self {
        let (database, collection) = (assignment.database.to_owned(), assignment.collection.to_owned());
        Self { database, collection, reads: Slab::new() }
    }

    /// Notes a read that must return at least `at_least` documents; returns its tag.
    pub fn begin(&mut self, at_least: u64) -> u64 {
        self.reads.insert(OpenRead { cursor: 0, read: 0, at_least }) as u64
    }

    /// Handles a batch of a read.
    /// # Errors
    /// A reply without a batch, or a read that returns too few documents.
    pub fn on_reply(&mut self, tag: u64, reply: Reply<'_>) -> Result<Answer, String> {
        let Batch { documents, cursor } = Batch::read(reply.document)?;
        let open = &mut self.reads[tag as usize];
        open.read += documents;
        open.cursor = cursor;
        if cursor != 0 {
            return Ok(Answer::More { documents, step: tag });
        }
        let OpenRead { read, at_least, .. } = self.reads.remove(tag as usize);
        if read < at_least {
            return Err(format!("{read} documents were returned, at least {at_least} are there"));
        }
        Ok(Answer::Done { documents })
    }

    /// Appends the getMore of a read; returns its tag.
    pub fn follow(&mut self, step: u64, request_id: i32, out: &mut Vec<u8>) -> u64 {
        let command = DocumentBuf::new()
            .with("getMore", self.reads[step as usize].cursor)
            .with("collection", self.collection.as_str())
            .with("$db", self.database.as_str());
        let frame = FrameWriter::new(out, request_id, ReplyMode::Expected, command.as_ref());
        frame.finish().expect("a short command");
        step
    }

    /// Removes a read that failed.
    pub fn forget(&mut self, tag: u64) {
        self.reads.remove(tag as usize);
    }
}
