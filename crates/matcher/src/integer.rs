//! Operands that must be whole numbers.

use bunko_bson::text::ValueText;
use bunko_bson::{ValueRef, number};

/// A whole number of any numeric type.
/// # Errors
/// A reason that names `field` (an operator, or an index in its array) and the value.
pub(crate) fn whole(field: &str, value: ValueRef<'_>) -> Result<i64, String> {
    let shown = || format!("{field}: {}", ValueText(value));
    if !value.is_number() {
        return Err(format!("Expected a number in: {}", shown()));
    }
    if number::as_f64(value).is_some_and(f64::is_nan) {
        return Err(format!("Expected an integer, but found NaN in: {}", shown()));
    }
    if number::truncate_to_i64(value).is_none() {
        return Err(format!("Cannot represent as a 64-bit integer: {}", shown()));
    }
    number::as_i64_exact(value).ok_or_else(|| format!("Expected an integer: {}", shown()))
}

/// A whole number that is not negative.
/// # Errors
/// As [`whole`].
pub(crate) fn non_negative(field: &str, value: ValueRef<'_>) -> Result<u64, String> {
    let reason = |_| format!("Expected a non-negative number in: {field}: {}", ValueText(value));
    u64::try_from(whole(field, value)?).map_err(reason)
}

/// A whole number that is not negative and fits a signed 32-bit integer.
/// # Errors
/// As [`whole`].
pub(crate) fn non_negative_i32(field: &str, value: ValueRef<'_>) -> Result<u32, String> {
    let reason = |_| format!("Cannot represent {field}: {} in an int", ValueText(value));
    i32::try_from(non_negative(field, value)?).map(i32::unsigned_abs).map_err(reason)
}
