//! `$setIntersection`: the distinct elements that all arrays hold, in order.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, refuse};
use crate::array::{contains, distinct};
use bunko_bson::{ArrayBuf, ValueRef};

pub(super) const OPERATOR: Operator =
    Operator { name: "$setIntersection", form: Form::Positional(Arity::Any), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let values = (0..call.arguments.len()).map(|index| call.argument(index, context)).collect::<Result<Vec<_>>>()?;
    let mut common: Option<Vec<ValueRef<'_>>> = None;
    for value in &values {
        let elements = match value.get() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Evaluated::null()),
            Some(ValueRef::Array(array)) => distinct(array.iter().collect()),
            Some(_) => {
                let refusal = (17047, "All operands of $setIntersection must be arrays. One argument is of type: {}");
                return Err(refuse(refusal, value.type_name()));
            }
        };
        common = Some(match common {
            None => elements,
            Some(mut common) => {
                common.retain(|element| contains(&elements, *element));
                common
            }
        });
    }
    Ok(common.unwrap_or_default().into_iter().collect::<ArrayBuf>().into())
}
