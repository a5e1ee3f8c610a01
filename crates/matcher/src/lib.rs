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

mod comparison;
mod constants;
mod element;
mod evaluate;
mod evaluation;
mod explain;
mod expr;
mod expression;
mod failure_details;
mod filter;
mod implication;
mod integer;
mod json_schema;
mod many_equalities;
mod one_walk;
mod operands;
mod operators;
mod parse;
mod parser;
mod path;
pub mod planted;
mod searches;
mod simplify;

pub use comparison::Comparison;
pub use element::{ArrayFilter, ElemMatch, ElementFilter, refuse_schema};
pub use expr::{Expr, ExprComparison, ExprCompiler, ExprPredicate};
pub use expression::{Condition, Expression};
pub use filter::{Filter, MatchedPosition};
pub use implication::implies;
pub use json_schema::Schema;
pub use operands::{AskedText, BitMask, BitTest, Geo, NearPoint, Regex, RegexPrefix, TextSearch, TypeSet, near_of};
pub use path::{Component, Path};
