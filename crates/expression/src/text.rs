//! Strings: what other types become as one, and where characters are.

use crate::{Evaluated, calendar};
use bunko_bson::ValueRef;
use bunko_errors::{ErrorCode, Failure, Result};
use std::borrow::Cow;

/// A double in its shortest form that reads back the same: `3`, `2.5`, `1e+300`.
pub(crate) fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// The string that string operators see; null and missing are empty.
/// # Errors
/// 16007 for types that have no text, 18537 for a date whose year has other than four digits.
pub(crate) fn coerced<'v>(value: &'v Evaluated<'_>) -> Result<Cow<'v, str>> {
    Ok(match value.get() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Cow::Borrowed(""),
        Some(ValueRef::String(text) | ValueRef::JavaScript(text) | ValueRef::Symbol(text)) => Cow::Borrowed(text),
        Some(ValueRef::Int32(number)) => Cow::Owned(number.to_string()),
        Some(ValueRef::Int64(number)) => Cow::Owned(number.to_string()),
        Some(ValueRef::Double(number)) => Cow::Owned(double_text(number)),
        Some(ValueRef::Decimal128(number)) => Cow::Owned(number.to_string()),
        Some(ValueRef::DateTime(ms)) => Cow::Owned(calendar::converted_text(ms)?),
        Some(other) => {
            let message = format!("can't convert from BSON type {} to String", other.kind().alias());
            return Err(Failure::new(ErrorCode(16007), message));
        }
    })
}

/// Where the character at a position starts, in bytes; the string's end behind the last.
pub(crate) fn byte_of_character(text: &str, position: usize) -> Option<usize> {
    text.char_indices().map(|(byte, _)| byte).chain([text.len()]).nth(position)
}
