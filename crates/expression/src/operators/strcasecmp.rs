//! `$strcasecmp`: -1, 0 or 1 if the first string sorts before, equal to or after the second. Case of ASCII letters is
//! ignored.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::made;
use crate::text::coerced;

pub(super) const OPERATOR: Operator =
    Operator { name: "$strcasecmp", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(2)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (left, right) = (call.argument(0, context)?, call.argument(1, context)?);
    let (left, right) = (coerced(&left)?, coerced(&right)?);
    context.operation().work(made::text_steps(&left) + made::text_steps(&right))?;
    let (left, right) = (left.to_ascii_uppercase(), right.to_ascii_uppercase());
    Ok((left.cmp(&right) as i32).into())
}
