//! Calls of scripts.

use bunko_bson::DocumentRef;

/// A call of a script.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The number of the script.
    pub number: usize,
    /// The document that the script calls `this`.
    pub this: Option<DocumentRef<'a>>,
    /// An array's elements.
    pub arguments: DocumentRef<'a>,
}
