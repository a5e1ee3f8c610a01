//! Update operators, pure functions from one document to the next.
//!
//! An update is parsed once into a trie of modifications ([`Update::parse`]); applying it walks that trie and the
//! document's bytes side by side, copies what no path touches as whole byte ranges, and asks an operator only for the
//! value at its own path. So a small change to a large document costs little more than copying the document.
//!
//! A pipeline is read into [`bunko_expression::Reshaping`]s, and its answer replaces the document.
//!
//! **Invariant:** no store and no clock here: the time, the position that the query matched, and whether this is an
//! insertion come in through [`ApplyContext`].
//! **Invariant:** a change is a change of bytes. An operator that answers with the value that is there already leaves
//! the document unchanged, whatever the operator. `$inc` and `$mul` alone say that `NaN` became another `NaN`.
#![forbid(unsafe_code)]

mod array_filters;
mod delta;
mod document_fields;
mod dotted_path;
mod encoded;
mod immutable_id;
mod merge_walk;
mod nesting;
mod operators;
mod pipeline;
mod replacement;
mod trie;
mod update;
mod upsert;

pub use update::{ApplyContext, Insertion, Outcome, ParseContext, Targets, Telling, Update};
