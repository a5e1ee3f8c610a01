//! `$isoDayOfWeek`: the day of the week of a date, 1 for Monday.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::date_part;

pub(super) const OPERATOR: Operator =
    Operator { name: "$isoDayOfWeek", strings: Strings::AsBytes, form: Form::Special(date_part::parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    Ok(date_part::civil(call, context)?.map_or(Evaluated::null(), |civil| (civil.iso_day_of_week() as i32).into()))
}
