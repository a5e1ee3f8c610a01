//! Dates: milliseconds since 1970 and the proleptic Gregorian calendar.

use bunko_errors::{ErrorCode, Failure, Result};

pub(crate) const MS_PER_SECOND: i64 = 1000;
pub(crate) const MS_PER_MINUTE: i64 = 60 * MS_PER_SECOND;
pub(crate) const MS_PER_HOUR: i64 = 60 * MS_PER_MINUTE;
pub(crate) const MS_PER_DAY: i64 = 24 * MS_PER_HOUR;

/// The months' names.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A date as C's `ctime` prints it, with its milliseconds: `Thu Jan  1 00:00:00.000`.
pub fn ctime_text(ms: i64) -> String {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    let time = Civil::of(ms);
    let day = DAYS[(time.day_of_week() - 1) as usize];
    let month = &MONTHS[(time.month - 1) as usize][..3];
    let (hour, minute, second, millisecond) = (time.hour, time.minute, time.second, time.millisecond);
    format!("{day} {month} {:2} {hour:02}:{minute:02}:{second:02}.{millisecond:03}", time.day)
}

/// A moment as year, month, day and time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// 1 to 12.
    pub(crate) month: i64,
    /// 1 to 31.
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) millisecond: i64,
}

/// Days since 1970 of a date. Source: H. Hinnant, "chrono-compatible low-level date algorithms".
pub(crate) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a number of days since 1970.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

impl Civil {
    /// Takes apart milliseconds since 1970.
    pub(crate) fn of(ms: i64) -> Self {
        let (year, month, day) = civil_from_days(ms.div_euclid(MS_PER_DAY));
        let rest = ms.rem_euclid(MS_PER_DAY);
        Self {
            year,
            month,
            day,
            hour: rest / MS_PER_HOUR,
            minute: rest % MS_PER_HOUR / MS_PER_MINUTE,
            second: rest % MS_PER_MINUTE / MS_PER_SECOND,
            millisecond: rest % MS_PER_SECOND,
        }
    }

    /// Milliseconds since 1970; fields out of their range carry over.
    pub(crate) fn to_ms(self) -> Option<i64> {
        let months = self.month - 1;
        let year = self.year.checked_add(months.div_euclid(12))?;
        if year.abs() > 400_000_000 {
            return None;
        }
        let days = days_from_civil(year, months.rem_euclid(12) + 1, 1).checked_add(self.day - 1)?;
        let in_day =
            self.hour * MS_PER_HOUR + self.minute * MS_PER_MINUTE + self.second * MS_PER_SECOND + self.millisecond;
        days.checked_mul(MS_PER_DAY)?.checked_add(in_day)
    }

    /// The year, if it has four digits.
    /// # Errors
    /// 18537 for any other year.
    pub(crate) fn printable_year(self) -> Result<i64> {
        if (0..=9999).contains(&self.year) {
            return Ok(self.year);
        }
        let message = format!("$dateToString is only defined on year 0-9999, tried to use year {}", self.year);
        Err(Failure::new(ErrorCode(18537), message))
    }

    /// 1 to 366.
    pub(crate) fn day_of_year(self) -> i64 {
        days_from_civil(self.year, self.month, self.day) - days_from_civil(self.year, 1, 1) + 1
    }

    /// 1 (Sunday) to 7.
    pub(crate) fn day_of_week(self) -> i64 {
        (days_from_civil(self.year, self.month, self.day) + 4).rem_euclid(7) + 1
    }

    /// 1 (Monday) to 7.
    pub(crate) fn iso_day_of_week(self) -> i64 {
        (self.day_of_week() + 5) % 7 + 1
    }

    /// Weeks that began on a Sunday this year: 0 to 53.
    pub(crate) fn week(self) -> i64 {
        (self.day_of_year() + 7 - self.day_of_week()) / 7
    }

    /// Days since 1970 of the Monday with which the first ISO 8601 week of a year begins.
    pub(crate) fn first_iso_monday(year: i64) -> i64 {
        // The week of 4 January is always the first.
        let fourth = days_from_civil(year, 1, 4);
        fourth - (fourth + 3).rem_euclid(7)
    }

    /// ISO 8601 year and week: the week belongs to the year of its Thursday.
    pub(crate) fn iso_week(self) -> (i64, i64) {
        let day = days_from_civil(self.year, self.month, self.day);
        let thursday = day - (self.iso_day_of_week() - 1) + 3;
        let (year, _, _) = civil_from_days(thursday);
        (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
    }
}

/// Days in a month.
pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    let (next_year, next_month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_from_civil(next_year, next_month, 1) - days_from_civil(year, month, 1)
}

/// A date as `$toString` converts it.
/// # Errors
/// 18537 for a year that has not four digits.
pub(crate) fn converted_text(ms: i64) -> Result<String> {
    Civil::of(ms).printable_year().map(|_| iso_text(ms))
}

/// ISO 8601 in UTC with milliseconds, of any year.
pub(crate) fn iso_text(ms: i64) -> String {
    let c = Civil::of(ms);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        c.year, c.month, c.day, c.hour, c.minute, c.second, c.millisecond
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_survive_being_taken_apart() {
        for ms in [0, -1, 1_700_000_000_123, -62_135_596_800_000, 951_782_400_000, 253_402_300_799_999] {
            assert_eq!(Civil::of(ms).to_ms(), Some(ms));
        }
        assert_eq!(iso_text(951_782_400_000), "2000-02-29T00:00:00.000Z");
    }

    #[test]
    fn iso_weeks_belong_to_the_year_of_their_thursday() {
        let civil = Civil::of(1_609_632_000_000);
        assert_eq!(ctime_text(0), "Thu Jan  1 00:00:00.000");
        assert_eq!((civil.iso_week(), civil.week(), civil.day_of_week()), ((2020, 53), 1, 1));
    }
}
