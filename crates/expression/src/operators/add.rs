//! `$add`: the sum of numbers, or a date and numbers of milliseconds.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::number::{Number, Operand};
use bunko_bson::{Value, ValueRef};
use bunko_errors::{ErrorCode, Failure};

pub(super) const OPERATOR: Operator =
    Operator { name: "$add", strings: Strings::AsBytes, form: Form::Positional(Arity::Any), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let mut sum = Number::Int32(0);
    let mut is_date = false;
    for argument in &call.arguments {
        let term = match argument.operand(context)? {
            Operand::Number(number) => {
                sum = sum.plus(number);
                continue;
            }
            Operand::Other(term) => term,
        };
        match term.get() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Evaluated::null()),
            Some(ValueRef::DateTime(_)) if is_date => {
                return Err(Failure::new(ErrorCode(16612), "only one date allowed in an $add expression"));
            }
            Some(ValueRef::DateTime(ms)) => {
                is_date = true;
                sum = sum.plus(Number::Int64(ms));
            }
            Some(_) => {
                let message = format!("$add only supports numeric or date types, not {}", term.type_name());
                return Err(Failure::type_mismatch(message));
            }
        }
    }
    if is_date { date(sum) } else { Ok(sum.into()) }
}

fn date<'a>(ms: Number) -> Result<Evaluated<'a>> {
    let ms = ms.rounded().ok_or_else(|| Failure::new(ErrorCode::OVERFLOW, "date overflow in $add"))?;
    Ok(Value::DateTime(ms).into())
}
