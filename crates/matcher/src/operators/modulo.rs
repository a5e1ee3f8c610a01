//! `$mod`: the remainder of a division by a constant.

use super::FieldOperator;
use crate::expression::Expression;
use crate::parse::Operand;
use bunko_bson::{StringUse, ValueRef, number};
use bunko_errors::{Failure, Result};

pub(crate) const MOD: FieldOperator =
    FieldOperator { name: "$mod", strings: StringUse::AsBytes, parse: |_, operand| parse(operand) };

fn parse(operand: &Operand<'_>) -> Result<Expression> {
    let ValueRef::Array(list) = operand.value else {
        return Err(Failure::bad_value("malformed mod, needs to be an array"));
    };
    let mut values = list.iter();
    let (Some(divisor), Some(remainder)) = (values.next(), values.next()) else {
        return Err(Failure::bad_value("malformed mod, not enough elements"));
    };
    if values.next().is_some() {
        return Err(Failure::bad_value("malformed mod, too many elements"));
    }
    let divisor = integer("divisor", divisor)?;
    if divisor == 0 {
        return Err(Failure::bad_value("divisor cannot be 0"));
    }
    Ok(Expression::Mod { path: operand.path.clone(), divisor, remainder: integer("remainder", remainder)? })
}

fn integer(what: &str, value: ValueRef<'_>) -> Result<i64> {
    if !value.is_number() {
        return Err(Failure::bad_value(format!("malformed mod, {what} not a number")));
    }
    number::truncate_to_i64(value).ok_or_else(|| {
        let reason = if number::as_f64(value).is_some_and(f64::is_finite) {
            "Out of bounds coercing to integral value"
        } else {
            "Unable to coerce NaN/Inf to integral type"
        };
        Failure::bad_value(format!("malformed mod, {what} value is invalid :: caused by :: {reason}"))
    })
}

/// Whether `value`, truncated to an integer, leaves this remainder.
pub(crate) fn matches(divisor: i64, remainder: i64, value: Option<ValueRef<'_>>) -> bool {
    let integer = value.filter(|value| value.is_number()).and_then(number::truncate_to_i64);
    // Wrapping, since the smallest integer divided by -1 overflows, though its remainder is 0.
    integer.is_some_and(|integer| integer.wrapping_rem(divisor) == remainder)
}
