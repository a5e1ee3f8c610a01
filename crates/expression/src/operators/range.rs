//! `$range`: integers from a start to before an end.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Refusal, Result, Strings, refuse};
use crate::made::MadeArray;
use crate::number::as_i32;
use crate::printed::printed_value;
use bunko_bson::ValueRef;

const START: [Refusal; 2] = [
    (34443, "$range requires a numeric starting value, found value of type: {}"),
    (34444, "$range requires a starting value that can be represented as a 32-bit integer, found value: {}"),
];
const END: [Refusal; 2] = [
    (34445, "$range requires a numeric ending value, found value of type: {}"),
    (34446, "$range requires an ending value that can be represented as a 32-bit integer, found value: {}"),
];
const STEP: [Refusal; 2] = [
    (34447, "$range requires a numeric step value, found value of type:{}"),
    (34448, "$range requires a step value that can be represented as a 32-bit integer, found value: {}"),
];

pub(super) const OPERATOR: Operator =
    Operator { name: "$range", strings: Strings::AsBytes, form: Form::Positional(Arity::Between(2, 3)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let argument = |index: usize, refusals: [Refusal; 2]| -> Result<i64> {
        let value = call.argument(index, context)?;
        match value.get() {
            Some(number) if number.is_number() => {
                as_i32(number).map(i64::from).ok_or_else(|| refuse(refusals[1], &printed_value(number)))
            }
            _ => Err(refuse(refusals[0], value.type_name())),
        }
    };
    let (mut next, end) = (argument(0, START)?, argument(1, END)?);
    let step = if call.has(2) { argument(2, STEP)? } else { 1 };
    if step == 0 {
        return Err(call.failure(34449, " requires a non-zero step value"));
    }
    let mut range = MadeArray::new(call.name(), context);
    while if step > 0 { next < end } else { next > end } {
        range.push_element(ValueRef::Int32(next as i32))?;
        next += step;
    }
    Ok(range.finish())
}
