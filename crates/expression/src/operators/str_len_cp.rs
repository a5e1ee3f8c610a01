//! `$strLenCP`: a string's length in characters.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::made;
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$strLenCP", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let value = call.argument(0, context)?;
    match value.get() {
        Some(ValueRef::String(text)) => {
            context.operation().work(made::text_steps(text))?;
            Ok((text.chars().count() as i32).into())
        }
        _ => Err(call.failure(34471, &format!(" requires a string argument, found: {}", value.type_name()))),
    }
}
