//! Numbers of the four BSON types as operands.

use crate::{Evaluated, decimal, decimal_powers};
use bunko_bson::{Decimal128, EncodedValue, Type, Value, ValueRef};
use std::cmp::Ordering;

/// A number of any BSON type.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// A 32-bit integer.
    Int32(i32),
    /// A 64-bit integer.
    Int64(i64),
    /// A double.
    Double(f64),
    /// A decimal128.
    Decimal(Decimal128),
}

/// A value that should be a number.
pub enum Operand<'a> {
    /// The value is a number.
    Number(Number),
    /// The value is of another type.
    Other(Evaluated<'a>),
}

impl Number {
    /// The value, if it is a number.
    #[inline]
    pub fn of(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Int32(number) => Some(Self::Int32(number)),
            ValueRef::Int64(number) => Some(Self::Int64(number)),
            ValueRef::Double(number) => Some(Self::Double(number)),
            ValueRef::Decimal128(number) => Some(Self::Decimal(number)),
            _ => None,
        }
    }

    /// Decodes an encoded value, if it is a number.
    #[inline]
    pub(crate) fn of_encoded(value: EncodedValue<'_>) -> Option<Self> {
        match value.kind() {
            Type::Int32 => value.as_i32().map(Self::Int32),
            Type::Int64 => value.as_i64().map(Self::Int64),
            Type::Double => value.as_f64().map(Self::Double),
            Type::Decimal128 => Self::of(value.value()?),
            _ => None,
        }
    }

    /// Converts the number to the nearest double.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Int32(number) => f64::from(number),
            Self::Int64(number) => number as f64,
            Self::Double(number) => number,
            Self::Decimal(number) => number.to_f64(),
        }
    }

    pub(crate) fn to_decimal(self) -> Decimal128 {
        match self {
            Self::Int32(number) => Decimal128::from_i64(i64::from(number)),
            Self::Int64(number) => Decimal128::from_i64(number),
            Self::Double(number) => decimal::from_double(number),
            Self::Decimal(number) => number,
        }
    }

    /// The number as an `i64`, if its type is an int or a long.
    pub(crate) fn as_integer(self) -> Option<i64> {
        match self {
            Self::Int32(number) => Some(i64::from(number)),
            Self::Int64(number) => Some(number),
            Self::Double(_) | Self::Decimal(_) => None,
        }
    }

    /// Combines two numbers in the wider of their types; an integer result beyond 64 bits becomes a double.
    #[inline]
    fn combined(
        self,
        other: Self,
        integers: fn(i64, i64) -> Option<i64>,
        doubles: fn(f64, f64) -> f64,
        decimals: fn(Decimal128, Decimal128) -> Decimal128,
    ) -> Self {
        if self.is_decimal() || other.is_decimal() {
            return Self::Decimal(decimals(self.to_decimal(), other.to_decimal()));
        }
        if let (Some(left), Some(right)) = (self.as_integer(), other.as_integer())
            && let Some(result) = integers(left, right)
        {
            return integer_like(result, [self, other]);
        }
        Self::Double(doubles(self.to_f64(), other.to_f64()))
    }

    #[inline]
    pub(crate) fn plus(self, other: Self) -> Self {
        self.combined(other, i64::checked_add, |a, b| a + b, Decimal128::add)
    }

    /// Subtracts `other`; the result has the wider of both types.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.combined(other, i64::checked_sub, |a, b| a - b, Decimal128::subtract)
    }

    /// Multiplies by `other`; the result has the wider of both types.
    #[must_use]
    #[inline]
    pub fn times(self, other: Self) -> Self {
        self.combined(other, i64::checked_mul, |a, b| a * b, Decimal128::multiply)
    }

    /// Divides by a count; the result is a double or a decimal, never an integer.
    #[must_use]
    pub fn over(self, count: usize) -> Self {
        match self {
            Self::Decimal(number) => Self::Decimal(number.divide(decimal::from_double(count as f64))),
            other => Self::Double(other.to_f64() / count as f64),
        }
    }

    /// A power of 2 as `$pow` computes it for a decimal exponent.
    #[must_use]
    pub fn decimal_power_of_2(exponent: i32) -> Self {
        let exponent = Decimal128::from_i64(i64::from(exponent));
        Self::Decimal(decimal_powers::power(Decimal128::from_i64(2), exponent))
    }

    /// Whether the number is neither infinite nor NaN.
    pub fn is_finite(self) -> bool {
        match self {
            Self::Double(number) => number.is_finite(),
            Self::Decimal(number) => !number.is_nan() && !number.is_infinite(),
            Self::Int32(_) | Self::Int64(_) => true,
        }
    }

    /// Rounds to the nearest 64-bit integer, for arithmetic on dates.
    pub(crate) fn rounded(self) -> Option<i64> {
        match self {
            Self::Double(number) => bunko_bson::number::truncate_to_i64(ValueRef::Double(number.round())),
            Self::Decimal(number) => {
                bunko_bson::number::truncate_to_i64(ValueRef::Decimal128(number.round_to_integral()))
            }
            integer => integer.as_integer(),
        }
    }

    /// Whether the number is a decimal.
    pub fn is_decimal(self) -> bool {
        matches!(self, Self::Decimal(_))
    }

    /// Whether the number is NaN.
    pub fn is_nan(self) -> bool {
        match self {
            Self::Double(number) => number.is_nan(),
            Self::Decimal(number) => number.is_nan(),
            Self::Int32(_) | Self::Int64(_) => false,
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        match self {
            Self::Int32(number) => number == 0,
            Self::Int64(number) => number == 0,
            Self::Double(number) => number == 0.0,
            // The decimal is not converted to a double: one below the range of doubles is not zero.
            Self::Decimal(number) => number.is_zero(),
        }
    }

    /// Compares exactly with a small integer; `None` for NaN.
    pub(crate) fn compare(self, other: i32) -> Option<Ordering> {
        let order = || bunko_bson::order::compare(Value::from(self).as_ref(), ValueRef::Int32(other));
        (!self.is_nan()).then(order)
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Int32(number) => Self::Int32(number),
            Number::Int64(number) => Self::Int64(number),
            Number::Double(number) => Self::Double(number),
            Number::Decimal(number) => Self::Decimal128(number),
        }
    }
}

impl<'a> From<Operand<'a>> for Evaluated<'a> {
    fn from(operand: Operand<'a>) -> Self {
        match operand {
            Operand::Number(number) => number.into(),
            Operand::Other(value) => value,
        }
    }
}

impl From<Number> for Evaluated<'_> {
    fn from(number: Number) -> Self {
        Self::Owned(number.into())
    }
}

/// Makes an integer result: an int if both operands are ints and the result fits, else a long.
pub(crate) fn integer_like(result: i64, operands: [Number; 2]) -> Number {
    let narrow = operands.iter().all(|operand| matches!(operand, Number::Int32(_)));
    match i32::try_from(result) {
        Ok(small) if narrow => Number::Int32(small),
        _ => Number::Int64(result),
    }
}

/// The value as a 32-bit integer, if it is exactly one.
pub(crate) fn as_i32(value: ValueRef<'_>) -> Option<i32> {
    bunko_bson::number::as_i64_exact(value).and_then(|number| i32::try_from(number).ok())
}
