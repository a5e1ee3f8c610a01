//! Aggregation expressions, pure functions of a document and variables; accumulators, projections and sort patterns,
//! which are made of them.
//!
//! **Invariant:** an expression that [`Expression::parse`] accepted is evaluated without looking at names again:
//! operators, variables and constant regular expressions are resolved once. Nothing here reads a clock or a store.
//! **Invariant:** an operator is one file, or one of a family's in a file, and one line in a table. Its entry says
//! whether it compares strings (`StringUse`); a test that walks the table compares that with its answers.
//! **Invariant:** values larger or deeper than their sources are made in `made.rs`, which counts them and knows their
//! limits.
#![forbid(unsafe_code)]

mod accumulators;
mod array;
mod binary_number;
mod binary_text;
mod calendar;
mod call;
#[cfg(test)]
mod collation_table;
mod compiled_pattern;
mod constant_failure;
mod conversion;
mod date_part;
mod decimal;
mod decimal_functions;
mod decimal_powers;
mod dependencies;
mod element_order;
mod evaluated;
mod expression;
mod field_path;
mod folding;
mod formatted_date;
mod gathering;
mod implied;
mod inverse_hyperbolic;
mod made;
mod meta;
mod metadata;
mod number;
mod operators;
mod parse;
mod path_slots;
mod path_values;
mod percentiles;
mod printed;
mod redaction;
mod regular_expression;
mod reshaping;
mod rounding;
mod script;
mod stand_in;
mod string_arguments;
mod summation;
mod text;
mod time_zone;
mod trimming;
mod variables;
mod written_date;
mod written_moment;
mod written_zone;

pub mod projection;
pub mod sort_pattern;

pub use accumulators::{Accumulator, AccumulatorExpression, FirstInOrder, Removal};
pub use calendar::ctime_text;
pub use constant_failure::ConstantFailure;
pub use dependencies::Dependencies;
pub use element_order::{compare_elements, compare_fields, element_direction};
pub use evaluated::Evaluated;
pub use expression::Expression;
pub use field_path::FieldPath;
pub use implied::{FieldComparison, ImpliedComparison};
pub use made::{check_depth, check_document_bytes};
pub use metadata::{CurrentMetadata, HELD_FIELD, Offered, held};
pub use number::{Number, Operand};
pub use path_slots::PathSlots;
pub use path_values::PathValues;
pub use projection::{OtherFields, PathChange, PathChanges, Projection};
pub use redaction::Redaction;
pub use reshaping::Reshaping;
pub use sort_pattern::SortPattern;
pub use stand_in::{StandIn, with_path};
pub use summation::{Sum, Total};
pub use variables::{Builtins, Engine, EvaluationContext, ParseScope, Variables, check_defined_name};
