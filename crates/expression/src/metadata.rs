//! Metadata of documents in a pipeline: scores, and distances from a point. `$meta` reads it.
//!
//! A stage that makes such metadata puts it into the first field of the document ([`held`]), but only if an expression
//! reads it ([`CurrentMetadata::is_wanted`]). The caller that hands the document to stages takes it out again
//! ([`CurrentMetadata::release`]) and keeps it while the stages look at that document. Stages that buffer documents
//! receive them with the field.
//!
//! The rejected design was streams of pairs of document and metadata: all stages would pay for a feature that few
//! pipelines use.

use bunko_bson::{DocumentBuf, DocumentRef, Value, ValueRef};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

/// The first field of a document, which carries its metadata. A client may have a field of that name: the field is
/// looked for only in documents where a stage put one in front.
pub const HELD_FIELD: &str = "\u{1}metadata";

/// The bit of `wanted` that says that some metadata is wanted.
const ANYTHING: u16 = 1 << 8;

/// Kinds of metadata that must have been made before they can be read: a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered(u8);

impl Offered {
    /// No metadata is known.
    pub const NONE: Self = Self(0);
    /// Any metadata may be known: the stage that makes it is not known yet.
    pub const ANY: Self = Self(u8::MAX);
    /// Scores of a search for text.
    pub const TEXT: Self = Self(1);
    /// Distance from a point, and the location that has that distance.
    pub const NEAR: Self = Self(2);
    /// The score of a fusion of pipelines.
    pub const SCORE: Self = Self(4);
    /// The parts of a score.
    pub const SCORE_DETAILS: Self = Self(8);

    /// The record's id.
    pub const RECORD_ID: Self = Self(16);
    /// The key by which an index led to the document.
    pub const INDEX_KEY: Self = Self(32);
    /// The values that the document was sorted by.
    pub const SORT_KEY: Self = Self(64);
    /// The metadata that the plan of a query knows of each document.
    pub const PLAN: Self = Self::RECORD_ID.and(Self::INDEX_KEY);

    /// The union of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in the set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The metadata of the document that a pipeline's stages are looking at.
#[derive(Debug, Default)]
pub struct CurrentMetadata {
    /// A set of [`Offered`], and the bit `ANYTHING`.
    wanted: AtomicU16,
    current: Mutex<Option<Arc<DocumentBuf>>>,
}

impl CurrentMetadata {
    /// Notes that an expression reads metadata.
    pub fn want(&self) {
        self.want_of(Offered::NONE);
    }

    /// Notes that an expression reads metadata of kind `what`.
    pub fn want_of(&self, what: Offered) {
        self.wanted.fetch_or(ANYTHING | u16::from(what.0), Ordering::Relaxed);
    }

    /// Notes that all metadata that expressions read of `other` is read here too.
    pub fn want_as(&self, other: &Self) {
        self.wanted.fetch_or(other.wanted.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Whether an expression reads metadata of kind `what`. Final once everything has been parsed.
    pub fn wants(&self, what: Offered) -> bool {
        self.wanted.load(Ordering::Relaxed) & u16::from(what.0) != 0
    }

    /// Whether an expression reads metadata. Final once everything has been parsed.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// The metadata of the current document.
    pub fn current(&self) -> Option<Arc<DocumentBuf>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the metadata of the next document; `None` for a document that a stage made.
    pub fn set(&self, metadata: Option<Arc<DocumentBuf>>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = metadata;
    }

    /// Adds or replaces one value of the current document's metadata.
    pub fn add<'v>(&self, name: &str, value: impl Into<ValueRef<'v>>) {
        let mut known = DocumentBuf::new();
        if let Some(current) = self.current() {
            for field in current.as_ref().as_ref().iter().filter(|field| field.name != name) {
                known.append(field.name, field.value);
            }
        }
        known.append(name, value.into());
        self.set(Some(Arc::new(known)));
    }

    /// The current document's metadata under a name of `$meta`.
    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        Some(self.current()?.as_ref().as_ref().get(name)?.to_value())
    }

    /// Takes the metadata out of a document that holds it. A document that a stage made holds none.
    pub fn release(&self, document: DocumentRef<'_>) -> DocumentBuf {
        let first = document.first().filter(|first| first.name == HELD_FIELD);
        let fields = document.iter().skip(usize::from(first.is_some()));
        let metadata = first.and_then(|first| first.value.as_document());
        self.set(metadata.map(|metadata| Arc::new(metadata.to_owned())));
        let mut released = DocumentBuf::new();
        for field in fields {
            released.append(field.name, field.value);
        }
        released
    }

    /// Puts the current metadata into the document.
    pub fn hold(&self, document: DocumentRef<'_>) -> DocumentBuf {
        let metadata = self.current();
        held(document, metadata.as_ref().map_or(DocumentRef::EMPTY, |metadata| metadata.as_ref().as_ref()))
    }
}

/// Returns the document with `metadata` added as its first field.
pub fn held(document: DocumentRef<'_>, metadata: DocumentRef<'_>) -> DocumentBuf {
    let mut held = DocumentBuf::new();
    held.append(HELD_FIELD, ValueRef::Document(metadata));
    for field in document {
        held.append(field.name, field.value);
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_metadata_are_released_even_beside_a_field_of_that_name() {
        let document = DocumentBuf::new().with("a", 1).with(HELD_FIELD, "a client's");
        let metadata = DocumentBuf::new().with("score", 2.5);
        let at_hand = CurrentMetadata::default();
        let released = at_hand.release(held(document.as_ref(), metadata.as_ref()).as_ref());
        assert_eq!(released.as_ref().as_bytes(), document.as_ref().as_bytes());
        assert!(matches!(at_hand.value("score"), Some(Value::Double(2.5))));
        assert!(at_hand.value("textScore").is_none());
        at_hand.set(None);
        let made = DocumentBuf::new().with("a", 1);
        assert_eq!(at_hand.release(made.as_ref()).as_ref().as_bytes(), made.as_ref().as_bytes());
        let again = at_hand.release(at_hand.hold(document.as_ref()).as_ref());
        assert_eq!(again.as_ref().as_bytes(), document.as_ref().as_bytes());
    }

    #[test]
    fn added_metadata_replace_those_of_the_same_name_only() {
        let at_hand = CurrentMetadata::default();
        assert!(!at_hand.is_wanted());
        at_hand.want_of(Offered::SORT_KEY);
        assert!(at_hand.is_wanted() && at_hand.wants(Offered::SORT_KEY) && !at_hand.wants(Offered::PLAN));
        at_hand.add("recordId", 1_i64);
        at_hand.add("sortKey", 5);
        at_hand.add("recordId", 2_i64);
        assert!(matches!(at_hand.value("recordId"), Some(Value::Int64(2))));
        assert!(matches!(at_hand.value("sortKey"), Some(Value::Int32(5))));
    }

    #[test]
    fn sets_hold_what_was_put_in() {
        let both = Offered::TEXT.and(Offered::NEAR);
        assert!(both.has(Offered::TEXT) && both.has(Offered::NEAR) && !both.has(Offered::SCORE));
        assert!(Offered::ANY.has(both) && !Offered::NONE.has(both));
    }
}
