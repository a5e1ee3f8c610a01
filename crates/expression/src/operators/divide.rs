//! `$divide`: the quotient, never an integer type.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::number::Number;
use bunko_errors::Failure;

pub(super) const OPERATOR: Operator =
    Operator { name: "$divide", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(2)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (left, right) = (call.argument(0, context)?, call.argument(1, context)?);
    if left.is_nullish() || right.is_nullish() {
        return Ok(Evaluated::null());
    }
    let (Some(dividend), Some(divisor)) = (left.get().and_then(Number::of), right.get().and_then(Number::of)) else {
        let message =
            format!("$divide only supports numeric types, not {} and {}", left.type_name(), right.type_name());
        return Err(Failure::type_mismatch(message));
    };
    if divisor.is_zero() {
        return Err(Failure::new(context.engine().code(2, 4_848_401), "can't $divide by zero"));
    }
    Ok(if dividend.is_decimal() || divisor.is_decimal() {
        Number::Decimal(dividend.to_decimal().divide(divisor.to_decimal())).into()
    } else {
        (dividend.to_f64() / divisor.to_f64()).into()
    })
}
