//! `$setUnion`: the distinct elements of all arrays, in order.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings, refuse};
use crate::array::{distinct, elements};
use crate::made::MadeArray;
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$setUnion", strings: Strings::Collated, form: Form::Positional(Arity::Any), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let mut all = Vec::new();
    let values = (0..call.arguments.len()).map(|index| call.argument(index, context)).collect::<Result<Vec<_>>>()?;
    for value in &values {
        match value.get() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Evaluated::null()),
            Some(ValueRef::Array(array)) => all.extend(elements(array, context)?),
            Some(_) => {
                let refusal = (17043, "All operands of $setUnion must be arrays. One argument is of type: {}");
                return Err(refuse(refusal, value.type_name()));
            }
        }
    }
    let mut union = MadeArray::new(call.name(), context);
    union.extend(distinct(all, context)?)?;
    Ok(union.finish())
}
