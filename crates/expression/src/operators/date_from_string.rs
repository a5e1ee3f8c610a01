//! `$dateFromString`: a date from ISO 8601 text; other formats are refused.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result};
use crate::calendar;
use crate::date_part;
use crate::printed::printed;
use bunko_bson::{Value, ValueRef};
use bunko_errors::{ErrorCode, Failure};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (40540, "$dateFromString only supports an object as an argument, found: {}"),
    unknown: (40541, "Unrecognized argument to $dateFromString: {}"),
    names: &[
        ("dateString", Some((40542, "Missing 'dateString' parameter to $dateFromString"))),
        ("timezone", None),
        ("onError", None),
        ("onNull", None),
        ("format", None),
    ],
};

pub(super) const OPERATOR: Operator = Operator { name: "$dateFromString", form: Form::Named(&PARAMETERS), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let text = call.argument(0, context)?;
    let zone = call.optional(1, context)?;
    if text.is_nullish() {
        return if call.has(3) { call.argument(3, context) } else { Ok(Evaluated::null()) };
    }
    if call.has(4) {
        return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, "$dateFromString with 'format' is not supported"));
    }
    let Some(offset) = date_part::offset_minutes(call, zone.as_ref())? else { return Ok(Evaluated::null()) };
    let parsed = match text.get() {
        Some(ValueRef::String(text)) => {
            calendar::parse_iso(text).ok_or_else(|| format!("Error parsing date string '{text}'"))
        }
        _ => {
            let (kind, found) = (text.type_name(), printed(&text));
            Err(format!("$dateFromString requires that 'dateString' be a string, found: {kind} with value {found}"))
        }
    };
    match parsed {
        Ok(ms) => Ok(Value::DateTime(ms - offset * calendar::MS_PER_MINUTE).into()),
        Err(_) if call.has(2) => call.argument(2, context),
        Err(message) => Err(Failure::new(ErrorCode::CONVERSION_FAILURE, message)),
    }
}
