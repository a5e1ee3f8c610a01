//! The data that a server should hold.

use bunko_bson::DocumentBuf;
use std::collections::{BTreeMap, BTreeSet};

/// Collections by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// The collections by name.
    pub collections: BTreeMap<&'static str, Collection>,
}

/// One collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// Whether a restart loses the collection's documents. Its name and indexes are kept.
    pub is_volatile: bool,
    /// Documents by `_id`.
    pub documents: BTreeMap<i32, Content>,
    /// Fields that are indexed, besides `_id`.
    pub indexes: BTreeSet<&'static str>,
}

/// Content of a document, without its `_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// Value of the field `v`.
    pub value: i32,
    /// Length of the field `pad` in bytes.
    pub pad_bytes: usize,
}

impl Model {
    /// The model after a restart: volatile collections are empty.
    #[must_use]
    pub fn restarted(mut self) -> Self {
        for collection in self.collections.values_mut().filter(|collection| collection.is_volatile) {
            collection.documents.clear();
        }
        self
    }
}

/// A document.
pub fn document(id: i32, content: Content) -> DocumentBuf {
    let document = DocumentBuf::new().with("_id", id).with("v", content.value).with("w", id % 7);
    document.with("pad", pad(id, content).as_str())
}

/// Text that differs between documents and versions.
pub fn pad(id: i32, content: Content) -> String {
    let pattern = format!("{id:08x}{:08x};", content.value);
    let mut text = pattern.repeat(content.pad_bytes / pattern.len() + 1);
    text.truncate(content.pad_bytes);
    text
}
