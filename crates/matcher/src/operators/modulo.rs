//! `$mod`: the remainder of a division by a constant.

use super::FieldOperator;
use crate::expression::{Condition, Expression};
use crate::parser::Operand;
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
    Ok(Condition::Mod { divisor, remainder: integer("remainder", remainder)? }.at(operand.path))
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
