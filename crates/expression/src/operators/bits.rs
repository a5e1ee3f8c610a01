//! `$bitAnd`, `$bitOr`, `$bitXor` of any number of integers, and `$bitNot` of one.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::number::{Number, integer_like};
use bunko_errors::Failure;

pub(super) const BIT_AND: Operator = Operator {
    name: "$bitAnd",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Any),
    evaluate: |call, context| fold(call, context, -1, |a, b| a & b),
};
pub(super) const BIT_OR: Operator = Operator {
    name: "$bitOr",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Any),
    evaluate: |call, context| fold(call, context, 0, |a, b| a | b),
};
pub(super) const BIT_XOR: Operator = Operator {
    name: "$bitXor",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Any),
    evaluate: |call, context| fold(call, context, 0, |a, b| a ^ b),
};
pub(super) const BIT_NOT: Operator = Operator {
    name: "$bitNot",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Exactly(1)),
    evaluate: bit_not,
};

/// Combines all operands: the result is an int if all operands are, else a long, and null if an operand is null.
fn fold<'a>(
    call: &'a Call,
    context: &EvaluationContext<'a>,
    neutral: i32,
    combine: fn(i64, i64) -> i64,
) -> Result<Evaluated<'a>> {
    let mut folded = Number::Int32(neutral);
    for index in 0..call.arguments.len() {
        let value = call.argument(index, context)?;
        if value.is_nullish() {
            return Ok(Evaluated::null());
        }
        let number = value.get().and_then(Number::of);
        let (Some(left), Some((number, right))) = (folded.as_integer(), number.and_then(with_integer)) else {
            let message = format!("{} only supports int and long operands.", call.name());
            return Err(Failure::type_mismatch(message));
        };
        folded = integer_like(combine(left, right), [folded, number]);
    }
    Ok(folded.into())
}

fn bit_not<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(number) = call.number(context)? else { return Ok(Evaluated::null()) };
    match number {
        Number::Int32(bits) => Ok((!bits).into()),
        Number::Int64(bits) => Ok((!bits).into()),
        Number::Double(_) | Number::Decimal(_) => {
            let kind = Evaluated::from(number).type_name();
            Err(Failure::type_mismatch(format!("{} only supports int and long, not: {kind}.", call.name())))
        }
    }
}

/// The number, also as an `i64`; `None` unless its type is an int or a long.
fn with_integer(number: Number) -> Option<(Number, i64)> {
    number.as_integer().map(|integer| (number, integer))
}
