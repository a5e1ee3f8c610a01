//! `$size`: the number of elements of an array.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings, refuse};
use crate::array::steps;
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$size", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let value = call.argument(0, context)?;
    match value.get() {
        Some(ValueRef::Array(array)) => {
            context.operation().work(steps(array))?;
            Ok((array.count() as i32).into())
        }
        _ => Err(refuse((17124, "The argument to $size must be an array, but was of type: {}"), value.type_name())),
    }
}
