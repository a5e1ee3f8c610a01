//! Strings: conversions of other types to strings, and the places of characters.

use crate::Evaluated;
use crate::calendar::{self, Civil};
use bunko_bson::{Timestamp, ValueRef};
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

/// A double in six digits, as C's `%g` prints it: `1e+06`, `0.1`, `nan`.
pub(crate) fn short_text(number: f64) -> String {
    const DIGITS: i32 = 6;
    if !number.is_finite() {
        return double_text(number).to_ascii_lowercase().replace("infinity", "inf");
    }
    let scientific = format!("{number:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let shortened = |text: &str| {
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
        text.to_owned()
    };
    if !(-4..DIGITS).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", shortened(mantissa), exponent.abs());
    }
    let places = (DIGITS - 1 - exponent) as usize;
    shortened(&format!("{number:.places$}"))
}

/// A timestamp as C's `ctime` prints its time, and its increment: `Jan  1 00:00:01:1`.
fn timestamp_text(timestamp: Timestamp) -> String {
    let time = Civil::of(i64::from(timestamp.seconds) * calendar::MS_PER_SECOND);
    let month = &calendar::MONTHS[(time.month - 1) as usize][..3];
    let (hour, minute, second) = (time.hour, time.minute, time.second);
    format!("{month} {:2} {hour:02}:{minute:02}:{second:02}:{}", time.day, timestamp.increment)
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
        Some(ValueRef::Double(number)) => Cow::Owned(short_text(number)),
        Some(ValueRef::Decimal128(number)) => Cow::Owned(number.to_string()),
        Some(ValueRef::DateTime(ms)) => Cow::Owned(calendar::converted_text(ms)?),
        Some(ValueRef::Timestamp(timestamp)) => Cow::Owned(timestamp_text(timestamp)),
        Some(other) => {
            let message = format!("can't convert from BSON type {} to String", other.kind().alias());
            return Err(Failure::new(ErrorCode(16007), message));
        }
    })
}

/// The offset in bytes of the character at a position; the string's length for the position after the last character.
pub(crate) fn byte_of_character(text: &str, position: usize) -> Option<usize> {
    text.char_indices().map(|(byte, _)| byte).chain([text.len()]).nth(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_printed_in_six_digits() {
        for (number, text) in [
            (1_000_000.0, "1e+06"),
            (999_999.5, "1e+06"),
            (123_456.789, "123457"),
            (1.234_567, "1.23457"),
            (0.1, "0.1"),
            (100.0, "100"),
            (0.000_012, "1.2e-05"),
            (-0.0, "-0"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(short_text(number), text);
        }
    }
}
