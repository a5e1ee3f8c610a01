//! The table of accumulators: one file and one line each.

mod add_to_set;
pub(crate) mod avg;
mod concat_arrays;
mod count;
mod custom;
mod deviation;
mod extreme;
mod first;
mod first_n;
mod last;
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

use crate::call::{Parameters, Refusal, refuse};
use crate::number::Operand;
use crate::percentiles::Place;
use crate::summation::Total;
use crate::{
    Dependencies, Engine, Evaluated, EvaluationContext, Expression, ParseScope, SortPattern, made, percentiles,
};
use bunko_bson::{ArrayRef, Element, StringOrder, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use custom::Custom;
pub(crate) use several::Which;
use std::sync::Arc;

static KINDS: &[Kind] = &[
    add_to_set::KIND,
    avg::KIND,
    concat_arrays::KIND,
    count::KIND,
    custom::ACCUMULATOR,
    custom::REDUCE,
    first::KIND,
    first_n::KIND,
    last::KIND,
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

/// What a group keeps of its documents.
pub trait Accumulator: Send {
    /// Takes one document's value.
    /// # Errors
    /// Where the value's type is refused.
    fn add(&mut self, value: Evaluated<'_>) -> Result<()>;

    /// Takes one document's value together with its key in the order that the accumulator asked for.
    /// # Errors
    /// As [`Self::add`].
    fn add_sorted(&mut self, _key: Vec<u8>, value: Evaluated<'_>) -> Result<()> {
        self.add(value)
    }

    /// Takes back the value that was added before all others that it still has.
    fn remove(&mut self, _value: ValueRef<'_>) -> Removal {
        Removal::Impossible
    }

    /// The value of what was added up to now.
    fn value(&self) -> Value;

    /// The group's value, of which nothing else is needed.
    fn finish(self: Box<Self>) -> Value {
        self.value()
    }

    /// Says in which order strings are; told once, before the first value. Only accumulators that compare listen.
    fn collate(&mut self, _strings: &StringOrder) {}

    /// The same where it may fail: what a script makes of it.
    /// # Errors
    /// Those of the script.
    fn outcome(self: Box<Self>) -> Result<Value> {
        Ok(self.finish())
    }

    /// Memory that it holds now, in bytes.
    fn memory_bytes(&self) -> usize;
}

/// Whether a value was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It was.
    Done,
    /// It was not: the accumulator must be made anew from the values that are left.
    Impossible,
}

/// What an accumulator is told beside its input.
pub(crate) struct Settings {
    /// `n` where the form has it, else 0.
    pub(crate) count: usize,
    /// `p` of `$percentile`, else empty.
    pub(crate) percentiles: Arc<[f64]>,
    /// Whose errors are told.
    pub(crate) engine: Engine,
    /// The scripts that it is made of, else none.
    pub(crate) custom: Option<Arc<Custom>>,
    /// What the first of them was called with.
    pub(crate) initial: Value,
}

/// One entry of the table.
struct Kind {
    /// With its `$`.
    name: &'static str,
    form: Form,
    /// Makes one for a new group.
    make: fn(&Settings) -> Box<dyn Accumulator>,
}

/// How an accumulator's argument is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `{$sum: expression}`.
    Expression,
    /// `{$count: {}}`.
    Empty,
    /// `{$firstN: {input: expression, n: expression}}`.
    InputAndCount,
    /// The same, of operators that rank values.
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

/// Those of `$firstN` and `$lastN`, as accumulators and as expressions.
pub(crate) const INPUT_AND_COUNT: Parameters = input_and_count(5_787_801);
/// Those of `$maxN` and `$minN`.
pub(crate) const RANKED_INPUT_AND_COUNT: Parameters = input_and_count(5_787_900);

const fn input_and_count(not_an_object: i32) -> Parameters {
    Parameters {
        not_an_object: (not_an_object, "specification must be an object; found {}"),
        unknown: (5_787_901, "Unknown argument for 'n' operator: {}"),
        names: &[
            ("n", Some((5_787_906, "Missing value for 'n'"))),
            ("input", Some((5_787_907, "Missing value for 'input'"))),
        ],
    }
}
const ORDERED: Parameters = Parameters {
    not_an_object: (5_788_001, "specification must be an object; found {}"),
    unknown: (5_788_002, "Unknown argument to accumulator: {}"),
    names: &[
        ("output", Some((5_788_004, "Missing value for 'output'"))),
        ("sortBy", Some((5_788_005, "Missing value for 'sortBy'"))),
    ],
};
const ORDERED_AND_COUNT: Parameters = Parameters {
    names: &[
        ("n", Some((5_788_003, "Missing value for 'n'"))),
        ("output", Some((5_788_004, "Missing value for 'output'"))),
        ("sortBy", Some((5_788_005, "Missing value for 'sortBy'"))),
    ],
    ..ORDERED
};
/// That of a group; expressions and windows name what is wrong with `n`.
const NO_COUNT: Refusal = (7_548_606, "parameter 'n' must be coercible to a positive 64-bit integer, found {}");
const NO_NUMBER: Refusal = (5_787_902, "Value for 'n' must be of integral type, but found {}");
const NO_INTEGER: Refusal = (5_787_903, "Value for 'n' must be of integral type, but found {}");
const NOT_POSITIVE: Refusal = (5_787_908, "'n' must be greater than 0, found {}");

/// An accumulator and the expression that feeds it.
pub struct AccumulatorExpression {
    kind: &'static Kind,
    input: Expression,
    /// `n`, or absent where the form has none.
    count: Expression,
    /// Of an accumulator with an order of its own.
    order: Option<SortPattern>,
    /// `p` of `$percentile`, else empty.
    percentiles: Arc<[f64]>,
    /// The scripts of `$accumulator`, else none.
    custom: Option<Arc<Custom>>,
    /// What is asked of a total, where one is all that it keeps of a group.
    asked: Option<Asked>,
}

/// What a total is kept for.
#[derive(Clone, Copy)]
enum Asked {
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
    /// 40234, 40235, 40236, 40238, 15952 as MongoDB; those of the argument.
    pub fn parse(field: Element<'_>, scope: &ParseScope) -> Result<Self> {
        Self::parse_with(field, Arrays::Refused, scope)
    }

    /// Whether there is an accumulator of that name.
    pub fn exists(name: &str) -> bool {
        KINDS.iter().any(|kind| kind.name == name)
    }

    /// The same for a window, where an array is an expression too.
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

    /// An accumulator for a new group. The document of `group` is the group's `_id`: all that `n` may read.
    /// # Errors
    /// 7548606 for an `n` that is no count.
    pub fn make(&self, group: &EvaluationContext<'_>) -> Result<Box<dyn Accumulator>> {
        let mut count = 0;
        if !self.count.is_absent() {
            let value = self.count.evaluate(group)?;
            count = read_count(&value).map_err(|_| refuse(NO_COUNT, &crate::printed::printed(&value)))?;
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
        accumulator.collate(group.strings());
        Ok(accumulator)
    }

    /// With its `$`.
    pub fn name(&self) -> &'static str {
        self.kind.name
    }

    /// Whether it is fed by its expression alone, without a look at the document.
    pub fn reads_paths_only(&self) -> bool {
        self.order.is_none()
    }

    /// Whether a [`Total`] is all that it keeps of a group, so that it needs no [`Accumulator`].
    #[inline]
    pub fn keeps_total(&self) -> bool {
        self.asked.is_some()
    }

    /// Adds what one document adds to the total that it keeps.
    /// # Errors
    /// Those of the expression, what the operation says.
    #[inline]
    pub fn add_to(&self, total: &mut Total, context: &EvaluationContext<'_>) -> Result<()> {
        if let Operand::Number(number) = self.input.operand(context)? {
            total.add(number);
        }
        Ok(())
    }

    /// The group's value, of the total that it keeps; null for one that keeps none.
    pub fn value_of(&self, total: Total) -> Value {
        match self.asked {
            None => Value::Null,
            Some(Asked::Sum) => total.value(),
            Some(Asked::Mean) => total.mean(),
        }
    }

    /// What it is fed with.
    pub fn input_mut(&mut self) -> &mut Expression {
        &mut self.input
    }

    /// Feeds an accumulator with what one document adds.
    /// # Errors
    /// Those of the expression and of the accumulator, what the operation says.
    #[inline]
    pub fn feed<'a>(&'a self, accumulator: &mut dyn Accumulator, context: &EvaluationContext<'a>) -> Result<()> {
        let value = self.input.evaluate(context)?;
        context.operation().work(made::steps(value.or_null()))?;
        let Some(order) = &self.order else { return accumulator.add(value) };
        let mut key = Vec::new();
        order.append_key(&mut key, context.root(), context.operation(), context.strings())?;
        accumulator.add_sorted(key, value)
    }

    /// Takes back what the document added that was fed before all others that are left.
    /// # Errors
    /// Those of the expression, what the operation says.
    pub fn take_back<'a>(
        &'a self,
        accumulator: &mut dyn Accumulator,
        context: &EvaluationContext<'a>,
    ) -> Result<Removal> {
        let value = self.input.evaluate(context)?;
        context.operation().work(made::steps(value.or_null()))?;
        Ok(accumulator.remove(value.comparable()))
    }

    /// Adds the fields that it reads.
    pub fn add_dependencies(&self, dependencies: &mut Dependencies) {
        self.input.add_dependencies(dependencies);
        if let Some(order) = &self.order {
            order.add_dependencies(dependencies);
        }
    }
}

impl Kind {
    fn parse(&'static self, argument: ValueRef<'_>, scope: &ParseScope) -> Result<AccumulatorExpression> {
        let mut parsed = AccumulatorExpression {
            kind: self,
            input: Expression::ABSENT,
            count: Expression::ABSENT,
            order: None,
            percentiles: Arc::default(),
            custom: None,
            asked: match self.name {
                "$sum" | "$count" => Some(Asked::Sum),
                "$avg" => Some(Asked::Mean),
                _ => None,
            },
        };
        match self.form {
            Form::Expression => parsed.input = Expression::parse(argument, scope)?,
            Form::Empty => {
                if argument.as_document().is_none_or(|document| !document.is_empty()) {
                    let message = format!("{} takes no arguments, i.e. {}:{{}}", self.name, self.name);
                    return Err(Failure::type_mismatch(message));
                }
                // As a total, it is the sum of ones.
                parsed.input = Expression::literal(Value::Int32(1));
            }
            Form::InputAndCount | Form::RankedInputAndCount => {
                let is_ranked = self.form == Form::RankedInputAndCount;
                let parameters = if is_ranked { &RANKED_INPUT_AND_COUNT } else { &INPUT_AND_COUNT };
                let mut arguments = parameters.parse(argument, scope)?;
                parsed.input = arguments.remove(1);
                parsed.count = arguments.remove(0);
            }
            Form::Ordered => parsed.read_ordered(&ORDERED.read(argument)?, scope)?,
            Form::OrderedAndCount => {
                let given = ORDERED_AND_COUNT.read(argument)?;
                if let Some(count) = given[0] {
                    parsed.count = Expression::parse(count, scope)?;
                }
                parsed.read_ordered(&given[1..], scope)?;
            }
            Form::Percentiles => {
                (parsed.input, parsed.percentiles) =
                    percentiles::parse_percentile(argument, scope, Place::Accumulator)?;
            }
            Form::Custom => {
                let (custom, input) = Custom::parse(argument, scope)?;
                (parsed.custom, parsed.input) = (Some(Arc::new(custom)), input);
            }
            Form::Reduce => {
                let (custom, input) = Custom::parse_reduce(argument, scope)?;
                (parsed.custom, parsed.input) = (Some(Arc::new(custom)), input);
            }
            Form::Median => parsed.input = percentiles::parse_median(argument, scope, Place::Accumulator)?,
        }
        Ok(parsed)
    }
}

impl AccumulatorExpression {
    /// Takes `output` and `sortBy`.
    fn read_ordered(&mut self, given: &[Option<ValueRef<'_>>], scope: &ParseScope) -> Result<()> {
        if let Some(output) = given[0] {
            self.input = Expression::parse(output, scope)?;
        }
        match given[1] {
            Some(ValueRef::Document(pattern)) if pattern.is_empty() => {
                let message = "Value for 'sortBy' must be a non-empty object";
                return Err(Failure::new(ErrorCode(9_657_900), message));
            }
            Some(ValueRef::Document(pattern)) => self.order = Some(SortPattern::parse(pattern)?),
            other => {
                let found = other.map_or("missing", |value| value.kind().alias());
                let message = format!("invalid parameter: expected an object (sortBy), found: {found}");
                return Err(Failure::new(ErrorCode(10065), message));
            }
        }
        Ok(())
    }
}

/// The array that `$concatArrays` or `$setUnion` is given; nothing for a missing value.
/// # Errors
/// `TypeMismatch` for anything else, null too.
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

/// Keeps at most `count` values.
pub(crate) fn several(count: usize, which: Which) -> Box<dyn Accumulator> {
    Box::new(several::Several::new(count, which))
}

/// Reads `n`.
/// # Errors
/// 5787902, 5787903 and 5787908 for what is no count.
pub(crate) fn read_count(value: &Evaluated<'_>) -> Result<usize> {
    let number = value.get().and_then(bunko_bson::number::as_i64_exact);
    let number = number.ok_or_else(|| {
        let refusal = if value.get().is_some_and(ValueRef::is_number) { NO_INTEGER } else { NO_NUMBER };
        refuse(refusal, &crate::printed::printed(value))
    })?;
    match usize::try_from(number) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(refuse(NOT_POSITIVE, &number.to_string())),
    }
}

/// What a value takes in memory, about.
fn value_bytes(value: ValueRef<'_>) -> usize {
    size_of::<Value>() + made::content_bytes(value)
}

/// Checks a value that joins others in an array.
/// # Errors
/// `ExceededMemoryLimit` beyond 100 MiB, `Overflow` for one that is nested too deep.
fn check_gathered(accumulator: &str, bytes: usize, value: ValueRef<'_>) -> Result<()> {
    made::check_depth(value, 1)?;
    if bytes + made::content_bytes(value) > made::CONTAINER_BYTES_MAX {
        return Err(made::too_large(accumulator, "used"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accumulator_has_its_script() {
        for kind in KINDS {
            let script = format!("{}/tests/scripts/accumulators/{}", env!("CARGO_MANIFEST_DIR"), &kind.name[1..]);
            assert!(std::path::Path::new(&script).is_file(), "{} lacks {script}", kind.name);
        }
    }
}
