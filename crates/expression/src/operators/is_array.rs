//! `$isArray`: whether a value is an array.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$isArray", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    Ok(matches!(call.argument(0, context)?.get(), Some(ValueRef::Array(_))).into())
}
