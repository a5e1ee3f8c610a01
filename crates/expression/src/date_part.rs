//! Dates as arguments: the date itself, its zone, and moving it by units.

use crate::Evaluated;
use crate::calendar::{self, Civil, MS_PER_DAY, MS_PER_HOUR, MS_PER_MINUTE, MS_PER_SECOND};
use crate::call::{Arity, Call, Operator, positional};
use crate::printed::printed;
use crate::variables::EvaluationContext;
use crate::{Expression, ParseScope, conversion};
use bunko_bson::{Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// Reads a date, or `{date, timezone}`; the arguments are the date and the zone.
pub(crate) fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let named =
        value.as_document().filter(|document| document.first().is_some_and(|element| !element.name.starts_with('$')));
    let Some(document) = named else {
        let mut arguments = positional(value, scope)?;
        Arity::Exactly(1).check(operator.name, arguments.len())?;
        arguments.push(Expression::ABSENT);
        return Ok(Call::new(operator, arguments));
    };
    let mut arguments = vec![Expression::ABSENT, Expression::ABSENT];
    for element in document {
        let index = match element.name {
            "date" => 0,
            "timezone" => 1,
            other => {
                let message = format!("unrecognized option to {}: \"{other}\"", operator.name);
                return Err(Failure::new(ErrorCode(40535), message));
            }
        };
        arguments[index] = Expression::parse(element.value, scope)?;
    }
    if arguments[0].is_absent() {
        let found = crate::printed::printed_document(document);
        let message = format!("missing 'date' argument to {}, provided: {found}", operator.name);
        return Err(Failure::new(ErrorCode(40539), message));
    }
    Ok(Call::new(operator, arguments))
}

/// The date in its zone, taken apart; nothing where either is null.
pub(crate) fn civil(call: &Call, context: &EvaluationContext<'_>) -> Result<Option<Civil>> {
    let (date, zone) = (call.argument(0, context)?, call.optional(1, context)?);
    if date.is_nullish() {
        return Ok(None);
    }
    let Some(offset) = offset_minutes(call, zone.as_ref())? else { return Ok(None) };
    Ok(Some(Civil::of(moment(&date)? + offset * MS_PER_MINUTE)))
}

/// The moment that a value stands for, in milliseconds since 1970.
/// # Errors
/// 16006 for a type that stands for none.
pub(crate) fn moment(date: &Evaluated<'_>) -> Result<i64> {
    date.get().and_then(conversion::moment).ok_or_else(|| {
        let message = format!("can't convert from BSON type {} to Date", date.type_name());
        Failure::new(ErrorCode(16006), message)
    })
}

/// A zone's offset; UTC without one, nothing where it is null.
pub(crate) fn offset_minutes(call: &Call, zone: Option<&Evaluated<'_>>) -> Result<Option<i64>> {
    match zone.map(Evaluated::or_null) {
        None => Ok(Some(0)),
        Some(ValueRef::Null | ValueRef::Undefined) => Ok(None),
        Some(ValueRef::String(zone)) => calendar::parse_offset(zone).map(Some),
        Some(other) => {
            let (kind, found) = (other.kind().alias(), crate::printed::printed_value(other));
            let message = format!(" requires a string for the timezone argument, but was given a {kind} ({found})");
            Err(call.failure(40533, &message))
        }
    }
}

/// Evaluates an operator whose arguments are a date, a unit, an amount and, perhaps, a zone.
pub(crate) fn shifted<'a>(call: &'a Call, context: &EvaluationContext<'a>, sign: i64) -> Result<Evaluated<'a>> {
    let (date, unit, amount) = (call.argument(0, context)?, call.argument(1, context)?, call.argument(2, context)?);
    let zone = call.optional(3, context)?;
    if date.is_nullish() || unit.is_nullish() || amount.is_nullish() {
        return Ok(Evaluated::null());
    }
    let Some(start) = date.get().and_then(conversion::moment) else {
        return Err(call.failure(5_166_403, " requires startDate to be convertible to a date"));
    };
    let Some(unit) = unit.get().and_then(ValueRef::as_str) else {
        let message = format!(" requires 'unit' to be a string, but got {}", printed(&unit));
        return Err(call.failure(5_166_404, &message));
    };
    let Some(amount) = amount.get().and_then(bunko_bson::number::as_i64_exact) else {
        return Err(call.failure(5_166_405, " expects integer amount of time units"));
    };
    let Some(offset) = offset_minutes(call, zone.as_ref())? else { return Ok(Evaluated::null()) };
    let overflow = || Failure::new(ErrorCode(5_166_406), format!("{} overflowed", call.name()));
    let amount = amount.checked_mul(sign).ok_or_else(overflow)?;
    let local = start + offset * MS_PER_MINUTE;
    let moved = shift(local, unit, amount)?.ok_or_else(overflow)?;
    Ok(Value::DateTime(moved - offset * MS_PER_MINUTE).into())
}

/// Moves a moment by units; nothing where it leaves the calendar.
fn shift(ms: i64, unit: &str, amount: i64) -> Result<Option<i64>> {
    let unit_ms = match unit {
        "year" => return Ok(amount.checked_mul(12).and_then(|months| shift_months(ms, months))),
        "quarter" => return Ok(amount.checked_mul(3).and_then(|months| shift_months(ms, months))),
        "month" => return Ok(shift_months(ms, amount)),
        "week" => 7 * MS_PER_DAY,
        "day" => MS_PER_DAY,
        "hour" => MS_PER_HOUR,
        "minute" => MS_PER_MINUTE,
        "second" => MS_PER_SECOND,
        "millisecond" => 1,
        other => return Err(Failure::failed_to_parse(format!("unknown time unit value: {other}"))),
    };
    Ok(amount.checked_mul(unit_ms).and_then(|moved| ms.checked_add(moved)))
}

/// Months are of different lengths: the last day stays the last where the day is missing.
fn shift_months(ms: i64, months: i64) -> Option<i64> {
    let civil = Civil::of(ms);
    let total = (civil.month - 1).checked_add(months)?;
    let year = civil.year.checked_add(total.div_euclid(12))?;
    let month = total.rem_euclid(12) + 1;
    if year.abs() > 400_000_000 {
        return None;
    }
    let day = civil.day.min(calendar::days_in_month(year, month));
    Civil { year, month, day, ..civil }.to_ms()
}
