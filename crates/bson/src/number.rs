//! The four number types read as one, and compared exactly.

use crate::decimal128::{Finite, POWERS_OF_TEN, Parts, Sign, compare_doubles};
use crate::{Decimal128, ValueRef};
use std::cmp::Ordering;

/// Two to the 63rd: the first double above every `i64`.
pub(crate) const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// A number. The two integer types are one, because no result depends on the difference.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// From an int32 or int64.
    Integer(i64),
    /// From a double.
    Double(f64),
    /// From a decimal128.
    Decimal(Decimal128),
}

impl Number {
    /// The value as a number, if it is one.
    #[inline]
    pub fn of(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Int32(number) => Some(Self::Integer(i64::from(number))),
            ValueRef::Int64(number) => Some(Self::Integer(number)),
            ValueRef::Double(number) => Some(Self::Double(number)),
            ValueRef::Decimal128(number) => Some(Self::Decimal(number)),
            _ => None,
        }
    }

    /// Numeric order across types, without rounding. `NaN` is lowest and equal to itself, `-0` is equal to `0`.
    #[inline]
    pub fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(&b),
            (Self::Double(a), Self::Double(b)) => compare_doubles(a, b),
            (Self::Integer(a), Self::Double(b)) => compare_integer_to_double(a, b),
            (Self::Double(a), Self::Integer(b)) => compare_integer_to_double(b, a).reverse(),
            (Self::Decimal(a), Self::Decimal(b)) => a.compare(b),
            (Self::Decimal(a), Self::Integer(b)) => a.compare(Decimal128::from_i64(b)),
            (Self::Integer(a), Self::Decimal(b)) => Decimal128::from_i64(a).compare(b),
            (Self::Decimal(a), Self::Double(b)) => a.compare_f64(b),
            (Self::Double(a), Self::Decimal(b)) => b.compare_f64(a).reverse(),
        }
    }

    /// The number without its fraction; `None` if it is `NaN` or beyond 64 bits.
    pub fn truncate(self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(number),
            Self::Double(number) => (-TWO_TO_63..TWO_TO_63).contains(&number).then_some(number as i64),
            Self::Decimal(number) => match number.parts() {
                Parts::Finite(number) => truncate_decimal(number),
                Parts::NaN | Parts::Infinity(_) => None,
            },
        }
    }
}

/// Compares without rounding either side to the other's type: above 2^53 that would make neighbours equal.
fn compare_integer_to_double(a: i64, b: f64) -> Ordering {
    if b.is_nan() || b < -TWO_TO_63 {
        return Ordering::Greater;
    }
    if b >= TWO_TO_63 {
        return Ordering::Less;
    }
    a.cmp(&(b as i64)).then_with(|| compare_doubles(0.0, b - b.trunc()))
}

fn truncate_decimal(number: Finite) -> Option<i64> {
    let power = POWERS_OF_TEN.get(number.exponent.unsigned_abs() as usize);
    let magnitude = match (number.exponent, power) {
        _ if number.coefficient == 0 => 0,
        (0.., None) => return None,
        (_, None) => 0,
        (0.., Some(power)) => number.coefficient.checked_mul(*power)?,
        (_, Some(power)) => number.coefficient / power,
    };
    let signed = i128::try_from(magnitude).ok()?;
    i64::try_from(if number.sign == Sign::Negative { -signed } else { signed }).ok()
}

/// The number as an `i64`, if it is exactly one: `3.0` is, `3.5`, `NaN` and `1e300` are not.
pub fn as_i64_exact(value: ValueRef<'_>) -> Option<i64> {
    let number = Number::of(value)?;
    let truncated = number.truncate()?;
    number.compare(Number::Integer(truncated)).is_eq().then_some(truncated)
}

/// The number as the nearest `f64`; decimals beyond its range are infinite.
pub fn as_f64(value: ValueRef<'_>) -> Option<f64> {
    Number::of(value).map(|number| match number {
        Number::Integer(number) => number as f64,
        Number::Double(number) => number,
        Number::Decimal(number) => number.to_f64(),
    })
}

/// The number without its fraction; `None` if it is `NaN`, does not fit 64 bits, or is not a number.
pub fn truncate_to_i64(value: ValueRef<'_>) -> Option<i64> {
    Number::of(value)?.truncate()
}

/// Any number as an integer: doubles lose their fraction, decimals are rounded to the nearest integer and halves to
/// even, `NaN` is 0, and numbers beyond 64 bits become the nearest integer in range. `None` if the value is not a number.
/// Options of commands are read in this way. Source: recorded answers of MongoDB 8.2.
pub fn clamp_to_i64(value: ValueRef<'_>) -> Option<i64> {
    Some(match Number::of(value)? {
        Number::Integer(integer) => integer,
        // `as` does all of this for fractions, NaN and limits.
        Number::Double(double) => double as i64,
        Number::Decimal(decimal) if decimal.is_nan() => 0,
        Number::Decimal(decimal) => {
            let limit = if decimal.is_negative() { i64::MIN } else { i64::MAX };
            Number::Decimal(decimal.round_to_integral()).truncate().unwrap_or(limit)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> ValueRef<'static> {
        ValueRef::Decimal128(Decimal128::parse(text).expect(text))
    }

    #[test]
    fn whole_numbers_of_every_type() {
        for (value, exact, truncated) in [
            (ValueRef::Int32(-7), Some(-7), Some(-7)),
            (ValueRef::Int64(i64::MAX), Some(i64::MAX), Some(i64::MAX)),
            (ValueRef::Double(-2.0), Some(-2), Some(-2)),
            (ValueRef::Double(-2.9), None, Some(-2)),
            (ValueRef::Double(-TWO_TO_63), Some(i64::MIN), Some(i64::MIN)),
            (ValueRef::Double(TWO_TO_63), None, None),
            (ValueRef::Double(f64::NAN), None, None),
            (decimal("3.00"), Some(3), Some(3)),
            (decimal("-3.99"), None, Some(-3)),
            (decimal("9223372036854775807.0"), Some(i64::MAX), Some(i64::MAX)),
            (decimal("9223372036854775807.9"), None, Some(i64::MAX)),
            (decimal("9223372036854775808"), None, None),
            (decimal("-9223372036854775808"), Some(i64::MIN), Some(i64::MIN)),
            (decimal("1E+3"), Some(1000), Some(1000)),
            (decimal("1E+6000"), None, None),
            (decimal("1E-6000"), None, Some(0)),
            (decimal("0E+6000"), Some(0), Some(0)),
            (decimal("-Infinity"), None, None),
            (ValueRef::String("1"), None, None),
            (ValueRef::Boolean(true), None, None),
        ] {
            assert_eq!(as_i64_exact(value), exact, "{value:?}");
            assert_eq!(truncate_to_i64(value), truncated, "{value:?}");
        }
    }

    #[test]
    fn options_are_clamped_and_decimals_rounded_half_to_even() {
        for (value, clamped) in [
            (ValueRef::Int32(-7), Some(-7)),
            (ValueRef::Double(100.9), Some(100)),
            (ValueRef::Double(-1.5), Some(-1)),
            (ValueRef::Double(f64::NAN), Some(0)),
            (ValueRef::Double(f64::INFINITY), Some(i64::MAX)),
            (decimal("1.5"), Some(2)),
            (decimal("2.5"), Some(2)),
            (decimal("-0.5"), Some(0)),
            (decimal("NaN"), Some(0)),
            (decimal("-Infinity"), Some(i64::MIN)),
            (decimal("1E+6000"), Some(i64::MAX)),
            (ValueRef::Boolean(true), None),
        ] {
            assert_eq!(clamp_to_i64(value), clamped, "{value:?}");
        }
    }

    #[test]
    fn integers_beyond_2_to_53_differ_from_doubles() {
        let order = |a, b| compare_integer_to_double(a, b);
        assert_eq!(order((1 << 53) + 1, 9_007_199_254_740_992.0), Ordering::Greater);
        assert_eq!(order(1 << 53, 9_007_199_254_740_992.0), Ordering::Equal);
        assert_eq!(order(i64::MAX, TWO_TO_63), Ordering::Less);
        assert_eq!(order(i64::MIN, -TWO_TO_63), Ordering::Equal);
        assert_eq!(order(-2, -2.5), Ordering::Greater);
        assert_eq!(order(2, 2.5), Ordering::Less);
        assert_eq!(order(0, -0.0), Ordering::Equal);
        assert_eq!(order(i64::MIN, f64::NAN), Ordering::Greater);
    }
}
