//! `$bitAnd`, `$bitOr`, `$bitXor` of any number of integers, and `$bitNot` of one.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result};
use crate::number::{Number, integer_like};
use bunko_errors::{ErrorCode, Failure};

pub(super) const BIT_AND: Operator = Operator {
    name: "$bitAnd",
    form: Form::Positional(Arity::Any),
    evaluate: |call, context| fold(call, context, -1, |a, b| a & b),
};
pub(super) const BIT_OR: Operator = Operator {
    name: "$bitOr",
    form: Form::Positional(Arity::Any),
    evaluate: |call, context| fold(call, context, 0, |a, b| a | b),
};
pub(super) const BIT_XOR: Operator = Operator {
    name: "$bitXor",
    form: Form::Positional(Arity::Any),
    evaluate: |call, context| fold(call, context, 0, |a, b| a ^ b),
};
pub(super) const BIT_NOT: Operator =
    Operator { name: "$bitNot", form: Form::Positional(Arity::Exactly(1)), evaluate: bit_not };

/// An int where all operands are, else a long.
fn fold<'a>(
    call: &'a Call,
    context: &EvaluationContext<'a>,
    neutral: i32,
    combine: fn(i64, i64) -> i64,
) -> Result<Evaluated<'a>> {
    let mut folded = Number::Int32(neutral);
    let mut is_null = false;
    for index in 0..call.arguments.len() {
        let value = call.argument(index, context)?;
        if value.is_nullish() {
            is_null = true;
            continue;
        }
        let number = integer(call, &value)?;
        if let (Some(left), Some(right)) = (folded.as_integer(), number.as_integer()) {
            folded = integer_like(combine(left, right), [folded, number]);
        }
    }
    Ok(if is_null { Evaluated::null() } else { folded.into() })
}

fn bit_not<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(value) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    let number = integer(call, &value)?;
    Ok(match number {
        Number::Int32(bits) => Number::Int32(!bits),
        other => Number::Int64(!other.as_integer().unwrap_or_default()),
    }
    .into())
}

/// # Errors
/// `TypeMismatch` for anything but an int or a long.
fn integer(call: &Call, value: &Evaluated<'_>) -> Result<Number> {
    value.get().and_then(Number::of).filter(|number| number.as_integer().is_some()).ok_or_else(|| {
        let message = format!("{} only supports int and long operands, not {}", call.name(), value.type_name());
        Failure::new(ErrorCode::TYPE_MISMATCH, message)
    })
}
