//! The part of an entry that messages quote: an entry may be megabytes long.

use bunko_bson::DocumentRef;
use bunko_bson::text::ValueText;

/// Maximum number of characters of a document that a message quotes.
const EXCERPT_CHARACTERS_MAX: usize = 500;

/// The beginning of a document.
pub(super) fn excerpt(document: DocumentRef<'_>) -> String {
    ValueText(document.into()).to_string().chars().take(EXCERPT_CHARACTERS_MAX).collect()
}
