//! The interface of accumulators, and the entries of their table.

use crate::call::Strings;
use crate::{Engine, Evaluated, Expression};
use bunko_bson::{StringOrder, Value, ValueRef};
use bunko_errors::Result;
use bunko_javascript::Function;
use std::sync::Arc;

/// The state that a group keeps of its documents.
pub trait Accumulator: Send {
    /// Takes one document's value.
    /// # Errors
    /// If the value's type is refused.
    fn add(&mut self, value: Evaluated<'_>) -> Result<()>;

    /// Takes one document's value together with its key in the order that the accumulator asked for.
    /// # Errors
    /// As [`Self::add`].
    fn add_sorted(&mut self, _key: Vec<u8>, value: Evaluated<'_>) -> Result<()> {
        self.add(value)
    }

    /// Takes back `value`, the oldest value that the accumulator still holds.
    fn remove(&mut self, _value: ValueRef<'_>) -> Removal {
        Removal::Impossible
    }

    /// The result for all values added so far.
    fn value(&self) -> Value;

    /// Ends the accumulator, and returns the group's final value.
    fn finish(self: Box<Self>) -> Value {
        self.value()
    }

    /// Sets the order of strings, once, before the first value. Only accumulators that compare strings use it.
    fn collate(&mut self, _strings: &StringOrder) {}

    /// As `finish`, for accumulators such as scripts that may fail.
    /// # Errors
    /// Errors of the script.
    fn outcome(self: Box<Self>) -> Result<Value> {
        Ok(self.finish())
    }

    /// Memory that the accumulator holds now, in bytes.
    fn memory_bytes(&self) -> usize;
}

/// The result of [`Accumulator::remove`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The value was taken back.
    Done,
    /// The value was not taken back: the accumulator must be rebuilt from the remaining values.
    Impossible,
}

/// One entry of the table.
pub(super) struct Kind {
    /// The accumulator's name, with its `$`.
    pub name: &'static str,
    /// Whether the accumulator compares strings and so uses [`Accumulator::collate`].
    pub strings: Strings,
    pub form: Form,
    /// Makes an accumulator for a new group.
    pub make: fn(&Settings) -> Box<dyn Accumulator>,
}

/// The form of an accumulator's argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `{$sum: expression}`.
    Expression,
    /// `{$count: {}}`.
    Empty,
    /// `{$firstN: {input: expression, n: expression}}`.
    InputAndCount,
    /// As `InputAndCount`, for operators that rank values.
    RankedInputAndCount,
    /// `{$top: {sortBy: pattern, output: expression}}`.
    Ordered,
    /// `{$topN: {sortBy: pattern, output: expression, n: expression}}`.
    OrderedAndCount,
    /// `{$percentile: {input: expression, p: array, method: "approximate"}}`.
    Percentiles,
    /// `{$median: {input: expression, method: "approximate"}}`.
    Median,
    /// `{$accumulator: {init: code, accumulate: code, ...}}`.
    Custom,
    /// `{$_internalJsReduce: {data: expression, eval: code}}`.
    Reduce,
}

/// Settings of an accumulator beside its input.
pub(crate) struct Settings {
    /// `n` where the form has it, else 0.
    pub(crate) count: usize,
    /// `p` of `$percentile`, else empty.
    pub(crate) percentiles: Arc<[f64]>,
    /// The engine whose error codes are used.
    pub(crate) engine: Engine,
    /// The scripts of `$accumulator`, else none.
    pub(crate) custom: Option<Arc<Custom>>,
    /// The state that the `init` script returned; null without one.
    pub(crate) initial: Value,
}

/// The scripts of an accumulator.
pub(crate) enum Custom {
    /// `$accumulator`.
    States { init: Function, init_arguments: Expression, accumulate: Function, finalize: Option<Function> },
    /// `mapReduce`.
    Reduction(Function),
}
