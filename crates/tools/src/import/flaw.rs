//! Errors of input that cannot be read.

/// Input that is not a document: where, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    /// Offset in the chunk, in bytes.
    pub offset: usize,
    /// The reason, with the value that is found there.
    pub reason: String,
    /// Whether the chunk's text ended before the record did.
    pub is_at_end: bool,
}

/// Maximum number of characters of the input that a message shows.
const SHOWN_MAX: usize = 40;

impl Flaw {
    pub(super) fn new(offset: usize, reason: impl Into<String>) -> Self {
        Self { offset, reason: reason.into(), is_at_end: false }
    }

    /// The error that the text ends too early.
    pub(super) fn at_end(offset: usize, reason: impl Into<String>) -> Self {
        Self { offset, reason: reason.into(), is_at_end: true }
    }

    /// The error that something other than `wanted` stands at this offset.
    pub(super) fn expected(wanted: &str, text: &str, offset: usize) -> Self {
        match text.get(offset..) {
            Some("") | None => Self::at_end(offset, format!("expected {wanted}, found the end of the input")),
            Some(rest) => Self::new(offset, format!("expected {wanted}, found {}", shown(rest))),
        }
    }
}

/// The first characters of a text, quoted.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
