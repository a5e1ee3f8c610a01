//! Text search, as text indexes and `$text` need it: how a text falls into words, which of them count, what their stems are,
//! how much a document is about a word, and what a search asks for.
//!
//! **Invariant:** pure; the same document has the same terms and scores in every run.
//! Source: MongoDB manual, "Text Index Properties" and "$text".
#![forbid(unsafe_code)]

mod fields;
mod folding;
mod language;
mod scoring;
mod search;
mod stop_words;
mod terms;
mod version;
mod words;

pub use fields::TextFields;
pub use language::Language;
pub use search::Search;
pub use terms::{CaseRule, DiacriticRule, Rules};
pub use version::TextVersion;
