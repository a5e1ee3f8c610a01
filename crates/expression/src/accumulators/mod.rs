//! The table of accumulators: one file and one line each.

mod add_to_set;
pub(crate) mod avg;
mod count;
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
mod push;
mod several;
pub(crate) mod std_dev_pop;
pub(crate) mod std_dev_samp;
pub(crate) mod sum;

use crate::call::{Parameters, Refusal, refuse};
use crate::{Dependencies, Evaluated, EvaluationContext, Expression, ParseScope, made};
use bunko_bson::{Element, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// The accumulators of `$group` that MongoDB 8.2 has and the table below may lack: they are called missing, and not
/// unknown.
/// Source: MongoDB manual 8.2, "$group", "Accumulator Operator".
const KNOWN: &[&str] =
    &["$accumulator", "$bottom", "$bottomN", "$concatArrays", "$median", "$percentile", "$setUnion", "$top", "$topN"];

static KINDS: &[Kind] = &[
    add_to_set::KIND,
    avg::KIND,
    count::KIND,
    first::KIND,
    first_n::KIND,
    last::KIND,
    last_n::KIND,
    max::KIND,
    max_n::KIND,
    merge_objects::KIND,
    min::KIND,
    min_n::KIND,
    push::KIND,
    std_dev_pop::KIND,
    std_dev_samp::KIND,
    sum::KIND,
];

/// What a group keeps of its documents.
pub trait Accumulator: Send {
    /// Takes one document's value.
    /// # Errors
    /// Where the value's type is refused.
    fn add(&mut self, value: Evaluated<'_>) -> Result<()>;

    /// The group's value.
    fn finish(self: Box<Self>) -> Value;

    /// Memory that it holds now, in bytes.
    fn memory_bytes(&self) -> usize;
}

/// One entry of the table.
struct Kind {
    /// With its `$`.
    name: &'static str,
    form: Form,
    /// Makes one for a new group; `n` where the form has it, else 0.
    make: fn(usize) -> Box<dyn Accumulator>,
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
}

const INPUT_AND_COUNT: Parameters = Parameters {
    not_an_object: (5_787_801, "specification must be an object; found {}"),
    unknown: (5_787_901, "Unknown argument for 'n' operator: {}"),
    names: &[
        ("input", Some((5_787_907, "Missing value for 'input'"))),
        ("n", Some((5_787_906, "Missing value for 'n'"))),
    ],
};
const NO_NUMBER: Refusal = (5_787_902, "Value for 'n' must be of integral type, but found {}");
const NO_INTEGER: Refusal = (5_787_903, "Value for 'n' must be of integral type, but found {}");
const NOT_POSITIVE: Refusal = (5_787_908, "'n' must be greater than 0, found {}");

/// An accumulator and the expression that feeds it.
pub struct AccumulatorExpression {
    kind: &'static Kind,
    input: Expression,
    /// `n`, or absent where the form has none.
    count: Expression,
}

impl AccumulatorExpression {
    /// Reads `name: {$accumulator: argument}` of `$group`.
    /// # Errors
    /// 40234, 40235, 40236, 40238, 15952 as MongoDB; those of the argument.
    pub fn parse(field: Element<'_>, scope: &ParseScope) -> Result<Self> {
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
        if call.value.as_array().is_some() {
            return Err(failure(40237, format!("The {} accumulator is a unary operator", call.name)));
        }
        let Some(kind) = KINDS.iter().find(|kind| kind.name == call.name) else {
            if KNOWN.contains(&call.name) {
                return Err(Failure::not_supported_yet(call.name));
            }
            return Err(failure(15952, format!("unknown group operator '{}'", call.name)));
        };
        kind.parse(call.value, scope)
    }

    /// An accumulator for a new group. The document of `group` is the group's `_id`: all that `n` may read.
    /// # Errors
    /// 5787902, 5787903 and 5787908 for an `n` that is no count.
    pub fn make(&self, group: &EvaluationContext<'_>) -> Result<Box<dyn Accumulator>> {
        let count = if self.count.is_absent() { 0 } else { read_count(&self.count.evaluate(group)?)? };
        Ok((self.kind.make)(count))
    }

    /// Feeds an accumulator with what one document adds.
    /// # Errors
    /// Those of the expression and of the accumulator, what the operation says.
    #[inline]
    pub fn feed<'a>(&'a self, accumulator: &mut dyn Accumulator, context: &EvaluationContext<'a>) -> Result<()> {
        let value = self.input.evaluate(context)?;
        context.operation().work(made::steps(value.or_null()))?;
        accumulator.add(value)
    }

    /// Adds the fields that it reads.
    pub fn add_dependencies(&self, dependencies: &mut Dependencies) {
        self.input.add_dependencies(dependencies);
    }
}

impl Kind {
    fn parse(&'static self, argument: ValueRef<'_>, scope: &ParseScope) -> Result<AccumulatorExpression> {
        let input = match self.form {
            Form::Expression => Expression::parse(argument, scope)?,
            Form::Empty => {
                if argument.as_document().is_none_or(|document| !document.is_empty()) {
                    let message = format!("{} takes no arguments, i.e. {}:{{}}", self.name, self.name);
                    return Err(Failure::type_mismatch(message));
                }
                Expression::literal(Value::Null)
            }
            Form::InputAndCount => {
                let mut arguments = INPUT_AND_COUNT.parse(argument, scope)?;
                let count = arguments.remove(1);
                return Ok(AccumulatorExpression { kind: self, input: arguments.remove(0), count });
            }
        };
        Ok(AccumulatorExpression { kind: self, input, count: Expression::ABSENT })
    }
}

fn read_count(value: &Evaluated<'_>) -> Result<usize> {
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
