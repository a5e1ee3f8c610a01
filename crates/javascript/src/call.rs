//! Calls of scripts.

use bunko_bson::DocumentRef;

/// A call of a script.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The number under which the engine compiled the script.
    pub number: usize,
    /// The document that the script calls `this`.
    pub this: Option<DocumentRef<'a>>,
    /// The arguments: a BSON array, read as a document with the fields `0`, `1`, ...
    pub arguments: DocumentRef<'a>,
}
