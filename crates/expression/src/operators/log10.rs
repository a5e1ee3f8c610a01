//! `$log10`: the logarithm to base 10.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::decimal_powers;
use crate::number::Number;
use crate::printed::printed;
use std::cmp::Ordering;

pub(super) const OPERATOR: Operator =
    Operator { name: "$log10", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(number) = call.number(context)? else { return Ok(Evaluated::null()) };
    if number.compare(0).is_some_and(Ordering::is_le) {
        let found = printed(&number.into());
        return Err(call.failure(28761, &format!("'s argument must be a positive number, but is {found}")));
    }
    Ok(match number {
        // The logarithm of a decimal NaN is a double's in MongoDB.
        Number::Decimal(n) if !n.is_nan() => Number::Decimal(decimal_powers::log10(n)).into(),
        other => other.to_f64().log10().into(),
    })
}
