//! Operands that have to be whole numbers.

use bunko_bson::text::ValueText;
use bunko_bson::{ValueRef, number};

/// A whole number from 0, of any numeric type.
/// # Errors
/// The reason, naming `field` (an operator, or an index in its array) and the value.
pub(crate) fn non_negative(field: &str, value: ValueRef<'_>) -> Result<u64, String> {
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
    let Some(integer) = number::as_i64_exact(value) else {
        return Err(format!("Expected an integer: {}", shown()));
    };
    u64::try_from(integer).map_err(|_| format!("Expected a non-negative number in: {}", shown()))
}
