//! `$indexOfCP`: where a string first occurs in another, by characters, or -1.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::array::{STRING_RANGE, search_range};
use crate::made;
use crate::string_arguments::searched;
use crate::text::byte_of_character;

pub(super) const OPERATOR: Operator =
    Operator { name: "$indexOfCP", strings: Strings::AsBytes, form: Form::Positional(Arity::Between(2, 4)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (text, wanted) = (call.argument(0, context)?, call.argument(1, context)?);
    if text.is_nullish() {
        return Ok(Evaluated::null());
    }
    let text = searched(call, &text, 40093, "first")?;
    let wanted = searched(call, &wanted, 40094, "second")?;
    context.operation().work(made::text_steps(text) + made::text_steps(wanted))?;
    let (from, to) = search_range(call, context, text.chars().count(), STRING_RANGE)?;
    if from >= to {
        // Nothing is found after the last character, not even an empty string, except for an empty string in an empty
        // string.
        let is_found = text.is_empty() && wanted.is_empty() && from == 0;
        return Ok((if is_found { 0 } else { -1 }).into());
    }
    let (Some(from_byte), Some(to_byte)) = (byte_of_character(text, from), byte_of_character(text, to)) else {
        return Ok((-1).into());
    };
    let found = text.get(from_byte..to_byte).and_then(|part| part.find(wanted));
    Ok(found.map_or(-1, |byte| text[..from_byte + byte].chars().count() as i32).into())
}
