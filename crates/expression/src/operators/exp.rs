//! `$exp`: e to a power.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::decimal_powers;
use crate::number::Number;

pub(super) const OPERATOR: Operator =
    Operator { name: "$exp", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(number) = call.number(context)? else { return Ok(Evaluated::null()) };
    Ok(match number {
        Number::Decimal(n) => Number::Decimal(decimal_powers::exp(n)).into(),
        other => other.to_f64().exp().into(),
    })
}
