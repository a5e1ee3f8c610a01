//! `$concat`: strings one after the other; null with a null.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::made;
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$concat", strings: Strings::AsBytes, form: Form::Positional(Arity::Any), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let mut whole = String::new();
    for index in 0..call.arguments.len() {
        let part = call.argument(index, context)?;
        made::check_string_length(whole.len() + part.get().and_then(ValueRef::as_str).map_or(0, str::len))?;
        match part.get() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Evaluated::null()),
            Some(ValueRef::String(text)) => whole.push_str(text),
            Some(_) => return Err(call.failure(16702, &format!(" only supports strings, not {}", part.type_name()))),
        }
    }
    made::string(whole, context)
}
