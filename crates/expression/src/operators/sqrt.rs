//! `$sqrt`: the square root of a number.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::decimal;
use crate::number::Number;
use std::cmp::Ordering;

pub(super) const OPERATOR: Operator =
    Operator { name: "$sqrt", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(number) = call.number(context)? else { return Ok(Evaluated::null()) };
    if number.compare(0).is_some_and(Ordering::is_lt) {
        return Err(call.failure(28714, "'s argument must be greater than or equal to 0"));
    }
    Ok(match number {
        Number::Decimal(n) => Number::Decimal(decimal::unary(n, decimal::Arithmetic::sqrt)).into(),
        other => other.to_f64().sqrt().into(),
    })
}
