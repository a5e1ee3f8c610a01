//! The commands of single writes, and the contents that they give documents.

use crate::model::{Content, document, pad};
use bunko_bson::{ArrayBuf, DocumentBuf};
use std::ops::Range;

/// How durable a write must be before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// `w: 1`.
    Written,
    /// `j: true`.
    Synced,
}

impl Journal {
    /// The command, with its write concern.
    pub(crate) fn concern(self, command: DocumentBuf) -> DocumentBuf {
        command.with("writeConcern", &DocumentBuf::new().with("w", 1).with("j", self == Self::Synced))
    }
}

pub(crate) fn list(items: &[DocumentBuf]) -> ArrayBuf {
    items.iter().collect()
}

/// An insert of documents with these `_id` values.
pub(crate) fn insert(collection: &str, ids: &Range<i32>, pad_bytes: usize) -> DocumentBuf {
    let documents: Vec<_> = ids.clone().map(|id| document(id, inserted(id, pad_bytes))).collect();
    DocumentBuf::new().with("insert", collection).with("documents", &list(&documents))
}

/// An update of the document with this `_id`.
pub(crate) fn update(collection: &str, id: i32, content: Content) -> DocumentBuf {
    let set = DocumentBuf::new().with("v", content.value).with("pad", pad(id, content).as_str());
    let update = DocumentBuf::new()
        .with("q", &DocumentBuf::new().with("_id", id))
        .with("u", &DocumentBuf::new().with("$set", &set));
    DocumentBuf::new().with("update", collection).with("updates", &list(&[update]))
}

/// Content that an insert gives the document with this `_id`.
pub(crate) fn inserted(id: i32, pad_bytes: usize) -> Content {
    Content { value: id * 2, pad_bytes }
}
