//! `$log`: the logarithm to a base.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::decimal_powers;
use crate::number::Number;
use crate::printed::printed;
use std::cmp::Ordering;

pub(super) const OPERATOR: Operator =
    Operator { name: "$log", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(2)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (argument, base) = (call.argument(0, context)?, call.argument(1, context)?);
    if argument.is_nullish() || base.is_nullish() {
        return Ok(Evaluated::null());
    }
    let number = |value: &Evaluated<'_>, code, what| {
        let refusal = || call.failure(code, &format!("'s {what} must be numeric, not {}", value.type_name()));
        value.get().and_then(Number::of).ok_or_else(refusal)
    };
    let number_of_argument = number(&argument, 28756, "argument")?;
    let number_of_base = number(&base, 28757, "base")?;
    if number_of_argument.compare(0).is_some_and(Ordering::is_le) {
        let found = printed(&argument);
        return Err(call.failure(28758, &format!("'s argument must be a positive number, but is {found}")));
    }
    if number_of_base.compare(0).is_some_and(Ordering::is_le) || number_of_base.compare(1) == Some(Ordering::Equal) {
        let message = format!("'s base must be a positive number not equal to 1, but is {}", printed(&base));
        return Err(call.failure(28759, &message));
    }
    let is_nan = number_of_argument.is_nan() || number_of_base.is_nan();
    if !is_nan && (number_of_argument.is_decimal() || number_of_base.is_decimal()) {
        let logarithm = |number: Number| decimal_powers::ln(number.to_decimal());
        return Ok(Number::Decimal(logarithm(number_of_argument).divide(logarithm(number_of_base))).into());
    }
    Ok((number_of_argument.to_f64().ln() / number_of_base.to_f64().ln()).into())
}
