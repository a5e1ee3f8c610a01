//! Update operators: pure functions from one document to the next.
//!
//! An update is parsed once into a trie of modifications ([`Update::parse`]). Applying it walks the trie together with
//! the document's bytes, copies untouched parts as whole byte ranges, and calls an operator only for the value at its
//! own path. So a small change to a large document costs little more than copying the document.
//!
//! A pipeline is parsed into [`bunko_expression::Reshaping`]s, and its result replaces the document.
//!
//! **Invariant:** no access to store or clock: [`ApplyContext`] provides the time, the position that the query matched,
//! and whether this is an insertion.
//! **Invariant:** only different bytes count as a change. An operator whose result has the bytes of the current value
//! leaves the document unchanged. The exceptions are `$inc` and `$mul`, where `NaN` counts as a change of `NaN`.
#![forbid(unsafe_code)]

mod array_filters;
mod context;
mod delta;
mod document_fields;
mod dotted_path;
mod encoded;
mod immutable_id;
mod merge_walk;
mod modifier;
mod nesting;
mod operators;
mod pipeline;
mod replacement;
mod trie;
mod update;
mod upsert;

pub use context::{ApplyContext, Insertion, ParseContext, Targets, Telling};
pub use update::{Outcome, Update};
