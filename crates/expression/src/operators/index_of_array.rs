//! `$indexOfArray`: the position of the first equal element, or -1.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result};
use crate::array::search_range;
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$indexOfArray", form: Form::Positional(Arity::Between(2, 4)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (array, wanted) = (call.argument(0, context)?, call.argument(1, context)?);
    if array.is_nullish() {
        return Ok(Evaluated::null());
    }
    let Some(ValueRef::Array(elements)) = array.get() else {
        return Err(
            call.failure(40090, &format!(" requires an array as a first argument, found: {}", array.type_name()))
        );
    };
    let (from, to) = search_range(call, context, elements.count())?;
    let wanted = wanted.comparable();
    let found =
        elements.iter().enumerate().take(to).skip(from).find(|(_, element)| bunko_bson::order::equal(*element, wanted));
    Ok(found.map_or(-1, |(position, _)| position as i32).into())
}
