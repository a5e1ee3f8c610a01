//! `$rand`: a number from 0 up to 1, another one each time.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::ParseScope;
use bunko_bson::ValueRef;
use bunko_errors::{ErrorCode, Failure};

pub(super) const OPERATOR: Operator =
    Operator { name: "$rand", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn evaluate<'a>(_: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let operation = context.operation();
    operation.work(1)?;
    Ok(operation.random().into())
}

fn parse(operator: &'static Operator, value: ValueRef<'_>, _: &ParseScope) -> Result<Call> {
    let is_empty = match value {
        ValueRef::Document(document) => document.is_empty(),
        ValueRef::Array(array) => array.is_empty(),
        _ => return Err(Failure::new(ErrorCode(10065), "invalid parameter: expected an object ($rand)")),
    };
    if is_empty {
        return Ok(Call::new(operator, Vec::new()));
    }
    Err(Failure::new(ErrorCode(3_040_501), "$rand does not currently accept arguments"))
}
