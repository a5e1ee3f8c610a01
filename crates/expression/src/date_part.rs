//! Dates as arguments: reading a date and its zone, and moving dates by units.

use crate::Evaluated;
use crate::calendar::{self, Civil, MS_PER_DAY, MS_PER_HOUR, MS_PER_MINUTE, MS_PER_SECOND};
use crate::call::{Call, Operator, positional, refuse};
use crate::printed::printed_value;
use crate::time_zone::Zone;
use crate::variables::EvaluationContext;
use crate::{Expression, ParseScope, conversion};
use bunko_bson::text::ValueText;
use bunko_bson::{Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// Parses a date, or `{date, timezone}`. The arguments are the date and the zone.
pub(crate) fn parse(operator: &'static Operator, value: ValueRef<'_>, scope: &ParseScope) -> Result<Call> {
    let named =
        value.as_document().filter(|document| document.first().is_none_or(|element| !element.name.starts_with('$')));
    let Some(document) = named else {
        let mut arguments = positional(value, scope)?;
        if arguments.len() != 1 {
            let (name, given) = (operator.name, arguments.len());
            let message = format!("{name} accepts exactly one argument if given an array, but was given {given}");
            return Err(Failure::new(ErrorCode(40536), message));
        }
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
        let found = ValueText(value);
        let message = format!("missing 'date' argument to {}, provided: {}: {found}", operator.name, operator.name);
        return Err(Failure::new(ErrorCode(40539), message));
    }
    Ok(Call::new(operator, arguments))
}

/// The date's parts on a clock of the zone; `None` if the date or the zone is null.
pub(crate) fn civil(call: &Call, context: &EvaluationContext<'_>) -> Result<Option<Civil>> {
    let (date, zone) = (call.argument(0, context)?, call.optional(1, context)?);
    if date.is_nullish() {
        return Ok(None);
    }
    let not_a_string = |zone: ValueRef<'_>| {
        let (kind, found) = (zone.kind().alias(), printed_value(zone));
        let message = format!(" requires a string for the timezone argument, but was given a {kind} ({found})");
        call.failure(40517, &message)
    };
    let Some(zone) = read_zone(zone.as_ref(), not_a_string)? else { return Ok(None) };
    Ok(Some(Civil::of(zone.local_ms(moment(&date)?))))
}

/// The moment of a value, in milliseconds since 1970.
/// # Errors
/// 16006 for a type that has no date.
pub(crate) fn moment(date: &Evaluated<'_>) -> Result<i64> {
    date.get().and_then(conversion::moment).ok_or_else(|| {
        let message = format!("can't convert from BSON type {} to Date", date.type_name());
        Failure::new(ErrorCode(16006), message)
    })
}

/// A zone; UTC by default, `None` for null.
/// # Errors
/// 40485 for an unknown zone, 40517 for a value that is not a string.
pub(crate) fn zone(value: Option<&Evaluated<'_>>) -> Result<Option<Zone>> {
    read_zone(value, |other| refuse((40517, "timezone must evaluate to a string, found {}"), other.kind().alias()))
}

fn read_zone(value: Option<&Evaluated<'_>>, not_a_string: impl Fn(ValueRef<'_>) -> Failure) -> Result<Option<Zone>> {
    match value.map(Evaluated::or_null) {
        None => Ok(Some(Zone::UTC)),
        Some(ValueRef::Null | ValueRef::Undefined) => Ok(None),
        Some(ValueRef::String(name)) => Zone::parse(name).map(Some),
        Some(other) => Err(not_a_string(other)),
    }
}

/// Evaluates `$dateAdd` (`sign` 1) or `$dateSubtract` (-1): the arguments are a date, a unit, an amount and,
/// optionally, a zone.
pub(crate) fn shifted<'a>(call: &'a Call, context: &EvaluationContext<'a>, sign: i64) -> Result<Evaluated<'a>> {
    let (date, unit) = (call.argument(0, context)?, call.argument(1, context)?);
    if date.is_nullish() || unit.is_nullish() {
        return Ok(Evaluated::null());
    }
    let unit = Unit::parse(call, &unit)?;
    let (amount, zone) = (call.argument(2, context)?, call.optional(3, context)?);
    if amount.is_nullish() {
        return Ok(Evaluated::null());
    }
    let Some(zone) = self::zone(zone.as_ref())? else { return Ok(Evaluated::null()) };
    let Some(start) = date.get().and_then(conversion::moment) else {
        return Err(call.failure(5_166_403, " requires startDate to be convertible to a date"));
    };
    let Some(amount) = amount.get().and_then(bunko_bson::number::as_i64_exact) else {
        return Err(call.failure(5_166_405, " expects integer amount of time units"));
    };
    let amount = amount.checked_mul(sign).ok_or_else(|| {
        let message = format!("invalid {} 'amount' parameter value: {amount}", call.name());
        Failure::new(ErrorCode(6_045_000), message)
    })?;
    if unit.amount_max().is_some_and(|most| amount.unsigned_abs() > most) {
        let message = format!("invalid {} 'amount' parameter value: {amount}", call.name());
        return Err(Failure::new(ErrorCode(5_976_500), message));
    }
    let moved = unit.shift(&zone, start, amount).ok_or_else(|| refuse((5_166_406, "dateAdd overflowed"), ""))?;
    Ok(Value::DateTime(moved).into())
}

/// A unit for moving, truncating and subtracting dates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Years, quarters and months, in months.
    Months(i64),
    /// Weeks and days, in days of the local clock.
    Days(i64),
    /// Hours and shorter units, in milliseconds.
    Milliseconds(i64),
}

impl Unit {
    pub(crate) const WEEK: Self = Self::Days(7);

    /// # Errors
    /// 5439013 for a value that is not a string, `FailedToParse` for an unknown name.
    pub(crate) fn parse(call: &Call, unit: &Evaluated<'_>) -> Result<Self> {
        let Some(name) = unit.get().and_then(ValueRef::as_str) else {
            let message = format!(" requires 'unit' to be a string, but got {}", unit.type_name());
            return Err(call.failure(5_439_013, &message));
        };
        Ok(match name {
            "year" => Self::Months(12),
            "quarter" => Self::Months(3),
            "month" => Self::Months(1),
            "week" => Self::WEEK,
            "day" => Self::Days(1),
            "hour" => Self::Milliseconds(MS_PER_HOUR),
            "minute" => Self::Milliseconds(MS_PER_MINUTE),
            "second" => Self::Milliseconds(MS_PER_SECOND),
            "millisecond" => Self::Milliseconds(1),
            other => {
                let why =
                    format!("parameter 'unit' value parsing failed :: caused by :: unknown time unit value: {other}");
                return Err(Failure::failed_to_parse(format!("{} {why}", call.name())));
            }
        })
    }

    /// Largest amount, in either direction: the number of units between two dates.
    /// Source: MongoDB manual, "$dateAdd", and the range of dates in 64 bits of milliseconds.
    pub(crate) fn amount_max(self) -> Option<u64> {
        const YEARS: u64 = 584_942_417;
        match self {
            Self::Months(months) => Some(YEARS * 12 / months.unsigned_abs()),
            Self::Days(days) => Some(u64::MAX / (days * MS_PER_DAY).unsigned_abs()),
            Self::Milliseconds(1) => None,
            Self::Milliseconds(length) => Some(u64::MAX / length.unsigned_abs()),
        }
    }

    /// Moves a moment by some units; `None` outside the calendar. Days and longer units follow the local clock: a day
    /// on which it is set forward has 23 hours.
    fn shift(self, zone: &Zone, utc_ms: i64, amount: i64) -> Option<i64> {
        match self {
            Self::Months(months) => {
                shift_months(zone.local_ms(utc_ms), amount.checked_mul(months)?).map(|local| zone.utc_ms(local))
            }
            Self::Days(days) => {
                let moved = amount.checked_mul(days)?.checked_mul(MS_PER_DAY)?;
                zone.local_ms(utc_ms).checked_add(moved).map(|local| zone.utc_ms(local))
            }
            Self::Milliseconds(length) => utc_ms.checked_add(amount.checked_mul(length)?),
        }
    }
}

/// Reads a day of the week, 1 (Monday) to 7: its name or the first three letters, in any case.
/// # Errors
/// 5439015 for a value that is not a string, 5439016 for an unknown name.
pub(crate) fn start_of_week(call: &Call, day: &Evaluated<'_>) -> Result<i64> {
    let Some(name) = day.get().and_then(ValueRef::as_str) else {
        let message = format!(" requires 'startOfWeek' to be a string, but got {}", day.type_name());
        return Err(call.failure(5_439_015, &message));
    };
    let lower = name.to_ascii_lowercase();
    let days = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let number = days.iter().position(|day| lower == **day || lower == day[..3]);
    number.map(|index| index as i64 + 1).ok_or_else(|| {
        let message = format!(" parameter 'startOfWeek' value cannot be recognized as a day of a week: {name}");
        call.failure(5_439_016, &message)
    })
}

/// The moment of a value; 5166307 for a type that has no date.
pub(crate) fn moment_of(call: &Call, parameter: &str, date: &Evaluated<'_>) -> Result<i64> {
    date.get().and_then(conversion::moment).ok_or_else(|| {
        let message = format!(" requires '{parameter}' to be a date, but got {}", date.type_name());
        call.failure(5_166_307, &message)
    })
}

/// Moves a date by months. A day that the new month lacks becomes its last day.
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
