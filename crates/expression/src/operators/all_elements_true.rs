//! `$allElementsTrue`: whether all elements of an array are true.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result};
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$allElementsTrue", form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let value = call.argument(0, context)?;
    let Some(ValueRef::Array(array)) = value.get() else {
        return Err(call.failure(17040, &format!("'s argument must be an array, but is {}", value.type_name())));
    };
    Ok(array.iter().all(|element| Evaluated::Ref(element).is_true()).into())
}
