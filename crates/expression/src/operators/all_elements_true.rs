//! `$allElementsTrue`: whether all elements of an array are true.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator = Operator {
    name: "$allElementsTrue",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Exactly(1)),
    evaluate,
};

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let value = call.argument(0, context)?;
    let Some(ValueRef::Array(array)) = value.get() else {
        return Err(call.failure(17040, &format!("'s argument must be an array, but is {}", value.type_name())));
    };
    for element in array.iter() {
        context.operation().work(1)?;
        if !Evaluated::Ref(element).is_true() {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}
