//! `$split`: the parts of a string between separators.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings, refuse};
use crate::made::{self, MadeArray};
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$split", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(2)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (text, separator) = (call.argument(0, context)?, call.argument(1, context)?);
    if text.is_nullish() || separator.is_nullish() {
        return Ok(Evaluated::null());
    }
    let Some(text) = text.get().and_then(ValueRef::as_str) else {
        let refusal =
            (40085, "$split requires an expression that evaluates to a string as a first argument, found: {}");
        return Err(refuse(refusal, text.type_name()));
    };
    let Some(separator) = separator.get().and_then(ValueRef::as_str) else {
        let refusal =
            (10_503_900, "$split requires an expression that evaluates to a string as a second argument, found: {}");
        return Err(refuse(refusal, separator.type_name()));
    };
    if separator.is_empty() {
        return Err(call.failure(40087, " requires a non-empty separator"));
    }
    // Searching takes time even where nothing is found.
    context.operation().work(made::text_steps(text) + made::text_steps(separator))?;
    let mut parts = MadeArray::new(call.name(), context);
    for part in text.split(separator) {
        parts.push_element(ValueRef::String(part))?;
    }
    Ok(parts.finish())
}
