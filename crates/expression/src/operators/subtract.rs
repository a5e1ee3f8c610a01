//! `$subtract`: the difference of numbers, of a date and milliseconds, or of two dates in milliseconds.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::number::Number;
use bunko_bson::{Value, ValueRef};
use bunko_errors::{ErrorCode, Failure};

pub(super) const OPERATOR: Operator =
    Operator { name: "$subtract", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(2)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (left, right) = (call.argument(0, context)?, call.argument(1, context)?);
    let overflow = || Failure::new(ErrorCode::OVERFLOW, "date overflow in $subtract");
    match (left.get(), right.get()) {
        _ if left.is_nullish() || right.is_nullish() => Ok(Evaluated::null()),
        (Some(ValueRef::DateTime(left)), Some(ValueRef::DateTime(right))) => {
            left.checked_sub(right).map(Evaluated::from).ok_or_else(overflow)
        }
        (Some(ValueRef::DateTime(ms)), Some(number)) if number.is_number() => {
            let number = Number::of(number).and_then(Number::rounded);
            let difference = number.and_then(|number| ms.checked_sub(number));
            difference.map(|ms| Value::DateTime(ms).into()).ok_or_else(overflow)
        }
        (left_value, right_value) => match (left_value.and_then(Number::of), right_value.and_then(Number::of)) {
            (Some(left), Some(right)) => Ok(left.minus(right).into()),
            _ => {
                let from = if matches!(left.get(), Some(ValueRef::DateTime(_))) { "Date" } else { left.type_name() };
                let message = format!("can't $subtract {} from {from}", right.type_name());
                Err(Failure::type_mismatch(message))
            }
        },
    }
}
