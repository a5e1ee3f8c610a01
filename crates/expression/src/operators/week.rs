//! `$week`: the week of the year of a date: 0 before the year's first Sunday, on which week 1 begins.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::date_part;

pub(super) const OPERATOR: Operator =
    Operator { name: "$week", strings: Strings::AsBytes, form: Form::Special(date_part::parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    Ok(date_part::civil(call, context)?.map_or(Evaluated::null(), |civil| (civil.week() as i32).into()))
}
