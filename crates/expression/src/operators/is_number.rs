//! `$isNumber`: whether a value is an int, a long, a double or a decimal.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$isNumber", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    Ok(call.argument(0, context)?.get().is_some_and(ValueRef::is_number).into())
}
