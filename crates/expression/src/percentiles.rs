//! `$percentile` and `$median`, as expressions and as accumulators: their arguments, and sorted numbers.
//! Source: MongoDB manual, "$percentile".

use crate::number::Number;
use crate::{Expression, ParseScope};
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, DocumentRef, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

/// Up to this many percentiles are selected from unsorted numbers; for more, sorting is cheaper.
const SELECTIONS_MAX: usize = 4;

/// Numbers of which percentiles are taken. All are kept, so that the method `approximate` is exact.
#[derive(Clone, Default)]
pub(crate) struct Digest {
    numbers: Vec<f64>,
}

impl Digest {
    /// Takes a number; all else is passed over, NaN too.
    pub(crate) fn add(&mut self, value: ValueRef<'_>) {
        let number = Number::of(value).map(Number::to_f64).filter(|number| !number.is_nan());
        self.numbers.extend(number);
    }

    /// The least number that at least this part of all numbers does not exceed; `None` without numbers.
    pub(crate) fn percentile(&mut self, wanted: f64) -> Option<f64> {
        let position = self.position(wanted)?;
        Some(*self.numbers.select_nth_unstable_by(position, f64::total_cmp).1)
    }

    /// The percentile for each fraction; nulls without numbers.
    pub(crate) fn percentiles(&mut self, wanted: &[f64]) -> Value {
        let is_sorted = wanted.len() > SELECTIONS_MAX;
        if is_sorted {
            self.numbers.sort_unstable_by(f64::total_cmp);
        }
        let found = wanted.iter().map(|&wanted| {
            let found = if is_sorted {
                self.position(wanted).map(|position| self.numbers[position])
            } else {
                self.percentile(wanted)
            };
            found.map_or(Value::Null, Value::Double)
        });
        Value::Array(found.collect::<Vec<_>>().iter().map(Value::as_ref).collect::<ArrayBuf>())
    }

    /// The position of a percentile in the sorted numbers; `None` without numbers.
    fn position(&self, wanted: f64) -> Option<usize> {
        let rank = (wanted * self.numbers.len() as f64).ceil() as usize;
        Some(rank.saturating_sub(1)).filter(|position| *position < self.numbers.len())
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.numbers.capacity() * size_of::<f64>()
    }
}

/// The use of an operator, which decides the error code for an argument that is not a document.
#[derive(Clone, Copy)]
pub(crate) enum UsedAs {
    Accumulator,
    Expression,
}

impl UsedAs {
    fn code(self, accumulator: i32, expression: i32) -> ErrorCode {
        ErrorCode(if let Self::Accumulator = self { accumulator } else { expression })
    }
}

/// Reads the arguments of `$median`.
/// # Errors
/// 7436100 or 7436201 if the argument is not a document, `IDLFailedToParse` and `IDLUnknownField` for its fields,
/// `BadValue` for another method.
pub(crate) fn parse_median(value: ValueRef<'_>, scope: &ParseScope, place: UsedAs) -> Result<Expression> {
    let Some(arguments) = value.as_document() else {
        let message = format!("specification must be an object; found $median: {}", ValueText(value));
        return Err(Failure::new(place.code(7_436_100, 7_436_201), message));
    };
    check_fields("$median", arguments, &["input", "method"])?;
    check_method("$median", arguments)?;
    Expression::parse(arguments.get("input").unwrap_or(ValueRef::Null), scope)
}

/// Reads the arguments of `$percentile`.
/// # Errors
/// As [`parse_median`], but 7429703 or 7436200 if the argument is not a document. 7750300 to 7750303 if `p` is not a
/// list of numbers from 0 to 1, whatever the method is.
pub(crate) fn parse_percentile(
    value: ValueRef<'_>,
    scope: &ParseScope,
    place: UsedAs,
) -> Result<(Expression, Arc<[f64]>)> {
    let Some(arguments) = value.as_document() else {
        let message = format!("specification must be an object; found $percentile: {}", ValueText(value));
        return Err(Failure::new(place.code(7_429_703, 7_436_200), message));
    };
    check_fields("$percentile", arguments, &["input", "p", "method"])?;
    let wanted = Expression::parse(arguments.get("p").unwrap_or(ValueRef::Null), scope)?;
    let input = Expression::parse(arguments.get("input").unwrap_or(ValueRef::Null), scope)?;
    let wanted = read_wanted(wanted.constant_value(scope)?.as_ref())?;
    check_method("$percentile", arguments)?;
    Ok((input, wanted))
}

fn read_wanted(wanted: Option<&Value>) -> Result<Arc<[f64]>> {
    let Some(value) = wanted else {
        let message = "The $percentile 'p' field must be an array of constant values".to_owned();
        return Err(Failure::new(ErrorCode(7_750_300), message));
    };
    let refusal = |code, found: ValueRef<'_>| {
        let found = crate::printed::printed_value(found);
        let message =
            format!("The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {found}");
        Failure::new(ErrorCode(code), message)
    };
    let value = value.as_ref();
    let array = value.as_array().filter(|array| !array.is_empty()).ok_or_else(|| refusal(7_750_301, value))?;
    array
        .iter()
        .map(|value| {
            let number = Number::of(value).map(Number::to_f64).ok_or_else(|| refusal(7_750_302, value))?;
            if (0.0..=1.0).contains(&number) { Ok(number) } else { Err(refusal(7_750_303, value)) }
        })
        .collect()
}

fn check_fields(operator: &str, arguments: DocumentRef<'_>, known: &[&str]) -> Result<()> {
    if let Some(unknown) = arguments.iter().find(|field| !known.contains(&field.name)) {
        return Err(Failure::unknown_field(format_args!("{operator}.{}", unknown.name)));
    }
    if let Some(missing) = known.iter().find(|name| arguments.get(name).is_none()) {
        return Err(Failure::missing_field(format_args!("{operator}.{missing}")));
    }
    Ok(())
}

fn check_method(operator: &str, arguments: DocumentRef<'_>) -> Result<()> {
    match arguments.get("method") {
        Some(ValueRef::String("approximate")) => Ok(()),
        Some(ValueRef::String(_)) => {
            Err(Failure::bad_value("Currently only 'approximate' can be used as percentile 'method'."))
        }
        other => {
            let found = other.map_or("missing", |value| value.kind().alias());
            let message = format!("BSON field '{operator}.method' is the wrong type '{found}', expected type 'string'");
            Err(Failure::type_mismatch(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::cpu_time::CpuTime;
    use std::time::Duration;

    #[test]
    fn many_percentiles_are_those_that_a_few_are_and_take_hardly_longer() {
        let mut digest = Digest::default();
        let count = 200_000;
        (0..count).for_each(|place| digest.add(ValueRef::Int32(place * 7919 % count)));
        let wanted: Vec<f64> = (0..=1000).map(|part| f64::from(part) / 1000.0).collect();
        let mut few = digest.clone();
        let began = CpuTime::now();
        let Value::Array(many) = digest.percentiles(&wanted) else { panic!("an array") };
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        let many: Vec<_> = many.as_ref().iter().map(|found| Number::of(found).map(Number::to_f64)).collect();
        for place in [0, 1, 500, 999, 1000] {
            assert_eq!(many[place], few.percentile(wanted[place]), "{place}");
        }
        assert_eq!(many[1000], Some(f64::from(count - 1)));
    }
}
