//! `$dateToParts`: a date taken apart, as a clock of the zone shows it.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings};
use crate::calendar::Civil;
use crate::date_part;
use bunko_bson::{DocumentBuf, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (40524, "$dateToParts only supports an object as its argument"),
    unknown: (40520, "Unrecognized argument to $dateToParts: {}"),
    names: &[("date", Some((40522, "Missing 'date' argument to $dateToParts"))), ("timezone", None), ("iso8601", None)],
};

pub(super) const OPERATOR: Operator =
    Operator { name: "$dateToParts", strings: Strings::AsBytes, form: Form::Named(&PARAMETERS), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let date = call.argument(0, context)?;
    let zone = date_part::zone(call.optional(1, context)?.as_ref())?;
    let iso = match call.optional(2, context)?.as_ref().map(Evaluated::or_null) {
        None => Some(false),
        Some(ValueRef::Null | ValueRef::Undefined) => None,
        Some(ValueRef::Boolean(iso)) => Some(iso),
        Some(other) => {
            let message = format!("iso8601 must evaluate to a bool, found {}", other.kind().alias());
            return Err(Failure::new(ErrorCode(40521), message));
        }
    };
    let (Some(zone), Some(iso), false) = (zone, iso, date.is_nullish()) else { return Ok(Evaluated::null()) };
    let civil = Civil::of(zone.local_ms(date_part::moment(&date)?));
    let mut parts = DocumentBuf::new();
    let mut append = |name: &str, part: i64| {
        parts.append(name, part as i32);
    };
    if iso {
        let (year, week) = civil.iso_week();
        append("isoWeekYear", year);
        append("isoWeek", week);
        append("isoDayOfWeek", civil.iso_day_of_week());
    } else {
        append("year", civil.year);
        append("month", civil.month);
        append("day", civil.day);
    }
    append("hour", civil.hour);
    append("minute", civil.minute);
    append("second", civil.second);
    append("millisecond", civil.millisecond);
    Ok(Value::Document(parts).into())
}
