//! `$arrayElemAt`: the element at a position; from the end where negative; missing outside.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::array::element_at;
use crate::number::as_i32;
use crate::printed::printed_value;
use bunko_bson::ValueRef;

const NOT_AN_ARRAY: &str = "'s first argument must be an array, but is ";

pub(super) const OPERATOR: Operator =
    Operator { name: "$arrayElemAt", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(2)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (array, position) = (call.argument(0, context)?, call.argument(1, context)?);
    if array.is_nullish() || position.is_nullish() {
        return Ok(Evaluated::null());
    }
    // As in MongoDB, a wrong array is reported before a wrong position.
    if !matches!(array.get(), Some(ValueRef::Array(_))) {
        return element_at(call, context, array, 0, NOT_AN_ARRAY);
    }
    let position = match position.get() {
        Some(value) if value.is_number() => as_i32(value).ok_or_else(|| {
            let found = printed_value(value);
            call.failure(28691, &format!("'s second argument must be representable as a 32-bit integer: {found}"))
        })?,
        _ => {
            let message = format!("'s second argument must be a numeric value, but is {}", position.type_name());
            return Err(call.failure(28690, &message));
        }
    };
    element_at(call, context, array, position, NOT_AN_ARRAY)
}
