//! Operations that array operators share: element at a position, search range, distinct values.

use crate::Evaluated;
use crate::call::Call;
use crate::number::as_i32;
use crate::printed::printed;
use crate::variables::{EvaluationContext, check_defined_name};
use bunko_bson::{ArrayRef, StringOrder, Value, ValueRef};
use bunko_errors::{Failure, Result};

/// Approximate size of a small element, in bytes: an integer.
const ELEMENT_BYTES: usize = 8;

/// The element at a position, counted from the end if negative; missing outside the array.
/// # Errors
/// 28689 for a value that is not an array: the operator's name, `not_an_array` and the type.
pub(crate) fn element_at<'a>(
    call: &Call,
    context: &EvaluationContext<'_>,
    array: Evaluated<'a>,
    position: i32,
    not_an_array: &str,
) -> Result<Evaluated<'a>> {
    if let Some(ValueRef::Array(array)) = array.get() {
        let passed = usize::try_from(position).unwrap_or(usize::MAX);
        context.operation().work(passed.min(array.as_document().len_bytes() / ELEMENT_BYTES))?;
    }
    match array {
        Evaluated::Ref(ValueRef::Array(array)) => Ok(Evaluated::from(at(array, position))),
        Evaluated::Owned(Value::Array(array)) => Ok(Evaluated::from(at(array.as_ref(), position)).into_owned()),
        other => Err(call.failure(28689, &format!("{not_an_array}{}", other.type_name()))),
    }
}

fn at(array: ArrayRef<'_>, position: i32) -> Option<ValueRef<'_>> {
    match usize::try_from(position) {
        Ok(position) => array.get(position),
        Err(_) => array.get(array.count().checked_sub(position.unsigned_abs() as usize)?),
    }
}

/// Error codes for bounds of a search that are not integers or are negative.
#[derive(Clone, Copy)]
pub(crate) struct RangeCodes {
    pub(crate) not_integral: i32,
    pub(crate) negative: i32,
}

/// Codes of the searches in strings.
pub(crate) const STRING_RANGE: RangeCodes = RangeCodes { not_integral: 40096, negative: 40097 };

/// The range to search, from the optional third and fourth arguments: start and end, within `count`.
/// # Errors
/// The given codes, for a bound that is not an integer and for a negative one.
pub(crate) fn search_range(
    call: &Call,
    context: &EvaluationContext<'_>,
    count: usize,
    codes: RangeCodes,
) -> Result<(usize, usize)> {
    let bound = |index: usize, what: &str, default: usize| -> Result<usize> {
        let Some(value) = call.optional(index, context)? else { return Ok(default) };
        let Some(number) = value.get().and_then(as_i32) else {
            let (kind, found) = (value.type_name(), printed(&value));
            // MongoDB's message has no space in front.
            let message =
                format!("requires an integral {what} index, found a value of type: {kind}, with value: {found}");
            return Err(call.failure(codes.not_integral, &message));
        };
        usize::try_from(number).map_err(|_| {
            call.failure(codes.negative, &format!(" requires a nonnegative {what} index, found: {number}"))
        })
    };
    Ok((bound(2, "starting", 0)?, bound(3, "ending", count)?.min(count)))
}

/// An array's elements, counted as work.
/// # Errors
/// Errors of counting work.
pub(crate) fn elements<'v>(array: ArrayRef<'v>, context: &EvaluationContext<'_>) -> Result<Vec<ValueRef<'v>>> {
    context.operation().work(steps(array))?;
    Ok(array.iter().collect())
}

/// The distinct values, sorted.
/// # Errors
/// Errors of counting work.
pub(crate) fn distinct<'v>(values: Vec<ValueRef<'v>>, context: &EvaluationContext<'_>) -> Result<Vec<ValueRef<'v>>> {
    let mut values = context.operation().sort_by(values, |a, b| context.strings().compare(*a, *b))?;
    values.dedup_by(|a, b| context.strings().equal(*a, *b));
    Ok(values)
}

/// Work of reading all elements of an array.
pub(crate) fn steps(array: ArrayRef<'_>) -> usize {
    1 + array.as_document().len_bytes() / ELEMENT_BYTES
}

/// The position of a value among sorted values, or as an error the position to insert it at.
pub(crate) fn position(
    values: &[ValueRef<'_>],
    wanted: ValueRef<'_>,
    strings: &StringOrder,
) -> std::result::Result<usize, usize> {
    values.binary_search_by(|value| strings.compare(*value, wanted))
}

/// Whether sorted values contain `wanted`.
pub(crate) fn contains(values: &[ValueRef<'_>], wanted: ValueRef<'_>, strings: &StringOrder) -> bool {
    position(values, wanted, strings).is_ok()
}

/// The variable's name from `as`; `this` without one.
pub(crate) fn element_name(given: Option<ValueRef<'_>>) -> Result<&str> {
    let Some(value) = given else { return Ok("this") };
    let Some(name) = value.as_str() else {
        return Err(Failure::failed_to_parse("empty variable names are not allowed"));
    };
    check_defined_name(name)?;
    Ok(name)
}
