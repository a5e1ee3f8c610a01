//! `$tsSecond` and `$tsIncrement`: the two halves of a timestamp, as longs.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use bunko_bson::{Timestamp, ValueRef};
use bunko_errors::{ErrorCode, Failure};

pub(super) const TS_SECOND: Operator = Operator {
    name: "$tsSecond",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Exactly(1)),
    evaluate: |call, context| half(call, context, |timestamp| timestamp.seconds, 5_687_301),
};
pub(super) const TS_INCREMENT: Operator = Operator {
    name: "$tsIncrement",
    strings: Strings::AsBytes,
    form: Form::Positional(Arity::Exactly(1)),
    evaluate: |call, context| half(call, context, |timestamp| timestamp.increment, 5_687_302),
};

fn half<'a>(
    call: &'a Call,
    context: &EvaluationContext<'a>,
    take: fn(Timestamp) -> u32,
    not_a_timestamp: i32,
) -> Result<Evaluated<'a>> {
    let Some(value) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    match value.get() {
        Some(ValueRef::Timestamp(timestamp)) => Ok(i64::from(take(timestamp)).into()),
        _ => {
            // MongoDB's message begins with a space.
            let message = format!(" Argument to {} must be a timestamp, but is {}", call.name(), value.type_name());
            Err(Failure::new(ErrorCode(not_a_timestamp), message))
        }
    }
}
