//! `$type`: the alias of a value's type, or `missing`.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result};

pub(super) const OPERATOR: Operator = Operator { name: "$type", form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    Ok(call.argument(0, context)?.type_name().to_owned().into())
}
