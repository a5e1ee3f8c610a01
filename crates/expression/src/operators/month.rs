//! `$month`: the month of a date, 1 to 12.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::date_part;

pub(super) const OPERATOR: Operator =
    Operator { name: "$month", strings: Strings::AsBytes, form: Form::Special(date_part::parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    Ok(date_part::civil(call, context)?.map_or(Evaluated::null(), |civil| (civil.month as i32).into()))
}
