//! `$dateDiff`: how many units (hours, days, years, ...) begin between two dates, as a clock of the zone shows them.

use super::{Call, Evaluated, EvaluationContext, Form, Operator, Parameters, Result, Strings};
use crate::calendar::{Civil, MS_PER_DAY};
use crate::date_part::{self, Unit};
use crate::time_zone::Zone;

const PARAMETERS: Parameters = Parameters {
    not_an_object: (5_166_301, "$dateDiff only supports an object as its argument"),
    unknown: (5_166_302, "Unrecognized argument to $dateDiff: {}"),
    names: &[
        ("startDate", Some((5_166_303, "Missing 'startDate' parameter to $dateDiff"))),
        ("endDate", Some((5_166_304, "Missing 'endDate' parameter to $dateDiff"))),
        ("unit", Some((5_166_305, "Missing 'unit' parameter to $dateDiff"))),
        ("timezone", None),
        ("startOfWeek", None),
    ],
};
/// Sunday.
const START_OF_WEEK: i64 = 7;

pub(super) const OPERATOR: Operator =
    Operator { name: "$dateDiff", strings: Strings::AsBytes, form: Form::Named(&PARAMETERS), evaluate };

fn evaluate<'a>(call: &'a Call, context: &EvaluationContext<'a>) -> Result<Evaluated<'a>> {
    let (start, end, unit) = (call.argument(0, context)?, call.argument(1, context)?, call.argument(2, context)?);
    let zone = call.optional(3, context)?;
    let first_day = call.optional(4, context)?;
    if start.is_nullish() || end.is_nullish() || unit.is_nullish() || zone.as_ref().is_some_and(Evaluated::is_nullish) {
        return Ok(Evaluated::null());
    }
    let start = date_part::moment_of(call, "startDate", &start)?;
    let end = date_part::moment_of(call, "endDate", &end)?;
    let unit = Unit::parse(call, &unit)?;
    let first_day = match first_day {
        Some(day) if unit == Unit::WEEK && day.is_nullish() => return Ok(Evaluated::null()),
        Some(day) if unit == Unit::WEEK => date_part::start_of_week(call, &day)?,
        _ => START_OF_WEEK,
    };
    let Some(zone) = date_part::zone(zone.as_ref())? else { return Ok(Evaluated::null()) };
    let begun = |utc_ms| begun(unit, &zone, first_day, utc_ms);
    let count = begun(end) - begun(start);
    i64::try_from(count).map(Evaluated::from).map_err(|_| call.failure(5_166_308, " overflowed"))
}

/// How many units have begun since a fixed moment. 128 bits hold the difference of any two dates.
fn begun(unit: Unit, zone: &Zone, first_day: i64, utc_ms: i64) -> i128 {
    let local_ms = || i128::from(utc_ms) + i128::from(zone.offset_ms(utc_ms));
    let local_days = || local_ms().div_euclid(i128::from(MS_PER_DAY));
    match unit {
        Unit::Months(months) => {
            let civil = Civil::of(zone.local_ms(utc_ms));
            i128::from(civil.year * 12 + civil.month - 1).div_euclid(i128::from(months))
        }
        // Day 0 was a Thursday.
        Unit::Days(7) => (local_days() + 4 - i128::from(first_day)).div_euclid(7),
        Unit::Days(days) => local_days().div_euclid(i128::from(days)),
        // When a clock is put forward, the hour that it skips does not begin.
        Unit::Milliseconds(length) => {
            let length = i128::from(length);
            local_ms().div_euclid(length) - i128::from(zone.offset_ms(utc_ms)).div_euclid(length)
        }
    }
}
