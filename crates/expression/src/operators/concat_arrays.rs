//! `$concatArrays`: all elements of arrays, one after the other.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::made::MadeArray;
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$concatArrays", strings: Strings::AsBytes, form: Form::Positional(Arity::Any), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let mut all = MadeArray::new(call.name(), context);
    for index in 0..call.arguments.len() {
        let value = call.argument(index, context)?;
        match value.get() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Evaluated::null()),
            Some(ValueRef::Array(array)) => all.extend(array.iter())?,
            Some(_) => return Err(call.failure(28664, &format!(" only supports arrays, not {}", value.type_name()))),
        }
    }
    Ok(all.finish())
}
