//! `$in`: whether an array holds a value.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result};
use crate::made;
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator = Operator { name: "$in", form: Form::Positional(Arity::Exactly(2)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (value, array) = (call.argument(0, context)?, call.argument(1, context)?);
    let Some(ValueRef::Array(elements)) = array.get() else {
        return Err(
            call.failure(40081, &format!(" requires an array as a second argument, found: {}", array.type_name()))
        );
    };
    let wanted = value.comparable();
    let steps = made::steps(wanted);
    for element in elements.iter() {
        context.operation().work(steps)?;
        if context.strings().equal(element, wanted) {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}
