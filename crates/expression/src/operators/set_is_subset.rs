//! `$setIsSubset`: whether the second array holds all elements of the first.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings, refuse};
use crate::array::{contains, distinct, elements};
use bunko_bson::ValueRef;

pub(super) const OPERATOR: Operator =
    Operator { name: "$setIsSubset", strings: Strings::Collated, form: Form::Positional(Arity::Exactly(2)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (left, right) = (call.argument(0, context)?, call.argument(1, context)?);
    match (left.get(), right.get()) {
        (Some(ValueRef::Array(left)), Some(ValueRef::Array(right))) => {
            let right = distinct(elements(right, context)?, context)?;
            for element in left.iter() {
                context.operation().work(1)?;
                if !contains(&right, element, context.strings()) {
                    return Ok(false.into());
                }
            }
            Ok(true.into())
        }
        (Some(ValueRef::Array(_)), _) => {
            let refusal = (17042, "both operands of $setIsSubset must be arrays. Second argument is of type: {}");
            Err(refuse(refusal, right.type_name()))
        }
        _ => {
            let refusal = (17046, "both operands of $setIsSubset must be arrays. First argument is of type: {}");
            Err(refuse(refusal, left.type_name()))
        }
    }
}
