//! `$concatArrays`: all elements of arrays, one after the other.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result};
use bunko_bson::{ArrayBuf, ValueRef};

pub(super) const OPERATOR: Operator = Operator { name: "$concatArrays", form: Form::Positional(Arity::Any), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let mut all = ArrayBuf::new();
    for index in 0..call.arguments.len() {
        let value = call.argument(index, context)?;
        match value.get() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Evaluated::null()),
            Some(ValueRef::Array(array)) => array.iter().for_each(|element| {
                all.push(element);
            }),
            Some(_) => return Err(call.failure(28664, &format!(" only supports arrays, not {}", value.type_name()))),
        }
    }
    Ok(all.into())
}
