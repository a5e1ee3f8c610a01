//! Query filters: parsed once into an owned tree, matched against raw documents.
//!
//! [`Filter`] serves `find`, `$match`, deletes and the `q` of updates; [`ElementFilter`] is `$pull`'s condition,
//! [`ArrayFilter`] one entry of `arrayFilters` and [`ElemMatch`] a projection's `$elemMatch`. The planner reads
//! [`Filter::root`].
//!
//! **Invariant:** matching never fails on a document's contents and allocates nothing; all errors are found by
//! `parse`. The exceptions: `$expr`, whose run-time errors [`Filter::try_matches`] returns, and `enum` and `uniqueItems` of
//! `$jsonSchema`, which copy the documents and arrays that they compare.
//! **Invariant:** every loop over elements of arrays or lists counts them as work of the operation.
#![forbid(unsafe_code)]

mod constants;
mod element;
mod evaluate;
mod explain;
mod expression;
mod failure_details;
mod filter;
mod implication;
mod json_schema;
mod many_equalities;
mod one_walk;
mod operators;
mod parse;
mod path;
pub mod planted;
mod simplify;

pub use element::{ArrayFilter, ElemMatch, ElementFilter, refuse_schema};
pub use expression::{Comparison, Expr, ExprComparison, ExprCompiler, ExprPredicate, Expression};
pub use filter::{Filter, MatchedPosition};
pub use implication::implies;
pub use json_schema::Schema;
pub use operators::bits::{BitMask, BitTest};
pub use operators::bson_type::TypeSet;
pub use operators::geo::Geo;
pub use operators::near::{NearPoint, near_of};
pub use operators::regex::{Regex, RegexPrefix};
pub use operators::text::{AskedText, TextSearch};
pub use path::{Component, Path};
