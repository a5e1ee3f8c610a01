//! `$substrCP`: a part of a string, by characters.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result};
use crate::text::coerced;
use bunko_errors::{ErrorCode, Failure};

pub(super) const OPERATOR: Operator =
    Operator { name: "$substrCP", form: Form::Positional(Arity::Exactly(3)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (text, start, length) = (call.argument(0, context)?, call.argument(1, context)?, call.argument(2, context)?);
    let text = coerced(&text)?;
    let number = |value: &Evaluated<'_>, code, what: &str| match value.get() {
        Some(number) if number.is_number() => Ok(bunko_bson::number::truncate_to_i64(number).unwrap_or(i64::MAX)),
        _ => {
            let message =
                format!("{}: {what} must be a numeric type (is BSON type {})", call.name(), value.type_name());
            Err(Failure::new(ErrorCode(code), message))
        }
    };
    let (start, length) = (number(&start, 34450, "starting index")?, number(&length, 34452, "length")?);
    let Ok(start) = usize::try_from(start) else {
        return Err(call.failure(34455, ": the starting index must be nonnegative integer."));
    };
    let Ok(length) = usize::try_from(length) else {
        return Err(call.failure(34454, ": length must be a nonnegative integer."));
    };
    Ok(text.chars().skip(start).take(length).collect::<String>().into())
}
