//! `$multiply`: the product of numbers.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::number::{Number, Operand};
use bunko_errors::Failure;

pub(super) const OPERATOR: Operator =
    Operator { name: "$multiply", strings: Strings::AsBytes, form: Form::Positional(Arity::Any), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let mut product = Number::Int32(1);
    for argument in &call.arguments {
        match argument.operand(context)? {
            Operand::Number(number) => product = product.times(number),
            Operand::Other(factor) if factor.is_nullish() => return Ok(Evaluated::null()),
            Operand::Other(factor) => {
                let message = format!("$multiply only supports numeric types, not {}", factor.type_name());
                return Err(Failure::type_mismatch(message));
            }
        }
    }
    Ok(product.into())
}
