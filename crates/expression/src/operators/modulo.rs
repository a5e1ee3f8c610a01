//! `$mod`: the remainder of truncated division, with the sign of the dividend.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::number::{Number, integer_like};
use bunko_errors::Failure;

pub(super) const OPERATOR: Operator =
    Operator { name: "$mod", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(2)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (left, right) = (call.argument(0, context)?, call.argument(1, context)?);
    if left.is_nullish() || right.is_nullish() {
        return Ok(Evaluated::null());
    }
    let (Some(dividend), Some(divisor)) = (left.get().and_then(Number::of), right.get().and_then(Number::of)) else {
        let found = format!(" only supports numeric types, not {} and {}", left.type_name(), right.type_name());
        return Err(call.failure(16611, &found));
    };
    if divisor.is_zero() {
        let code = if dividend.is_decimal() || divisor.is_decimal() { 5_733_415 } else { 16610 };
        return Err(Failure::new(context.engine().code(code, 4_848_403), "can't $mod by zero"));
    }
    Ok(match (dividend.as_integer(), divisor.as_integer()) {
        // The one overflow, the least integer by -1, has remainder 0.
        (Some(of), Some(by)) => integer_like(of.wrapping_rem(by), [dividend, divisor]).into(),
        _ if dividend.is_decimal() || divisor.is_decimal() => {
            Number::Decimal(dividend.to_decimal().remainder(divisor.to_decimal())).into()
        }
        _ => (dividend.to_f64() % divisor.to_f64()).into(),
    })
}
