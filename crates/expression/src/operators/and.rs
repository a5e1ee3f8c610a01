//! `$and`: whether all arguments are true; arguments after a false one are not evaluated.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};

pub(super) const OPERATOR: Operator =
    Operator { name: "$and", strings: Strings::AsBytes, form: Form::Positional(Arity::Any), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    for index in 0..call.arguments.len() {
        if !call.argument(index, context)?.is_true() {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}
