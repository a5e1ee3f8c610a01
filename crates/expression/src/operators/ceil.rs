//! `$ceil`: the smallest integer that is not below a number.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::decimal;
use crate::number::Number;
use bunko_bson::Rounding;

pub(super) const OPERATOR: Operator =
    Operator { name: "$ceil", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(number) = call.number(context)? else { return Ok(Evaluated::null()) };
    Ok(match number {
        Number::Double(n) => n.ceil().into(),
        Number::Decimal(n) => Number::Decimal(decimal::integer(n, Rounding::Ceiling)).into(),
        integer => integer.into(),
    })
}
