//! Text search for text indexes and `$text`: the words of a text, stop words, stems, the score of a term in a document,
//! and the language of searches.
//!
//! Stop words are the lists of the Snowball project (`crates/text/stop_words`), stems come from the crate
//! `rust-stemmers`.
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
