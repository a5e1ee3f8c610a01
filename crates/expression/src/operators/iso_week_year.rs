//! `$isoWeekYear`: the year to which the ISO 8601 week of a date belongs.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Result, Strings};
use crate::date_part;

pub(super) const OPERATOR: Operator =
    Operator { name: "$isoWeekYear", strings: Strings::AsBytes, form: Form::Special(date_part::parse), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    Ok(date_part::civil(call, context)?.map_or(Evaluated::null(), |civil| civil.iso_week().0.into()))
}
