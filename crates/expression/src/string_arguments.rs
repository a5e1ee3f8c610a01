//! Arguments that several string operators share.

use crate::call::Call;
use crate::printed::printed;
use crate::variables::EvaluationContext;
use crate::{Evaluated, made};
use bunko_bson::{Rounding, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};

/// The text or the searched part of `$indexOfBytes` and `$indexOfCP`.
/// # Errors
/// `code` if the argument, named by its `position`, is not a string.
pub(crate) fn searched<'v>(call: &Call, value: &'v Evaluated<'_>, code: i32, position: &str) -> Result<&'v str> {
    value.get().and_then(ValueRef::as_str).ok_or_else(|| {
        let message = format!(" requires a string as the {position} argument, found: {}", value.type_name());
        call.failure(code, &message)
    })
}

/// Reads the position or the length of a part of a string.
/// # Errors
/// `code` where the argument is not a number, 31109 for a double that is not an integer of 64 bits.
pub(crate) fn extent(call: &Call, value: &Evaluated<'_>, code: i32, what: &str) -> Result<i64> {
    match value.get() {
        Some(ValueRef::Double(double)) => number::truncate_to_i64(ValueRef::Double(double)).ok_or_else(|| {
            let message = format!("Can't coerce out of range value {} to long", printed(value));
            Failure::new(ErrorCode(31109), message)
        }),
        // A decimal that no integer can hold becomes the least integer.
        Some(ValueRef::Decimal128(decimal)) => {
            let rounded = decimal.round_to_exponent(0, Rounding::HalfEven);
            Ok(number::truncate_to_i64(ValueRef::Decimal128(rounded)).unwrap_or(i64::MIN))
        }
        Some(number) if number.is_number() => Ok(number::truncate_to_i64(number).unwrap_or(i64::MAX)),
        _ => {
            let message =
                format!("{}: {what} must be a numeric type (is BSON type {})", call.name(), value.type_name());
            Err(Failure::new(ErrorCode(code), message))
        }
    }
}

/// Evaluates `$replaceOne` and `$replaceAll`, which replace at most the given number of occurrences.
/// # Errors
/// 10503904, 10503901 and 10503902 for an argument that is not a string, 16493 for a text that becomes too long.
pub(crate) fn replaced<'a>(call: &'a Call, context: &EvaluationContext<'a>, most: usize) -> Result<Evaluated<'a>> {
    let values = [call.argument(0, context)?, call.argument(1, context)?, call.argument(2, context)?];
    for ((value, name), code) in
        values.iter().zip(["input", "find", "replacement"]).zip([10_503_904, 10_503_901, 10_503_902])
    {
        if !value.is_nullish() && !matches!(value.get(), Some(ValueRef::String(_))) {
            return Err(call.failure(code, &format!(" requires that '{name}' be a string, found: {}", printed(value))));
        }
    }
    let [Some(text), Some(find), Some(replacement)] =
        [0, 1, 2].map(|index: usize| values[index].get().and_then(ValueRef::as_str))
    else {
        return Ok(Evaluated::null());
    };
    context.operation().work(made::text_steps(text) + made::text_steps(find))?;
    let mut replaced = String::new();
    let mut end = 0;
    for (start, found) in text.match_indices(find).take(most) {
        let before = &text[end..start];
        made::check_string_length(replaced.len() + before.len() + replacement.len())?;
        context.operation().work(made::text_steps(replacement))?;
        replaced.push_str(before);
        replaced.push_str(replacement);
        end = start + found.len();
    }
    replaced.push_str(&text[end..]);
    made::string(replaced, context)
}
