//! The table of accumulators: one file and one line each.

mod add_to_set;
mod argument;
pub(crate) mod avg;
mod concat_arrays;
mod count;
mod custom;
mod deviation;
mod extreme;
mod first_n;
mod first_or_last;
mod kind;
mod last_n;
pub(crate) mod max;
mod max_n;
pub(crate) mod merge_objects;
pub(crate) mod min;
mod min_n;
mod percentile;
mod push;
mod set_union;
mod several;
pub(crate) mod std_dev_pop;
pub(crate) mod std_dev_samp;
pub(crate) mod sum;
mod top_bottom;

pub(crate) use crate::call::Strings;
use crate::call::{Refusal, refuse};
use crate::number::Operand;
use crate::summation::Total;
use crate::{Dependencies, Engine, Evaluated, EvaluationContext, Expression, ParseScope, SortPattern, made};
pub(crate) use argument::{INPUT_AND_COUNT, RANKED_INPUT_AND_COUNT, read_count};
use bunko_bson::{ArrayRef, DocumentBuf, Element, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
pub use kind::{Accumulator, Removal};
use kind::{Custom, Form, Kind, Settings};
pub(crate) use several::Which;
use std::sync::Arc;

static KINDS: &[Kind] = &[
    add_to_set::KIND,
    avg::KIND,
    concat_arrays::KIND,
    count::KIND,
    custom::ACCUMULATOR,
    custom::REDUCE,
    first_or_last::FIRST,
    first_n::KIND,
    first_or_last::LAST,
    last_n::KIND,
    max::KIND,
    max_n::KIND,
    merge_objects::KIND,
    min::KIND,
    min_n::KIND,
    percentile::MEDIAN,
    percentile::PERCENTILE,
    push::KIND,
    set_union::KIND,
    std_dev_pop::KIND,
    std_dev_samp::KIND,
    sum::KIND,
    top_bottom::BOTTOM,
    top_bottom::BOTTOM_N,
    top_bottom::TOP,
    top_bottom::TOP_N,
];

/// The name of each accumulator, and whether its entry says that it compares strings in the collation's order.
#[cfg(test)]
pub(crate) fn uses_of_collation() -> impl Iterator<Item = (&'static str, Strings)> {
    KINDS.iter().map(|kind| (kind.name, kind.strings))
}

/// The error of MongoDB's slot-based engine, which runs a group at a pipeline's front. The classic engine's errors say
/// why `n` is wrong.
const NO_COUNT: Refusal = (7_548_606, "parameter 'n' must be coercible to a positive 64-bit integer, found {}");

/// An accumulator and the expression that feeds it.
pub struct AccumulatorExpression {
    kind: &'static Kind,
    input: Expression,
    /// `n`, or absent where the form has none.
    count: Expression,
    /// The order of `$top` and similar accumulators.
    order: Option<SortPattern>,
    /// `p` of `$percentile`, else empty.
    percentiles: Arc<[f64]>,
    /// The scripts of `$accumulator`, else none.
    custom: Option<Arc<Custom>>,
    /// The result to take from a [`Total`], if the accumulator keeps nothing else of a group.
    asked: Option<Statistic>,
}

/// An order in which the first documents of a group decide an accumulator's result.
pub struct FirstInOrder {
    /// The order.
    pub order: SortPattern,
    /// Whether a document without a value, or with null, adds nothing to the result: it only shows that the group
    /// exists.
    pub needs_value: bool,
}

/// The result to take from a total.
#[derive(Clone, Copy)]
enum Statistic {
    Sum,
    Mean,
}

/// Whether an array may be an accumulator's argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrays {
    Refused,
    Taken,
}

impl AccumulatorExpression {
    /// Reads `name: {$accumulator: argument}` of `$group`.
    /// # Errors
    /// 40234, 40235, 40236, 40238, 15952 as MongoDB; errors of the argument.
    pub fn parse(field: Element<'_>, scope: &ParseScope) -> Result<Self> {
        Self::parse_with(field, Arrays::Refused, scope)
    }

    /// Whether the table has an accumulator `name`.
    pub fn exists(name: &str) -> bool {
        KINDS.iter().any(|kind| kind.name == name)
    }

    /// As [`Self::parse`], for a window, where an array is an expression too.
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_in_window(field: Element<'_>, scope: &ParseScope) -> Result<Self> {
        Self::parse_with(field, Arrays::Taken, scope)
    }

    fn parse_with(field: Element<'_>, arrays: Arrays, scope: &ParseScope) -> Result<Self> {
        let failure = |code, message: String| Failure::new(ErrorCode(code), message);
        if field.name.contains('.') {
            return Err(failure(40235, format!("The field name '{}' cannot contain '.'", field.name)));
        }
        if field.name.starts_with('$') {
            return Err(failure(40236, format!("The field name '{}' cannot be an operator name", field.name)));
        }
        let operator = field.value.as_document().filter(|document| !document.is_empty());
        let Some(operator) = operator else {
            return Err(failure(40234, format!("The field '{}' must be an accumulator object", field.name)));
        };
        let (Some(call), 1) = (operator.first(), operator.count()) else {
            return Err(failure(40238, format!("The field '{}' must specify one accumulator", field.name)));
        };
        if arrays == Arrays::Refused && call.value.as_array().is_some() {
            return Err(failure(40237, format!("The {} accumulator is a unary operator", call.name)));
        }
        let Some(kind) = KINDS.iter().find(|kind| kind.name == call.name) else {
            if !call.name.starts_with('$') {
                return Err(failure(40234, format!("The field '{}' must be an accumulator object", field.name)));
            }
            return Err(failure(15952, format!("unknown group operator '{}'", call.name)));
        };
        kind.parse(call.value, scope)
    }

    /// Makes an accumulator for a new group. `n` is evaluated on `group`, whose document is the group's `_id`.
    /// # Errors
    /// If `n` is not a count: 7548606 in the slot-based engine; 5787902, 5787903 or 5787908 in the classic one.
    pub fn make(&self, group: &EvaluationContext<'_>) -> Result<Box<dyn Accumulator>> {
        let mut count = 0;
        if !self.count.is_absent() {
            let value = self.count.evaluate(group)?;
            count = read_count(&value).map_err(|failure| match group.engine() {
                Engine::SlotBased => refuse(NO_COUNT, &crate::printed::printed(&value)),
                Engine::Classic => failure,
            })?;
        }
        let initial = self.custom.as_ref().map_or(Ok(Value::Null), |custom| custom.initial(group))?;
        let settings = Settings {
            count,
            percentiles: Arc::clone(&self.percentiles),
            engine: group.engine(),
            custom: self.custom.clone(),
            initial,
        };
        let mut accumulator = (self.kind.make)(&settings);
        if self.kind.strings == Strings::Collated {
            accumulator.collate(group.strings());
        }
        Ok(accumulator)
    }

    /// The accumulator's name, with its `$`.
    pub fn name(&self) -> &'static str {
        self.kind.name
    }

    /// The dotted path of the accumulator's input, if the input is just the value of a field.
    pub fn fed_field(&self) -> Option<String> {
        self.input.as_field()
    }

    /// The order in which the first documents of a group decide the result: as many as [`Self::kept`]. `None` if other
    /// documents may matter. Among documents with equal keys, any may decide.
    pub fn needs_first_in_order(&self) -> Option<FirstInOrder> {
        let by_value = |sign: i32| {
            let path = self.fed_field()?;
            let order = SortPattern::parse(DocumentBuf::new().with(&path, sign).as_ref()).ok()?;
            Some(FirstInOrder { order, needs_value: true })
        };
        match (self.kind.name, &self.order) {
            ("$top" | "$topN", Some(order)) => Some(FirstInOrder { order: order.clone(), needs_value: false }),
            ("$bottom" | "$bottomN", Some(order)) => Some(FirstInOrder { order: order.reversed(), needs_value: false }),
            ("$min" | "$minN", _) => by_value(1),
            ("$max" | "$maxN", _) => by_value(-1),
            _ => None,
        }
    }

    /// The number of values that the accumulator keeps: `n` if it has one, else 1. `None` if `n` is not constant, or is
    /// no valid count.
    pub fn kept(&self) -> Option<usize> {
        if self.count.is_absent() {
            return Some(1);
        }
        let count = bunko_bson::number::as_i64_exact(self.count.as_literal()?)?;
        usize::try_from(count).ok().filter(|count| *count > 0)
    }

    /// Whether the expression of the accumulator fails for no document.
    pub fn input_cannot_fail(&self) -> bool {
        self.input.cannot_fail()
    }

    /// Whether the accumulator needs only the value of its expression, and not the whole document.
    pub fn reads_paths_only(&self) -> bool {
        self.order.is_none()
    }

    /// Whether a [`Total`] is the accumulator's only state for a group, so that no [`Accumulator`] has to be made.
    #[inline]
    pub fn keeps_total(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether the accumulator adds the same constant for every document, as `{$sum: 1}` does.
    pub fn counts_documents(&self) -> bool {
        matches!(self.asked, Some(Statistic::Sum)) && self.input.is_constant()
    }

    /// Adds one document's value to the total.
    /// # Errors
    /// Errors of the expression and of counting work.
    #[inline]
    pub fn add_to(&self, total: &mut Total, context: &EvaluationContext<'_>) -> Result<()> {
        if let Operand::Number(number) = self.input.operand(context)? {
            total.add(number);
        }
        Ok(())
    }

    /// The group's value from its total; null for an accumulator without a total.
    pub fn value_of(&self, total: Total) -> Value {
        match self.asked {
            None => Value::Null,
            Some(Statistic::Sum) => total.value(),
            Some(Statistic::Mean) => total.mean(),
        }
    }

    /// The expression whose values the accumulator takes.
    pub fn input_mut(&mut self) -> &mut Expression {
        &mut self.input
    }

    /// Feeds an accumulator with one document.
    /// # Errors
    /// Errors of the expression, of the accumulator and of counting work.
    #[inline]
    pub fn feed<'a>(&'a self, accumulator: &mut dyn Accumulator, context: &EvaluationContext<'a>) -> Result<()> {
        let value = self.input.evaluate(context)?;
        context.operation().work(made::steps(value.or_null()))?;
        let Some(order) = &self.order else { return accumulator.add(value) };
        let mut key = Vec::new();
        order.append_key(&mut key, context.root(), context.operation(), context.strings())?;
        accumulator.add_sorted(key, value)
    }

    /// Takes back a document's value. The document must be the oldest one that the accumulator still holds.
    /// # Errors
    /// Errors of the expression and of counting work.
    pub fn take_back<'a>(
        &'a self,
        accumulator: &mut dyn Accumulator,
        context: &EvaluationContext<'a>,
    ) -> Result<Removal> {
        let value = self.input.evaluate(context)?;
        context.operation().work(made::steps(value.or_null()))?;
        Ok(accumulator.remove(value.comparable()))
    }

    /// Adds the fields that the accumulator's expressions read.
    pub fn add_dependencies(&self, dependencies: &mut Dependencies) {
        self.input.add_dependencies(dependencies);
        if let Some(order) = &self.order {
            order.add_dependencies(dependencies);
        }
    }
}

/// The array that `$concatArrays` or `$setUnion` receives; `None` for a missing value.
/// # Errors
/// `TypeMismatch` for any other value, null included.
fn array_input<'v>(accumulator: &str, value: &'v Evaluated<'_>) -> Result<Option<ArrayRef<'v>>> {
    match value.get() {
        None => Ok(None),
        Some(ValueRef::Array(array)) => Ok(Some(array)),
        Some(other) => {
            let kind = other.kind().alias();
            Err(Failure::type_mismatch(format!("{accumulator} requires array inputs, but input is of type {kind}")))
        }
    }
}

/// Makes an accumulator that keeps at most `count` values.
pub(crate) fn several(count: usize, which: Which) -> Box<dyn Accumulator> {
    Box::new(several::KeptValues::new(count, which))
}

/// Approximate memory of a value, in bytes.
fn value_bytes(value: ValueRef<'_>) -> usize {
    size_of::<Value>() + value.content_bytes()
}

/// Checks a value that is appended to an accumulator's array.
/// # Errors
/// `ExceededMemoryLimit` beyond 100 MiB, `Overflow` for a value that is nested too deep.
fn check_gathered(accumulator: &str, bytes: usize, value: ValueRef<'_>) -> Result<()> {
    made::check_depth(value, 1)?;
    if bytes + value.content_bytes() > made::CONTAINER_BYTES_MAX {
        return Err(made::too_large(accumulator, "used"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::handbook::{check, paragraph};

    #[test]
    fn every_accumulator_has_its_script() {
        for kind in KINDS {
            let script = format!("{}/tests/scripts/accumulators/{}", env!("CARGO_MANIFEST_DIR"), &kind.name[1..]);
            assert!(std::path::Path::new(&script).is_file(), "{} lacks {script}", kind.name);
        }
    }

    #[test]
    fn the_handbook_lists_every_accumulator() {
        check("reference/compatibility.md", "accumulators", &paragraph(KINDS.iter().map(|kind| kind.name)));
    }
}
