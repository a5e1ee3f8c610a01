//! The work of an `$unwind`, for a stage before it that could avoid making the array.

use bunko_bson::{DocumentBuf, ValueRef};
use bunko_expression::{FieldPath, with_path};

/// An `$unwind` as another stage can do its work.
#[derive(Clone)]
pub struct Unwinding {
    /// Path of the array.
    pub(crate) path: FieldPath,
    pub(crate) index_path: Option<FieldPath>,
    pub(crate) without_elements: WithoutElements,
}

impl Unwinding {
    /// Whether documents without elements are kept.
    pub(crate) fn preserves_without_elements(&self) -> bool {
        self.without_elements == WithoutElements::Preserved
    }

    /// Makes the stage drop documents without elements, as without `preserveNullAndEmptyArrays`.
    pub(crate) fn drop_without_elements(&mut self) {
        self.without_elements = WithoutElements::Dropped;
    }

    /// Adds the index of the element to the document, if the stage asks for it.
    pub(crate) fn indexed(&self, document: DocumentBuf, index: ValueRef<'_>) -> DocumentBuf {
        indexed(self.index_path.as_ref(), document, index)
    }
}

/// The treatment of a document whose field is missing, null or an empty array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithoutElements {
    Dropped,
    Preserved,
}

/// Adds the index of the element to the document, if there is a path for it.
pub(crate) fn indexed(path: Option<&FieldPath>, document: DocumentBuf, index: ValueRef<'_>) -> DocumentBuf {
    match path {
        None => document,
        Some(path) => with_path(document.as_ref(), path.components(), Some(index)),
    }
}
