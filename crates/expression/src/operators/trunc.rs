//! `$trunc`: drops the digits of a number after a given decimal place.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::rounding;

pub(super) const OPERATOR: Operator =
    Operator { name: "$trunc", strings: Strings::AsBytes, form: Form::Positional(Arity::Between(1, 2)), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    rounding::evaluate(call, context, rounding::Mode::Truncate)
}
