//! `$dateTrunc`: the beginning of the unit, or of the bin of several units, that contains a date. Bins are counted from
//! 1 January 2000; bins of weeks from the first beginning of a week after it.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings, refuse};
use crate::calendar::{Civil, MS_PER_DAY, days_from_civil};
use crate::date_part::{self, Unit};
use crate::time_zone::Zone;
use bunko_bson::{Value, number};

const PARAMETERS: Parameters = Parameters {
    not_an_object: (5_439_007, "$dateTrunc only supports an object as its argument"),
    unknown: (5_439_008, "Unrecognized argument to $dateTrunc: {}"),
    names: &[
        ("date", Some((5_439_009, "Missing 'date' parameter to $dateTrunc"))),
        ("unit", Some((5_439_010, "Missing 'unit' parameter to $dateTrunc"))),
        ("binSize", None),
        ("timezone", None),
        ("startOfWeek", None),
    ],
};
/// Sunday.
const START_OF_WEEK: i64 = 7;
/// The year from which bins are counted.
const REFERENCE_YEAR: i64 = 2000;
/// Maximum length of a bin in days, weeks, months, quarters or years.
const CALENDAR_BIN_MAX: i64 = 100_000_000_000;
const TOO_LARGE: &str = " requires a 'binSize' that fits into the range of dates";

pub(super) const OPERATOR: Operator =
    Operator { name: "$dateTrunc", strings: Strings::AsBytes, form: Form::Named(&PARAMETERS), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (date, unit) = (call.argument(0, context)?, call.argument(1, context)?);
    let (size, zone, first_day) = (call.optional(2, context)?, call.optional(3, context)?, call.optional(4, context)?);
    let is_null = |value: &Option<Evaluated<'_>>| value.as_ref().is_some_and(Evaluated::is_nullish);
    if date.is_nullish() || unit.is_nullish() || is_null(&size) || is_null(&zone) {
        return Ok(Evaluated::null());
    }
    let utc_ms = date_part::moment_of(call, "date", &date)?;
    let unit = Unit::parse(call, &unit)?;
    let size = size.map_or(Ok(1), |size| bin_size(call, &size))?;
    let first_day = match first_day {
        Some(day) if unit == Unit::WEEK && day.is_nullish() => return Ok(Evaluated::null()),
        Some(day) if unit == Unit::WEEK => date_part::start_of_week(call, &day)?,
        _ => START_OF_WEEK,
    };
    let Some(zone) = date_part::zone(zone.as_ref())? else { return Ok(Evaluated::null()) };
    let local = match unit {
        Unit::Milliseconds(length) => {
            let bin = length.checked_mul(size).ok_or_else(|| call.failure(5_439_002, TOO_LARGE))?;
            return Ok(Value::DateTime(within_days(&zone, bin, utc_ms)?).into());
        }
        Unit::Days(days) => {
            let reference = days_from_civil(REFERENCE_YEAR, 1, 1) + if days == 7 { first_week(first_day) } else { 0 };
            let since = zone.local_ms(utc_ms).div_euclid(MS_PER_DAY) - reference;
            let begin = begin_of_bin(call, unit, size, since.div_euclid(days))?.checked_mul(days);
            begin.and_then(|passed| passed.checked_add(reference)?.checked_mul(MS_PER_DAY))
        }
        Unit::Months(months) => {
            let civil = Civil::of(zone.local_ms(utc_ms));
            let since = (civil.year - REFERENCE_YEAR) * 12 + civil.month - 1;
            let begin = begin_of_bin(call, unit, size, since.div_euclid(months))?.checked_mul(months);
            begin.and_then(months_since_reference)
        }
    };
    let local = local.ok_or_else(|| refuse((5_166_406, "dateAdd overflowed"), ""))?;
    Ok(Value::DateTime(zone.utc_ms(local)).into())
}

/// The distance from the first bin to the bin of a date, in days or a longer unit. `since` is the distance to the date.
/// # Errors
/// 5439006 for too large a bin, 5976500 for one that begins before all dates.
fn begin_of_bin(call: &Call, unit: Unit, size: i64, since: i64) -> Result<i64> {
    if size > CALENDAR_BIN_MAX {
        return Err(call.failure(5_439_006, TOO_LARGE));
    }
    let begin = since - since.rem_euclid(size);
    if unit.amount_max().is_some_and(|most| begin.unsigned_abs() > most) {
        return Err(refuse((5_976_500, "invalid dateAdd 'amount' parameter value: {}"), &begin.to_string()));
    }
    Ok(begin)
}

/// # Errors
/// 5439017 for a value that is not a whole number, 5439018 for a number below 1.
fn bin_size(call: &Call, size: &Evaluated<'_>) -> Result<i64> {
    let Some(size) = size.get().and_then(number::as_i64_exact) else {
        let message = format!(" requires 'binSize' to be a 64-bit integer, but got {}", size.type_name());
        return Err(call.failure(5_439_017, &message));
    };
    if size > 0 {
        return Ok(size);
    }
    Err(call.failure(5_439_018, &format!(" requires 'binSize' to be greater than 0, but got value {size}")))
}

/// Bins of hours and shorter units all have the same length, even if the clock is set to summer time between them: they
/// use the zone's offset at the beginning of the first bin.
/// # Errors
/// 5439000 and 5439001 at the ends of the range of dates.
fn within_days(zone: &Zone, bin: i64, utc_ms: i64) -> Result<i64> {
    let midnight_utc = days_from_civil(REFERENCE_YEAR, 1, 1) * MS_PER_DAY;
    let reference = midnight_utc - zone.offset_ms(midnight_utc);
    let overflow = |code| refuse((code, "dateTrunc overflowed"), "");
    let since = utc_ms.checked_sub(reference).ok_or_else(|| overflow(5_439_000))?;
    utc_ms.checked_sub(since.rem_euclid(bin)).ok_or_else(|| overflow(5_439_001))
}

/// Days from 1 January 2000, a Saturday, to the first beginning of a week.
fn first_week(first_day: i64) -> i64 {
    (first_day - 6).rem_euclid(7)
}

fn months_since_reference(months: i64) -> Option<i64> {
    let year = REFERENCE_YEAR.checked_add(months.div_euclid(12))?;
    let month = months.rem_euclid(12) + 1;
    Civil { year, month, day: 1, hour: 0, minute: 0, second: 0, millisecond: 0 }.to_ms()
}
