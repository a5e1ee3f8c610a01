//! `$dateFromParts`: a date from year, month and so on, or from an ISO week; parts out of range carry over.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings, refuse};
use crate::calendar::{Civil, MS_PER_DAY};
use crate::printed::printed;
use crate::{Expression, ParseScope, date_part};
use bunko_bson::{Value, ValueRef, number};
use bunko_errors::{ErrorCode, Failure};
use std::ops::RangeInclusive;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (40519, "$dateFromParts only supports an object as its argument"),
    unknown: (40518, "Unrecognized argument to $dateFromParts: {}"),
    names: &[
        ("year", None),
        ("month", None),
        ("day", None),
        ("isoWeekYear", None),
        ("isoWeek", None),
        ("isoDayOfWeek", None),
        ("hour", None),
        ("minute", None),
        ("second", None),
        ("millisecond", None),
        ("timezone", None),
    ],
};
/// Positions of the parameters.
const YEAR: usize = 0;
const MONTH: usize = 1;
const DAY: usize = 2;
const ISO_WEEK_YEAR: usize = 3;
const ISO_WEEK: usize = 4;
const ISO_DAY_OF_WEEK: usize = 5;
const HOUR: usize = 6;
const ZONE: usize = 10;

const YEARS: RangeInclusive<i64> = 1..=9999;
/// Allowed values of a month, a day, a week, an hour and a minute.
const SMALL_PARTS: RangeInclusive<i64> = -32_768..=32_767;

pub(super) const OPERATOR: Operator =
    Operator { name: "$dateFromParts", strings: Strings::AsBytes, form: Form::Special(parse), evaluate };

fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let arguments = PARAMETERS.parse(value, scope)?;
    let has = |index: usize| !Expression::is_absent(&arguments[index]);
    if !has(YEAR) && !has(ISO_WEEK_YEAR) {
        return Err(refuse((40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present"), ""));
    }
    if has(YEAR) && (has(ISO_WEEK_YEAR) || has(ISO_WEEK) || has(ISO_DAY_OF_WEEK)) {
        return Err(refuse((40489, "$dateFromParts does not allow mixing natural dates with ISO dates"), ""));
    }
    if has(ISO_WEEK_YEAR) && (has(MONTH) || has(DAY)) {
        return Err(refuse((40525, "$dateFromParts does not allow mixing ISO dates with natural dates"), ""));
    }
    Ok(Call::new(operator, arguments))
}

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let mut parts = [0; ZONE];
    for (index, (name, _)) in PARAMETERS.names[..ZONE].iter().enumerate() {
        let Some(part) = part(call, context, index, name)? else { return Ok(Evaluated::null()) };
        parts[index] = part;
    }
    let Some(zone) = date_part::zone(call.optional(ZONE, context)?.as_ref())? else { return Ok(Evaluated::null()) };
    let days = if call.has(ISO_WEEK_YEAR) {
        Civil::first_iso_monday(parts[ISO_WEEK_YEAR]) + (parts[ISO_WEEK] - 1) * 7 + parts[ISO_DAY_OF_WEEK] - 1
    } else {
        0
    };
    let [year, month, day] = if call.has(YEAR) { [parts[YEAR], parts[MONTH], parts[DAY]] } else { [1970, 1, 1] };
    let [hour, minute, second, millisecond] = [HOUR, HOUR + 1, HOUR + 2, HOUR + 3].map(|index| parts[index]);
    let local = Civil { year, month, day, hour, minute, second: 0, millisecond: 0 }.to_ms();
    let local = local
        .and_then(|local| local.checked_add(days * MS_PER_DAY))
        .and_then(|local| local.checked_add(second.checked_mul(1000)?))
        .and_then(|local| local.checked_add(millisecond));
    let overflow = || Failure::new(ErrorCode(40523), "$dateFromParts: the date is out of range");
    Ok(Value::DateTime(zone.utc_ms(local.ok_or_else(overflow)?)).into())
}

/// Evaluates a part, or its default if it was not given; `None` for null.
fn part(call: &Call, context: &EvaluationContext<'_>, index: usize, name: &str) -> Result<Option<i64>> {
    let Some(value) = call.optional(index, context)? else { return Ok(Some(i64::from(index < HOUR))) };
    if value.is_nullish() {
        return Ok(None);
    }
    let Some(part) = value.get().and_then(number::as_i64_exact) else {
        let (kind, found) = (value.type_name(), printed(&value));
        let message = format!("'{name}' must evaluate to an integer, found {kind} with value :{found}");
        return Err(Failure::new(ErrorCode(40515), message));
    };
    let (range, code) = match index {
        YEAR | ISO_WEEK_YEAR => (YEARS, 40523),
        index if index < HOUR + 2 => (SMALL_PARTS, 31034),
        _ => return Ok(Some(part)),
    };
    if range.contains(&part) {
        return Ok(Some(part));
    }
    let message =
        format!("'{name}' must evaluate to an integer in the range {} to {}, found {part}", range.start(), range.end());
    Err(Failure::new(ErrorCode(code), message))
}
