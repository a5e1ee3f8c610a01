//! `$log10`: the logarithm to base 10.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result};
use crate::decimal;
use crate::number::{Number, single};
use crate::printed::printed;

pub(super) const OPERATOR: Operator = Operator { name: "$log10", form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(number) = single(call, context)? else { return Ok(Evaluated::null()) };
    if number.to_f64() <= 0.0 {
        let found = printed(&number.into());
        return Err(call.failure(28761, &format!("'s argument must be a positive number, but is {found}")));
    }
    Ok(match number {
        Number::Decimal(n) => Number::Decimal(decimal::unary(n, decimal::Arithmetic::log10)).into(),
        other => other.to_f64().log10().into(),
    })
}
