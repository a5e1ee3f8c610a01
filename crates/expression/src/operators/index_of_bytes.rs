//! `$indexOfBytes`: where a string first occurs in another, by bytes, or -1.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::array::{STRING_RANGE, search_range};
use crate::made;
use crate::string_arguments::searched;

pub(super) const OPERATOR: Operator = Operator {
    name: "$indexOfBytes",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Between(2, 4)),
    evaluate,
};

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (text, wanted) = (call.argument(0, context)?, call.argument(1, context)?);
    if text.is_nullish() {
        return Ok(Evaluated::null());
    }
    let text = searched(call, &text, 40091, "first")?;
    let wanted = searched(call, &wanted, 40092, "second")?;
    context.operation().work(made::text_steps(text) + made::text_steps(wanted))?;
    let (from, to) = search_range(call, context, text.len(), STRING_RANGE)?;
    let found = match wanted {
        "" => (from <= to).then_some(from),
        // The bounds may be inside characters, but the searched text starts and ends between two.
        _ => (from..=to).find(|&byte| text.is_char_boundary(byte)).and_then(|from| {
            let to = (from..=to).rev().find(|&byte| text.is_char_boundary(byte))?;
            text[from..to].find(wanted).map(|byte| byte + from)
        }),
    };
    Ok(found.map_or(-1, |byte| byte as i32).into())
}
