//! `$multiply`: the product of numbers.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result};
use crate::number::Number;
use bunko_errors::Failure;

pub(super) const OPERATOR: Operator = Operator { name: "$multiply", form: Form::Positional(Arity::Any), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let mut product = Number::Int32(1);
    for index in 0..call.arguments.len() {
        let factor = call.argument(index, context)?;
        if factor.is_nullish() {
            return Ok(Evaluated::null());
        }
        let Some(number) = factor.get().and_then(Number::of) else {
            let message = format!("$multiply only supports numeric types, not {}", factor.type_name());
            return Err(Failure::type_mismatch(message));
        };
        product = product.times(number);
    }
    Ok(product.into())
}
