//! `$pow`: a number to a power; integers stay integers where the result is one that fits.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::decimal_powers;
use crate::number::{Number, integer_like};
use std::cmp::Ordering;

pub(super) const OPERATOR: Operator =
    Operator { name: "$pow", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(2)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (base, exponent) = (call.argument(0, context)?, call.argument(1, context)?);
    if base.is_nullish() || exponent.is_nullish() {
        return Ok(Evaluated::null());
    }
    let number = |value: &Evaluated<'_>, code, what| {
        let refusal = || call.failure(code, &format!("'s {what} must be numeric, not {}", value.type_name()));
        value.get().and_then(Number::of).ok_or_else(refusal)
    };
    let (base, exponent) = (number(&base, 28762, "base")?, number(&exponent, 28763, "exponent")?);
    if base.is_zero() && exponent.compare(0).is_some_and(Ordering::is_lt) {
        return Err(call.failure(28764, " cannot take a base of 0 and a negative exponent"));
    }
    if base.is_decimal() || exponent.is_decimal() {
        return Ok(Number::Decimal(decimal_powers::power(base.to_decimal(), exponent.to_decimal())).into());
    }
    if let (Some(of), Some(to)) = (base.as_integer(), exponent.as_integer())
        && let Some(power) = integer_power(of, to)
    {
        return Ok(integer_like(power, [base, exponent]).into());
    }
    Ok(base.to_f64().powf(exponent.to_f64()).into())
}

/// Computes the power; `None` unless it is an integer that fits 64 bits.
fn integer_power(base: i64, exponent: i64) -> Option<i64> {
    match (base, exponent) {
        (0, 1..) => Some(0),
        (1, _) => Some(1),
        (-1, _) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        _ => base.checked_pow(u32::try_from(exponent).ok()?),
    }
}
