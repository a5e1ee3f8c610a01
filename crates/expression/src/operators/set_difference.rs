//! `$setDifference`: the distinct elements of the first array that the second lacks, in the order of the first.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Refusal, Result, Strings, refuse};
use crate::array::{contains, distinct, elements};
use crate::made::MadeArray;
use bunko_bson::ValueRef;

const FIRST: Refusal = (17048, "both operands of $setDifference must be arrays. First argument is of type: {}");
const SECOND: Refusal = (17049, "both operands of $setDifference must be arrays. Second argument is of type: {}");

pub(super) const OPERATOR: Operator = Operator {
    name: "$setDifference",
    strings: Strings::Collated,
    form: Form::Positional(Arity::Exactly(2)),
    evaluate,
};

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (left, right) = (call.argument(0, context)?, call.argument(1, context)?);
    if left.is_nullish() || right.is_nullish() {
        return Ok(Evaluated::null());
    }
    let (candidates, excluded) = match (left.get(), right.get()) {
        (Some(ValueRef::Array(left)), Some(ValueRef::Array(right))) => {
            (elements(left, context)?, distinct(elements(right, context)?, context)?)
        }
        (Some(ValueRef::Array(_)), _) => return Err(refuse(SECOND, right.type_name())),
        _ => return Err(refuse(FIRST, left.type_name())),
    };
    let mut kept = Vec::new();
    for (position, element) in candidates.into_iter().enumerate() {
        context.operation().work(1)?;
        if !contains(&excluded, element, context.strings()) {
            kept.push((position, element));
        }
    }
    // Sorts equal elements together, keeps the first one of each, and restores the input's order.
    let mut kept = context.operation().sort_by(kept, |(_, a), (_, b)| context.strings().compare(*a, *b))?;
    kept.dedup_by(|(_, a), (_, b)| context.strings().equal(*a, *b));
    let kept = context.operation().sort_by(kept, |(a, _), (b, _)| a.cmp(b))?;
    let mut difference = MadeArray::new(call.name(), context);
    difference.extend(kept.into_iter().map(|(_, element)| element))?;
    Ok(difference.finish())
}
