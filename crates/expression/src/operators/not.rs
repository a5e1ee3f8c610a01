//! `$not`: whether its argument is not true.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};

pub(super) const OPERATOR: Operator =
    Operator { name: "$not", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    Ok((!call.argument(0, context)?.is_true()).into())
}
