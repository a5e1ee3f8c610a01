//! `$indexOfArray`: the position of the first equal element, or -1.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::array::{self, RangeCodes, search_range};
use crate::made;
use bunko_bson::ValueRef;

const RANGE: RangeCodes = RangeCodes { not_integral: 9_711_600, negative: 9_711_601 };

pub(super) const OPERATOR: Operator = Operator {
    name: "$indexOfArray",
    strings: Strings::Collated,
    form: Form::Positional(Arity::Between(2, 4)),
    evaluate,
};

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (input, wanted) = (call.argument(0, context)?, call.argument(1, context)?);
    if input.is_nullish() {
        return Ok(Evaluated::null());
    }
    let Some(ValueRef::Array(elements)) = input.get() else {
        return Err(
            call.failure(40090, &format!(" requires an array as a first argument, found: {}", input.type_name()))
        );
    };
    context.operation().work(array::steps(elements))?;
    let (from, to) = search_range(call, context, elements.count(), RANGE)?;
    let wanted = wanted.comparable();
    let steps = made::steps(wanted);
    for (position, element) in elements.iter().enumerate().take(to).skip(from) {
        context.operation().work(steps)?;
        if context.strings().equal(element, wanted) {
            return Ok((position as i32).into());
        }
    }
    Ok((-1).into())
}
