//! The forms of an accumulator's argument, and reading them.

use super::{AccumulatorExpression, Custom, Form, Kind, Statistic};
use crate::call::{Parameters, Refusal, refuse};
use crate::percentiles::{self, UsedAs};
use crate::{Evaluated, Expression, ParseScope, SortPattern};
use bunko_bson::{Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

/// Parameters of `$firstN` and `$lastN`, as accumulators and as expressions.
pub(crate) const INPUT_AND_COUNT: Parameters = input_and_count(5_787_801);
/// Parameters of `$maxN` and `$minN`.
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

const NO_NUMBER: Refusal = (5_787_902, "Value for 'n' must be of integral type, but found {}");
const NO_INTEGER: Refusal = (5_787_903, "Value for 'n' must be of integral type, but found {}");
const NOT_POSITIVE: Refusal = (5_787_908, "'n' must be greater than 0, found {}");

impl Kind {
    pub(super) fn parse(&'static self, argument: ValueRef<'_>, scope: &ParseScope) -> Result<AccumulatorExpression> {
        let mut parsed = AccumulatorExpression {
            kind: self,
            input: Expression::ABSENT,
            count: Expression::ABSENT,
            order: None,
            percentiles: Arc::default(),
            custom: None,
            asked: match self.name {
                "$sum" | "$count" => Some(Statistic::Sum),
                "$avg" => Some(Statistic::Mean),
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
                // `$count` is evaluated as `{$sum: 1}`.
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
                    percentiles::parse_percentile(argument, scope, UsedAs::Accumulator)?;
            }
            Form::Custom => {
                let (custom, input) = Custom::parse(argument, scope)?;
                (parsed.custom, parsed.input) = (Some(Arc::new(custom)), input);
            }
            Form::Reduce => {
                let (custom, input) = Custom::parse_reduce(argument, scope)?;
                (parsed.custom, parsed.input) = (Some(Arc::new(custom)), input);
            }
            Form::Median => parsed.input = percentiles::parse_median(argument, scope, UsedAs::Accumulator)?,
        }
        Ok(parsed)
    }
}

impl AccumulatorExpression {
    /// Reads `output` and `sortBy`, in this order in `given`.
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

/// Reads `n`.
/// # Errors
/// 5787902, 5787903 and 5787908 for an invalid count.
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
