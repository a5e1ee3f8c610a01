//! `$strLenBytes`: a string's length in bytes.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$strLenBytes", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let value = call.argument(0, context)?;
    match value.get() {
        Some(ValueRef::String(text)) => Ok((text.len() as i32).into()),
        _ => Err(call.failure(34473, &format!(" requires a string argument, found: {}", value.type_name()))),
    }
}
