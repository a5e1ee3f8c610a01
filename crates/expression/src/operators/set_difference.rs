//! `$setDifference`: the distinct elements of the first array that the second lacks, as they come.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Refusal, Result, refuse};
use crate::array::{distinct, position};
use bunko_bson::{ArrayBuf, ArrayRef, ValueRef};

const FIRST: Refusal = (17048, "both operands of $setDifference must be arrays. First argument is of type: {}");
const SECOND: Refusal = (17049, "both operands of $setDifference must be arrays. Second argument is of type: {}");

pub(super) const OPERATOR: Operator =
    Operator { name: "$setDifference", form: Form::Positional(Arity::Exactly(2)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (left, right) = (call.argument(0, context)?, call.argument(1, context)?);
    if left.is_nullish() || right.is_nullish() {
        return Ok(Evaluated::null());
    }
    let mut excluded = match (left.get(), right.get()) {
        (Some(ValueRef::Array(_)), Some(ValueRef::Array(array))) => distinct(array.iter().collect()),
        (Some(ValueRef::Array(_)), _) => return Err(refuse(SECOND, right.type_name())),
        _ => return Err(refuse(FIRST, left.type_name())),
    };
    let mut kept = ArrayBuf::new();
    for element in left.get().and_then(ValueRef::as_array).into_iter().flat_map(ArrayRef::iter) {
        // What was kept once is not kept again, so it joins the excluded.
        if let Err(position) = position(&excluded, element) {
            kept.push(element);
            excluded.insert(position, element);
        }
    }
    Ok(kept.into())
}
