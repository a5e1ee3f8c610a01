//! `$slice`: adjacent elements of an array.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Refusal, Result, Strings, refuse};
use crate::array::steps;
use crate::made::MadeArray;
use crate::number::as_i32;
use crate::printed::printed_value;
use bunko_bson::ValueRef;

const SECOND: [Refusal; 2] = [
    (28725, "Second argument to $slice must be a numeric value, but is of type: {}"),
    (28726, "Second argument to $slice can't be represented as a 32-bit integer: {}"),
];
const THIRD: [Refusal; 2] = [
    (28727, "Third argument to $slice must be numeric, but is of type: {}"),
    (28728, "Third argument to $slice can't be represented as a 32-bit integer: {}"),
];

pub(super) const OPERATOR: Operator =
    Operator { name: "$slice", strings: Strings::AsBytes, form: Form::Positional(Arity::Between(2, 3)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (array, first) = (call.argument(0, context)?, call.argument(1, context)?);
    if array.is_nullish() || first.is_nullish() {
        return Ok(Evaluated::null());
    }
    let Some(ValueRef::Array(elements)) = array.get() else {
        let refusal = (28724, "First argument to $slice must be an array, but is of type: {}");
        return Err(refuse(refusal, array.type_name()));
    };
    let first = integer(&first, SECOND)?;
    context.operation().work(steps(elements))?;
    let count = elements.count() as i64;
    let (from, length) = match call.optional(2, context)? {
        None if first < 0 => ((count + first).max(0), count),
        None => (0, first),
        Some(length) if length.is_nullish() => return Ok(Evaluated::null()),
        Some(length) => {
            let length = integer(&length, THIRD)?;
            if length <= 0 {
                let refusal = (28729, "Third argument to $slice must be positive: {}");
                return Err(refuse(refusal, &length.to_string()));
            }
            (if first < 0 { (count + first).max(0) } else { first }, length)
        }
    };
    let mut slice = MadeArray::new(call.name(), context);
    slice.extend(elements.iter().skip(from as usize).take(length as usize))?;
    Ok(slice.finish())
}

fn integer(value: &Evaluated<'_>, refusals: [Refusal; 2]) -> Result<i64> {
    match value.get() {
        Some(number) if number.is_number() => {
            as_i32(number).map(i64::from).ok_or_else(|| refuse(refusals[1], &printed_value(number)))
        }
        _ => Err(refuse(refusals[0], value.type_name())),
    }
}
