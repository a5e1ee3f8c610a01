//! `$cmp`: -1, 0 or 1 as the first value sorts below, with or above the second.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings, compared};

pub(super) const OPERATOR: Operator =
    Operator { name: "$cmp", strings: Strings::Collated, form: Form::Positional(Arity::Exactly(2)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    Ok((compared(call, context)? as i32).into())
}
