//! `$toDecimal`: converts to a decimal; null stays null.

use super::{Arity, Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::conversion;
use bunko_bson::Type;

pub(super) const OPERATOR: Operator =
    Operator { name: "$toDecimal", strings: Strings::AsBytes, form: Form::Positional(Arity::Conversion), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let Some(value) = call.not_null(context)? else { return Ok(Evaluated::null()) };
    Ok(conversion::convert(value.or_null(), Type::Decimal128)?.into())
}
