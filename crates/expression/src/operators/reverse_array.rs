//! `$reverseArray`: the elements of an array from last to first.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings, refuse};
use crate::array::elements;
use crate::made::MadeArray;
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$reverseArray", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(value) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    let Some(ValueRef::Array(array)) = value.get() else {
        let refusal = (34435, "The argument to $reverseArray must be an array, but was of type: {}");
        return Err(refuse(refusal, value.type_name()));
    };
    let mut reversed = MadeArray::new(call.name(), context);
    reversed.extend(elements(array, context)?.into_iter().rev())?;
    Ok(reversed.finish())
}
