//! `$type`: the alias of a value's type, or `missing`.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$type", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    Ok(Evaluated::Ref(ValueRef::String(call.argument(0, context)?.type_name())))
}
