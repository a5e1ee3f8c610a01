//! `$substrCP`: a part of a string, by characters.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result};
use crate::string_arguments::extent;
use crate::text::coerced;

pub(super) const OPERATOR: Operator =
    Operator { name: "$substrCP", form: Form::Positional(Arity::Exactly(3)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (text, start, length) = (call.argument(0, context)?, call.argument(1, context)?, call.argument(2, context)?);
    let text = coerced(&text)?;
    let (start, length) = (extent(call, &start, 34450, "starting index")?, extent(call, &length, 34452, "length")?);
    let Ok(start) = usize::try_from(start) else {
        return Err(call.failure(34455, ": the starting index must be nonnegative integer."));
    };
    let Ok(length) = usize::try_from(length) else {
        return Err(call.failure(34454, ": length must be a nonnegative integer."));
    };
    Ok(text.chars().skip(start).take(length).collect::<String>().into())
}
