//! `$setIntersection`: the distinct elements that all arrays hold, in order.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings, refuse};
use crate::array::{contains, distinct, elements};
use crate::made::MadeArray;
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$setIntersection", strings: Strings::Collated, form: Form::Positional(Arity::Any), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let values = (0..call.arguments.len()).map(|index| call.argument(index, context)).collect::<Result<Vec<_>>>()?;
    let mut common: Option<Vec<ValueRef<'_>>> = None;
    for value in &values {
        let values = match value.get() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Evaluated::null()),
            Some(ValueRef::Array(array)) => distinct(elements(array, context)?, context)?,
            Some(_) => {
                let refusal = (17047, "All operands of $setIntersection must be arrays. One argument is of type: {}");
                return Err(refuse(refusal, value.type_name()));
            }
        };
        common = Some(match common {
            None => values,
            Some(mut common) => {
                context.operation().work(common.len())?;
                common.retain(|element| contains(&values, *element, context.strings()));
                common
            }
        });
    }
    let mut intersection = MadeArray::new(call.name(), context);
    intersection.extend(common.unwrap_or_default())?;
    Ok(intersection.finish())
}
