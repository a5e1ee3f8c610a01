//! `$gt`: whether the first value sorts above the second.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings, compared};

pub(super) const OPERATOR: Operator =
    Operator { name: "$gt", strings: Strings::Collated, form: Form::Positional(Arity::Exactly(2)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    Ok(compared(call, context)?.is_gt().into())
}
