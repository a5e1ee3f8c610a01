//! Dates of the proleptic Gregorian calendar in UTC, counted in milliseconds since 1970.

const MS_PER_DAY: i64 = 86_400_000;
/// The calendar repeats after 400 years.
const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01, the first day of an era, to 1970-01-01.
const DAYS_BEFORE_1970: i64 = 719_468;

/// Year, month (1 to 12) and day (1 to 31) of a day counted from 1970-01-01.
/// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    // Years that begin in March have the leap day last, so that the months before it are alike in every year.
    let shifted = days + DAYS_BEFORE_1970;
    let era = shifted.div_euclid(DAYS_PER_ERA);
    let day_of_era = shifted.rem_euclid(DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month as u32, day as u32)
}

/// Days from 1970-01-01 to a day. `month` is 1 to 12; a day past the month's end counts on into the next month.
/// Source: as [`civil_from_days`].
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let (month, day) = (i64::from(month), i64::from(day));
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_ERA + day_of_era - DAYS_BEFORE_1970
}

/// `2020-01-31T23:59:59Z`, with `.sss` only if the milliseconds are not zero: the form of relaxed Extended JSON. Years
/// outside 0000 to 9999 have a sign and at least six digits, as in ECMAScript.
pub fn format_iso8601(ms: i64) -> String {
    match ms.rem_euclid(1_000) {
        0 => format!("{}Z", seconds_text(ms)),
        _ => format_iso8601_ms(ms),
    }
}

/// As [`format_iso8601`] but always with three digits of milliseconds: the form of `$toString`.
pub fn format_iso8601_ms(ms: i64) -> String {
    format!("{}.{:03}Z", seconds_text(ms), ms.rem_euclid(1_000))
}

fn seconds_text(ms: i64) -> String {
    let (year, month, day) = civil_from_days(ms.div_euclid(MS_PER_DAY));
    let seconds = ms.rem_euclid(MS_PER_DAY) / 1_000;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let year = if (0..=9_999).contains(&year) { format!("{year:04}") } else { format!("{year:+07}") };
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Reads `YYYY-MM-DD`, optionally followed by `T` or a space, `HH:MM`, `:SS`, `.fraction` and `Z` or an offset
/// (`+HH:MM`, `+HHMM`, `+HH`). Without an offset the time is UTC; digits after the third of a fraction are dropped.
/// `None` for anything else, for days that do not exist, and for dates beyond 64 bits of milliseconds.
pub fn parse_iso8601(text: &str) -> Option<i64> {
    let mut cursor = Cursor { rest: text.as_bytes() };
    let year = cursor.year()?;
    cursor.expect(b'-')?;
    let month = cursor.two_digits(1..=12)?;
    cursor.expect(b'-')?;
    let day = cursor.two_digits(1..=31)?;
    let days = days_from_civil(year, month as u32, day as u32);
    if civil_from_days(days) != (year, month as u32, day as u32) {
        return None;
    }
    let time_ms = match cursor.take_any(b"Tt ") {
        Some(_) => cursor.time_ms()?,
        None => 0,
    };
    let whole = i128::from(days) * i128::from(MS_PER_DAY) + i128::from(time_ms);
    if cursor.rest.is_empty() { i64::try_from(whole).ok() } else { None }
}

/// The unread part of a text.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    fn take_any(&mut self, wanted: &[u8]) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        wanted.contains(&first).then(|| self.rest = rest)?;
        Some(first)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take_any(&[byte]).map(|_| ())
    }

    fn digits(&mut self, count: std::ops::RangeInclusive<usize>) -> Option<&[u8]> {
        let found = self.rest.iter().take(*count.end()).take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(found);
        self.rest = rest;
        (found >= *count.start()).then_some(digits)
    }

    fn two_digits(&mut self, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let number = decimal(self.digits(2..=2)?);
        range.contains(&number).then_some(number)
    }

    /// Four digits, or a sign and six to nine.
    fn year(&mut self) -> Option<i64> {
        match self.take_any(b"+-") {
            Some(b'-') => self.digits(6..=9).map(|digits| -decimal(digits)),
            Some(_) => self.digits(6..=9).map(decimal),
            None => self.digits(4..=4).map(decimal),
        }
    }

    /// Reads the time after the `T`, in milliseconds since midnight in UTC.
    fn time_ms(&mut self) -> Option<i64> {
        let hour = self.two_digits(0..=23)?;
        self.expect(b':')?;
        let minute = self.two_digits(0..=59)?;
        let second = match self.take_any(b":") {
            Some(_) => self.two_digits(0..=59)?,
            None => 0,
        };
        let fraction_ms = match self.take_any(b".,") {
            Some(_) => self.digits(1..=usize::MAX)?.iter().copied().chain(*b"00").take(3).fold(0, push_digit),
            None => 0,
        };
        let local_ms = ((hour * 60 + minute) * 60 + second) * 1_000 + fraction_ms;
        Some(local_ms - self.offset_minutes()? * 60_000)
    }

    fn offset_minutes(&mut self) -> Option<i64> {
        let sign = match self.take_any(b"Zz+-") {
            None | Some(b'Z' | b'z') => return Some(0),
            Some(b'-') => -1,
            Some(_) => 1,
        };
        let hours = self.two_digits(0..=23)?;
        let minutes = match (self.take_any(b":"), self.rest) {
            (None, []) => 0,
            _ => self.two_digits(0..=59)?,
        };
        Some(sign * (hours * 60 + minutes))
    }
}

fn push_digit(number: i64, digit: u8) -> i64 {
    number * 10 + i64::from(digit - b'0')
}

fn decimal(digits: &[u8]) -> i64 {
    digits.iter().copied().fold(0, push_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        for (days, civil) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
            (-719_528, (0, 1, 1)),
            (-719_529, (-1, 12, 31)),
        ] {
            assert_eq!(civil_from_days(days), civil, "day {days}");
            assert_eq!(days_from_civil(civil.0, civil.1, civil.2), days, "{civil:?}");
        }
    }

    #[test]
    fn every_day_of_an_era_follows_the_one_before() {
        for days in -DAYS_PER_ERA..DAYS_PER_ERA {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
            assert!(civil_from_days(days + 1) > (year, month, day));
        }
    }

    #[test]
    fn texts_round_trip() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_577_836_799_001, "2019-12-31T23:59:59.001Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "+010000-01-01T00:00:00Z"),
            (-62_167_219_200_001, "-000001-12-31T23:59:59.999Z"),
            (i64::MAX, "+292278994-08-17T07:12:55.807Z"),
            (i64::MIN, "-292275055-05-16T16:47:04.192Z"),
        ] {
            assert_eq!(format_iso8601(ms), text);
            assert_eq!(parse_iso8601(text), Some(ms), "{text}");
        }
        assert_eq!(format_iso8601_ms(0), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn shorter_and_offset_forms_are_read() {
        for (text, same) in [
            ("2020-02-29", "2020-02-29T00:00:00Z"),
            ("2020-02-29 12:30", "2020-02-29T12:30:00Z"),
            ("2020-02-29T12:30:01.5", "2020-02-29T12:30:01.500Z"),
            ("2020-02-29T12:30:01.123456789Z", "2020-02-29T12:30:01.123Z"),
            ("2020-01-01T00:30:00+01:30", "2019-12-31T23:00:00Z"),
            ("2020-01-01T00:30:00-0130", "2020-01-01T02:00:00Z"),
            ("2020-01-01T00:30:00+09", "2019-12-31T15:30:00Z"),
        ] {
            assert_eq!(parse_iso8601(text).map(format_iso8601).as_deref(), Some(same), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_date_is_refused() {
        for text in [
            "",
            "2020",
            "2020-1-1",
            "2019-02-29",
            "2020-13-01",
            "2020-01-01T",
            "2020-01-01T24:00:00Z",
            "2020-01-01T00:00:60Z",
            "2020-01-01T00:00:00.Z",
            "2020-01-01T00:00:00Zx",
            "2020-01-01T00:00:00+1",
            "+292278994-08-17T07:12:55.808Z",
            "日本",
        ] {
            assert_eq!(parse_iso8601(text), None, "{text}");
        }
    }
}
