//! `$substrBytes`: a part of a string, by bytes.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::made;
use crate::string_arguments::extent;
use crate::text::coerced;
use bunko_errors::{ErrorCode, Failure};

pub(super) const OPERATOR: Operator =
    Operator { name: "$substrBytes", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(3)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    by_bytes(call, context)
}

/// Cuts by bytes; a negative length means the rest.
pub(super) fn by_bytes<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (text, start, length) = (call.argument(0, context)?, call.argument(1, context)?, call.argument(2, context)?);
    let text = coerced(&text)?;
    let (start, length) = (extent(call, &start, 16034, "starting index")?, extent(call, &length, 16035, "length")?);
    let Ok(start) = usize::try_from(start) else {
        let message = format!("{}: starting index must be non-negative (got: {start})", call.name());
        return Err(Failure::new(ErrorCode(50752), message));
    };
    if start >= text.len() {
        return made::string(String::new(), context);
    }
    let end = usize::try_from(length).map_or(text.len(), |length| start.saturating_add(length).min(text.len()));
    if !text.is_char_boundary(start) {
        return Err(call.failure(28656, ":  Invalid range, starting index is a UTF-8 continuation byte."));
    }
    if !text.is_char_boundary(end) {
        return Err(call.failure(28657, ":  Invalid range, ending index is in the middle of a UTF-8 character."));
    }
    made::string(text[start..end].to_owned(), context)
}
