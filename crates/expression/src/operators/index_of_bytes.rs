//! `$indexOfBytes`: where a string first occurs in another, by bytes, or -1.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result};
use crate::array::search_range;
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$indexOfBytes", form: Form::Positional(Arity::Between(2, 4)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (text, wanted) = (call.argument(0, context)?, call.argument(1, context)?);
    if text.is_nullish() {
        return Ok(Evaluated::null());
    }
    let Some(text) = text.get().and_then(ValueRef::as_str) else {
        let message = format!(" requires a string as the first argument, found: {}", text.type_name());
        return Err(call.failure(40091, &message));
    };
    let Some(wanted) = wanted.get().and_then(ValueRef::as_str) else {
        let message = format!(" requires a string as the second argument, found: {}", wanted.type_name());
        return Err(call.failure(40092, &message));
    };
    let (from, to) = search_range(call, context, text.len())?;
    let found = text.get(from..to).and_then(|part| part.find(wanted));
    Ok(found.map_or(-1, |byte| (byte + from) as i32).into())
}
