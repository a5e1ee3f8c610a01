//! `$anyElementTrue`: whether an array holds a true element.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator = Operator {
    name: "$anyElementTrue",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Exactly(1)),
    evaluate,
};

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    Ok(holds_element(call, context, 17041, true)?.into())
}

/// Whether some element's truth is `truth`. `not_an_array` is the error code for an argument that is no array.
pub(super) fn holds_element<'a>(
    call: &'a Call,
    context: &EvaluationContext<'a>,
    not_an_array: i32,
    truth: bool,
) -> Result<bool> {
    let value = call.argument(0, context)?;
    let Some(ValueRef::Array(array)) = value.get() else {
        return Err(call.failure(not_an_array, &format!("'s argument must be an array, but is {}", value.type_name())));
    };
    for element in array.iter() {
        context.operation().work(1)?;
        if Evaluated::Ref(element).is_true() == truth {
            return Ok(true);
        }
    }
    Ok(false)
}
