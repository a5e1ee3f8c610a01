//! Conversion between types, for `$convert` and its short forms.

use crate::binary_number::{self, ByteOrder};
use crate::calendar;
use crate::number::Number;
use crate::text::double_text;
use crate::written_date;
use bunko_bson::{Decimal128, ObjectId, Rounding, Type, Value, ValueRef, order};
use bunko_errors::{ErrorCode, Failure, Result};

/// The types that can be converted to, by their aliases.
/// # Errors
/// `BadValue` for an unknown name.
pub(crate) fn target_of_alias(alias: &str) -> Result<Type> {
    const TYPES: [Type; 21] = [
        Type::Double,
        Type::String,
        Type::Document,
        Type::Array,
        Type::Binary,
        Type::Undefined,
        Type::ObjectId,
        Type::Boolean,
        Type::DateTime,
        Type::Null,
        Type::Regex,
        Type::DbPointer,
        Type::JavaScript,
        Type::Symbol,
        Type::JavaScriptWithScope,
        Type::Int32,
        Type::Timestamp,
        Type::Int64,
        Type::Decimal128,
        Type::MinKey,
        Type::MaxKey,
    ];
    let found = TYPES.into_iter().find(|kind| kind.alias() == alias);
    found.ok_or_else(|| Failure::bad_value(format!("Unknown type name: {alias}")))
}

/// `ConversionFailure`, without the words about `onError` that the operator adds.
pub(crate) fn failure(message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::CONVERSION_FAILURE, message)
}

const NO_ON_ERROR: &str = "in $convert with no onError value";

/// The types whose values convert to themselves.
const HAS_IDENTITY: [Type; 8] = [
    Type::Double,
    Type::String,
    Type::ObjectId,
    Type::Boolean,
    Type::DateTime,
    Type::Int32,
    Type::Int64,
    Type::Decimal128,
];

/// Converts a value that is not null.
/// # Errors
/// `ConversionFailure` if there is no conversion, or it would lose the value.
pub(crate) fn convert(value: ValueRef<'_>, target: Type) -> Result<Value> {
    if let (ValueRef::Binary { bytes, .. }, Type::Int32 | Type::Int64 | Type::Double) = (value, target) {
        return from_bytes(bytes, target, ByteOrder::Little);
    }
    let converted = match target {
        _ if value.kind() == target && HAS_IDENTITY.contains(&target) => Some(value.to_value()),
        Type::Double => to_double(value)?,
        Type::Decimal128 => to_decimal(value)?,
        Type::Int32 => to_integer(value, i64::from(i32::MIN)..=i64::from(i32::MAX))?.map(|n| Value::Int32(n as i32)),
        Type::Int64 => to_integer(value, i64::MIN..=i64::MAX)?.map(Value::Int64),
        // A value that is not a number is true.
        Type::Boolean => Some(Value::Boolean(Number::of(value).is_none_or(|number| !number.is_zero()))),
        Type::String => to_text(value)?.map(Value::String),
        Type::DateTime => to_date(value)?,
        Type::ObjectId => to_object_id(value)?,
        _ => None,
    };
    converted.ok_or_else(|| {
        let (from, to) = (value.kind().alias(), target.alias());
        failure(format!("Unsupported conversion from {from} to {to} {NO_ON_ERROR}"))
    })
}

/// The number that the bytes encode.
/// # Errors
/// `ConversionFailure` if no number of that type has this many bytes.
pub(crate) fn from_bytes(bytes: &[u8], target: Type, order: ByteOrder) -> Result<Value> {
    binary_number::read(bytes, target, order).ok_or_else(|| {
        let (length, to) = (bytes.len(), target.alias());
        failure(format!("Failed to convert BinData of {length} bytes to {to} {NO_ON_ERROR}: Invalid length"))
    })
}

fn bad_number(text: &str, why: &str) -> Failure {
    failure(format!("Failed to parse number '{text}' {NO_ON_ERROR}: {why}"))
}

/// Refuses hexadecimal numbers.
/// # Errors
/// `ConversionFailure` for a text that begins with `0x`. As on MongoDB, a sign before it or a capital `0X` passes.
fn refuse_hexadecimal(text: &str) -> Result<()> {
    if text.starts_with("0x") {
        return Err(failure(format!("Illegal hexadecimal input {NO_ON_ERROR}: {text}")));
    }
    Ok(())
}

fn why_not_an_integer(text: &str) -> &'static str {
    if matches!(text, "" | "+" | "-") { "No digits" } else { "Did not consume whole string." }
}

fn why_not_a_double(text: &str) -> &'static str {
    if text.is_empty() {
        "Empty string"
    } else if text.starts_with(|c: char| c.is_ascii_whitespace()) {
        "Leading whitespace"
    } else if text.starts_with(|c: char| c.is_ascii_digit()) {
        "Did not consume whole string."
    } else {
        "Did not consume any digits"
    }
}

fn to_double(value: ValueRef<'_>) -> Result<Option<Value>> {
    let number = match value {
        ValueRef::Boolean(boolean) => f64::from(u8::from(boolean)),
        ValueRef::DateTime(ms) => ms as f64,
        ValueRef::String(text) => {
            refuse_hexadecimal(text)?;
            // Rust reads `inf`, `nan` and a sign in front of them as MongoDB does, but trims nothing.
            let number = match hexadecimal(text) {
                Some(number) => number,
                None => text.parse::<f64>().map_err(|_| bad_number(text, why_not_a_double(text)))?,
            };
            let is_written_zero = || {
                !text.split(['e', 'E', 'p', 'P', 'x', 'X']).any(|part| part.contains(|c: char| matches!(c, '1'..='9')))
            };
            if number == 0.0 && !is_written_zero() {
                return Err(bad_number(text, "Out of range"));
            }
            if number.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) {
                return Err(bad_number(text, "Out of range"));
            }
            number
        }
        ValueRef::Decimal128(number) => {
            let double = number.to_f64();
            let is_lost = if double.is_infinite() { !number.is_infinite() } else { is_below_doubles(number) };
            if is_lost {
                return Err(overflow(&number.to_string()));
            }
            double
        }
        _ => match Number::of(value) {
            Some(number) => number.to_f64(),
            None => return Ok(None),
        },
    };
    Ok(Some(Value::Double(number)))
}

/// Whether a decimal other than zero converts to zero or to a subnormal double. A decimal that would round up to the
/// least normal double counts too.
fn is_below_doubles(number: Decimal128) -> bool {
    /// The least normal double minus a quarter of the least subnormal one: smaller decimals count.
    const LEAST: &str = "2.225073858507201259573821257020769E-308";
    let least = Decimal128::parse(LEAST).unwrap_or(Decimal128::ZERO);
    !number.is_nan() && !number.is_zero() && number.abs().compare(least).is_lt()
}

/// Reads C's hexadecimal floating point: `0x1.8p1`, with a sign in front if there is one.
fn hexadecimal(text: &str) -> Option<f64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?;
    let (mantissa, power) = digits.split_once(['p', 'P']).unwrap_or((digits, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let mut number = 0.0_f64;
    for digit in whole.chars().chain(part.chars()) {
        number = number.mul_add(16.0, f64::from(digit.to_digit(16)?));
    }
    let power: i32 = power.parse().ok()?;
    let places = i32::try_from(part.len()).ok()?.checked_mul(4)?;
    Some(sign * number * 2.0_f64.powi(power.checked_sub(places)?))
}

fn to_decimal(value: ValueRef<'_>) -> Result<Option<Value>> {
    let number = match value {
        ValueRef::Boolean(boolean) => Decimal128::from_i64(i64::from(boolean)),
        ValueRef::DateTime(ms) => Decimal128::from_i64(ms),
        ValueRef::String(text) => {
            refuse_hexadecimal(text)?;
            let why = if text.is_empty() { "Empty string" } else { "Failed to parse string to decimal" };
            Decimal128::parse_truncating(text).ok_or_else(|| bad_number(text, why))?
        }
        _ => match Number::of(value) {
            Some(number) => number.to_decimal(),
            None => return Ok(None),
        },
    };
    Ok(Some(Value::Decimal128(number)))
}

fn overflow(number: &str) -> Failure {
    failure(format!("Conversion would overflow target type {NO_ON_ERROR}: {number}"))
}

fn to_integer(value: ValueRef<'_>, range: std::ops::RangeInclusive<i64>) -> Result<Option<i64>> {
    let integer = match value {
        ValueRef::Boolean(boolean) => i64::from(boolean),
        // A date has milliseconds, which only a long can hold.
        ValueRef::DateTime(ms) if *range.end() == i64::MAX => ms,
        ValueRef::String(text) => {
            refuse_hexadecimal(text)?;
            let integer = text.parse::<i64>().map_err(|error| match error.kind() {
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                    bad_number(text, "Overflow")
                }
                _ => bad_number(text, why_not_an_integer(text)),
            })?;
            if !range.contains(&integer) {
                return Err(bad_number(text, "Overflow"));
            }
            integer
        }
        ValueRef::Double(_) | ValueRef::Decimal128(_) => truncated(value)?,
        _ => match Number::of(value).and_then(Number::as_integer) {
            Some(integer) => integer,
            None => return Ok(None),
        },
    };
    if range.contains(&integer) {
        return Ok(Some(integer));
    }
    // MongoDB does not name a long here.
    let found = if matches!(value, ValueRef::Int64(_)) { String::new() } else { crate::printed::printed_value(value) };
    Err(overflow(&found))
}

fn truncated(value: ValueRef<'_>) -> Result<i64> {
    let Some(number) = Number::of(value) else { return Err(overflow("")) };
    if number.is_nan() {
        return Err(failure(format!("Attempt to convert NaN value to integer type {NO_ON_ERROR}")));
    }
    if number.to_f64().is_infinite() {
        return Err(failure(format!("Attempt to convert infinity value to integer type {NO_ON_ERROR}")));
    }
    // Both bounds are powers of two, so the comparison is exact for doubles; a decimal is not made a double first.
    let in_range = match number {
        Number::Decimal(decimal) => {
            let whole = ValueRef::Decimal128(decimal.round_to_exponent(0, Rounding::Truncate));
            order::compare(ValueRef::Int64(i64::MIN), whole).is_le()
                && order::compare(whole, ValueRef::Int64(i64::MAX)).is_le()
        }
        other => (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&other.to_f64()),
    };
    let integer = if in_range { bunko_bson::number::truncate_to_i64(value) } else { None };
    integer.ok_or_else(|| overflow(&crate::printed::printed_value(value)))
}

fn to_text(value: ValueRef<'_>) -> Result<Option<String>> {
    Ok(Some(match value {
        ValueRef::Boolean(boolean) => boolean.to_string(),
        ValueRef::Int32(number) => number.to_string(),
        ValueRef::Int64(number) => number.to_string(),
        ValueRef::Double(number) => double_text(number),
        ValueRef::Decimal128(number) => number.to_string(),
        ValueRef::ObjectId(id) => id.to_string(),
        ValueRef::DateTime(ms) => calendar::converted_text(ms)?,
        _ => return Ok(None),
    }))
}

fn to_date(value: ValueRef<'_>) -> Result<Option<Value>> {
    let ms = match value {
        ValueRef::Int64(ms) => ms,
        ValueRef::Double(_) | ValueRef::Decimal128(_) => truncated(value)?,
        ValueRef::ObjectId(_) | ValueRef::Timestamp(_) => match moment(value) {
            Some(ms) => ms,
            None => return Ok(None),
        },
        ValueRef::String(text) => written_date::parse(text)
            .map(|moment| moment.ms)
            .ok_or_else(|| failure(format!("Error parsing date string '{text}' {NO_ON_ERROR}")))?,
        _ => return Ok(None),
    };
    Ok(Some(Value::DateTime(ms)))
}

fn to_object_id(value: ValueRef<'_>) -> Result<Option<Value>> {
    let Some(text) = value.as_str() else { return Ok(None) };
    let refusal = || {
        let why = match text.chars().find(|c| !c.is_ascii_hexdigit()) {
            Some(bad) if text.len() == 24 => format!("Invalid character found in hex string: {bad}"),
            _ => format!("Invalid string length for parsing to OID, expected 24 but found {}", text.len()),
        };
        failure(format!("Failed to parse objectId '{text}' {NO_ON_ERROR}: {why}"))
    };
    ObjectId::parse_hex(text).map(|id| Some(Value::ObjectId(id))).ok_or_else(refusal)
}

/// The moment, in milliseconds since 1970, that a date, a timestamp or an ObjectId stands for.
pub(crate) fn moment(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::DateTime(ms) => Some(ms),
        ValueRef::Timestamp(timestamp) => Some(i64::from(timestamp.seconds) * calendar::MS_PER_SECOND),
        // As on MongoDB, the seconds are read as signed: an ObjectId made after 2038-01-19 becomes a date before 1970.
        ValueRef::ObjectId(id) => Some(i64::from(id.seconds() as i32) * calendar::MS_PER_SECOND),
        _ => None,
    }
}
