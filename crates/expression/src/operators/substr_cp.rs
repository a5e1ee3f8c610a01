//! `$substrCP`: a part of a string, by characters.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::made;
use crate::number::as_i32;
use crate::printed::printed;
use crate::text::coerced;
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$substrCP", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(3)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (text, start, length) = (call.argument(0, context)?, call.argument(1, context)?, call.argument(2, context)?);
    let text = coerced(&text)?;
    let start = whole(call, &start, [34450, 34451], "starting index")?;
    let length = whole(call, &length, [34452, 34453], "length")?;
    let Ok(length) = usize::try_from(length) else {
        return Err(call.failure(34454, ": length must be a nonnegative integer."));
    };
    let Ok(start) = usize::try_from(start) else {
        return Err(call.failure(34455, ": the starting index must be nonnegative integer."));
    };
    context.operation().work(made::text_steps(&text))?;
    made::string(text.chars().skip(start).take(length).collect(), context)
}

/// A number without fraction. `codes` are the errors for a value that is not a number, and for a number that does not fit.
fn whole(call: &Call, value: &Evaluated<'_>, codes: [i32; 2], what: &str) -> Result<i32> {
    if !value.get().is_some_and(ValueRef::is_number) {
        let message = format!(": {what} must be a numeric type (is BSON type {})", value.type_name());
        return Err(call.failure(codes[0], &message));
    }
    value.get().and_then(as_i32).ok_or_else(|| {
        let found = printed(value);
        call.failure(codes[1], &format!(": {what} cannot be represented as a 32-bit integral value: {found}"))
    })
}
