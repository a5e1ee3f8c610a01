//! `$abs`: the absolute value.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::number::Number;
use bunko_errors::{ErrorCode, Failure};

pub(super) const OPERATOR: Operator =
    Operator { name: "$abs", strings: Strings::AsBytes, form: Form::Positional(Arity::Exactly(1)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(number) = call.number(context)? else { return Ok(Evaluated::null()) };
    Ok(match number {
        Number::Int32(n) => n.checked_abs().map_or_else(|| Evaluated::from(i64::from(n).abs()), Evaluated::from),
        Number::Int64(i64::MIN) => return Err(Failure::new(ErrorCode(28680), "can't take $abs of long long min")),
        Number::Int64(n) => n.abs().into(),
        Number::Double(n) => n.abs().into(),
        Number::Decimal(n) => Number::Decimal(n.abs()).into(),
    })
}
