//! Sums, differences and products with MongoDB's promotion between number types.

use crate::number::Number;
use crate::{Decimal128, Value, ValueRef};

/// Why an operation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithmeticError {
    /// An operand is not a number.
    NotNumeric,
    /// The result of two integers does not fit 64 bits.
    Overflow,
}

impl std::fmt::Display for ArithmeticError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotNumeric => "operand is not a number",
            Self::Overflow => "result does not fit a 64-bit integer",
        })
    }
}

impl std::error::Error for ArithmeticError {}

/// An operation on each of the three representations of numbers.
struct Operation {
    integer: fn(i64, i64) -> Option<i64>,
    double: fn(f64, f64) -> f64,
    decimal: fn(Decimal128, Decimal128) -> Decimal128,
}

const ADD: Operation = Operation { integer: i64::checked_add, double: |a, b| a + b, decimal: Decimal128::add };
const SUBTRACT: Operation =
    Operation { integer: i64::checked_sub, double: |a, b| a - b, decimal: Decimal128::subtract };
const MULTIPLY: Operation =
    Operation { integer: i64::checked_mul, double: |a, b| a * b, decimal: Decimal128::multiply };

/// Adds two numbers. A decimal operand makes the result a decimal, else a double makes it a double. Two int32 make an
/// int32, or an int64 if they overflow; other integers make an int64.
/// # Errors
/// [`ArithmeticError`] if an operand is not a number, or an int64 overflows.
pub fn add(a: ValueRef<'_>, b: ValueRef<'_>) -> Result<Value, ArithmeticError> {
    apply(&ADD, a, b)
}

/// Subtracts `b` from `a`; types and errors as in [`add`].
pub fn subtract(a: ValueRef<'_>, b: ValueRef<'_>) -> Result<Value, ArithmeticError> {
    apply(&SUBTRACT, a, b)
}

/// Multiplies two numbers; types and errors as in [`add`].
pub fn multiply(a: ValueRef<'_>, b: ValueRef<'_>) -> Result<Value, ArithmeticError> {
    apply(&MULTIPLY, a, b)
}

fn apply(operation: &Operation, a: ValueRef<'_>, b: ValueRef<'_>) -> Result<Value, ArithmeticError> {
    let (Some(first), Some(second)) = (Number::of(a), Number::of(b)) else {
        return Err(ArithmeticError::NotNumeric);
    };
    match (first, second) {
        (Number::Integer(first), Number::Integer(second)) => {
            let result = (operation.integer)(first, second).ok_or(ArithmeticError::Overflow)?;
            let both_narrow = matches!((a, b), (ValueRef::Int32(_), ValueRef::Int32(_)));
            Ok(match i32::try_from(result) {
                Ok(narrow) if both_narrow => Value::Int32(narrow),
                _ => Value::Int64(result),
            })
        }
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
            Ok(Value::Decimal128((operation.decimal)(to_decimal(first), to_decimal(second))))
        }
        _ => Ok(Value::Double((operation.double)(to_double(first), to_double(second)))),
    }
}

fn to_decimal(number: Number) -> Decimal128 {
    match number {
        Number::Integer(number) => Decimal128::from_i64(number),
        Number::Double(number) => Decimal128::from_f64(number),
        Number::Decimal(number) => number,
    }
}

fn to_double(number: Number) -> f64 {
    match number {
        Number::Integer(number) => number as f64,
        Number::Double(number) => number,
        Number::Decimal(number) => number.to_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: Result<Value, ArithmeticError>) -> String {
        match result {
            Ok(Value::Decimal128(number)) => format!("decimal {number}"),
            Ok(value) => format!("{value:?}"),
            Err(error) => format!("{error:?}"),
        }
    }

    #[test]
    fn the_wider_type_wins() {
        let decimal = ValueRef::Decimal128(Decimal128::parse("1.10").expect("a number"));
        for (result, expected) in [
            (add(ValueRef::Int32(1), ValueRef::Int32(2)), "Int32(3)"),
            (add(ValueRef::Int32(i32::MAX), ValueRef::Int32(1)), "Int64(2147483648)"),
            (multiply(ValueRef::Int32(i32::MIN), ValueRef::Int32(i32::MIN)), "Int64(4611686018427387904)"),
            (subtract(ValueRef::Int64(1), ValueRef::Int32(2)), "Int64(-1)"),
            (add(ValueRef::Int64(i64::MAX), ValueRef::Int32(1)), "Overflow"),
            (multiply(ValueRef::Int64(i64::MIN), ValueRef::Int32(-1)), "Overflow"),
            (add(ValueRef::Int64(i64::MAX), ValueRef::Double(1.0)), "Double(9.223372036854776e18)"),
            (add(ValueRef::Int32(1), decimal), "decimal 2.10"),
            (add(ValueRef::Double(0.1), decimal), "decimal 1.200000000000000"),
            (multiply(decimal, ValueRef::Int64(-2)), "decimal -2.20"),
            (add(ValueRef::String("1"), ValueRef::Int32(1)), "NotNumeric"),
            (add(ValueRef::Int32(1), ValueRef::Null), "NotNumeric"),
        ] {
            assert_eq!(text(result), expected);
        }
    }
}
