//! Dates in a format given to `$dateFromString`: `%d/%m/%Y`.

use crate::calendar::{self, Civil, MS_PER_DAY, days_in_month};
use crate::time_zone::Zone;
use crate::written_date::month_number;
use crate::written_moment::WrittenMoment;
use crate::written_zone;
use bunko_errors::{ErrorCode, Failure, Result};

/// Characters allowed after `%`. Source: MongoDB manual, "$dateFromString", "Format Specifiers".
const SPECIFIERS: &str = "%BGHLMSVYZbdjmuz";

/// # Errors
/// 18535 for a `%` at the end, 18536 for an unknown specifier.
pub(crate) fn check(format: &str) -> Result<()> {
    check_specifiers(format, SPECIFIERS)
}

/// # Errors
/// 18535 for a `%` at the end, 18536 for a character after `%` that is not in `specifiers`.
pub(crate) fn check_specifiers(format: &str, specifiers: &str) -> Result<()> {
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            continue;
        }
        match characters.next() {
            None => return Err(Failure::new(ErrorCode(18535), "Unmatched '%' at end of format string")),
            Some(known) if specifiers.contains(known) => {}
            Some(other) => return Err(unknown_specifier(other)),
        }
    }
    Ok(())
}

pub(crate) fn unknown_specifier(specifier: char) -> Failure {
    let message = format!("Invalid format character '%{specifier}' in format string");
    Failure::new(ErrorCode(18536), message)
}

/// Reads a date in a checked format; as an error, the reason why the text is no such date.
pub(crate) fn parse<'t>(text: &'t str, format: &str) -> std::result::Result<WrittenMoment<'t>, String> {
    let mut read = Read::default();
    let mut rest = text;
    let wrong = |rest: &str, why: &str| {
        let (position, found) = (text.len() - rest.len(), rest.chars().next().map_or(String::new(), String::from));
        Err(format!("Error parsing date string '{text}'; {position}: {why} '{found}'"))
    };
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if rest.is_empty() {
            return wrong(rest, "Not enough data available to satisfy format");
        }
        let specifier = if character == '%' { characters.next().filter(|next| *next != '%') } else { None };
        let behind = match specifier {
            Some(specifier) => read.take(rest, specifier),
            None => rest.strip_prefix(character).ok_or("The format separator does not match"),
        };
        match behind {
            Ok(behind) => rest = behind,
            Err(why) => return wrong(rest, why),
        }
    }
    if !rest.is_empty() {
        return wrong(rest, "Trailing data");
    }
    read.finish(text)
}

/// The values read so far.
#[derive(Default)]
struct Read<'t> {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    millisecond: i64,
    zone: Option<(&'t str, Zone)>,
}

/// Splits at most `most` leading digits off a text.
fn digits(text: &str, most: usize) -> (&str, &str) {
    text.split_at(text.bytes().take(most).take_while(u8::is_ascii_digit).count())
}

/// Reads a number whose count of digits is in `lengths`.
fn number<'t>(
    text: &'t str,
    lengths: std::ops::RangeInclusive<usize>,
    why: &'static str,
) -> std::result::Result<(i64, &'t str), &'static str> {
    let (found, behind) = digits(text, *lengths.end());
    match found.parse() {
        Ok(number) if lengths.contains(&found.len()) => Ok((number, behind)),
        _ => Err(why),
    }
}

impl<'t> Read<'t> {
    /// Reads the value of a specifier from the front of `text`, and returns the rest.
    fn take(&mut self, text: &'t str, specifier: char) -> std::result::Result<&'t str, &'static str> {
        // Characters before the number of an ISO week date are skipped.
        let text = if matches!(specifier, 'G' | 'V' | 'u') {
            text.trim_start_matches(|character: char| !character.is_ascii_digit())
        } else {
            text
        };
        let field = match specifier {
            'j' if self.year.is_none() => return Err("A 'day of year' can only come after a year has been found"),
            'b' | 'B' => {
                let (name, behind) = text.split_at(text.bytes().take_while(u8::is_ascii_alphabetic).count());
                self.month = Some(month_number(name).ok_or("A textual month could not be found")?);
                return Ok(behind);
            }
            'L' => {
                let (found, behind) = digits(text, 3);
                let padded = format!("{found:0<3}").parse();
                self.millisecond =
                    padded.ok().filter(|_| !found.is_empty()).ok_or("A three digit millisecond could not be found")?;
                return Ok(behind);
            }
            'z' | 'Z' => return self.take_zone(text, specifier),
            'Y' => (&mut self.year, 4..=4, "A four digit year could not be found"),
            'm' => (&mut self.month, 1..=2, "A two digit month could not be found"),
            'd' => (&mut self.day, 1..=2, "A two digit day could not be found"),
            'j' => (&mut self.day_of_year, 1..=3, "A three digit day-of-year could not be found"),
            'G' => (&mut self.iso_year, 1..=4, "A four digit ISO year could not be found"),
            'V' => (&mut self.iso_week, 1..=2, "A two digit ISO week could not be found"),
            'u' => (&mut self.iso_day, 1..=1, "A single digit ISO day of week could not be found"),
            time => {
                let (number, behind) = number(
                    text,
                    if time == 'H' { 1..=2 } else { 2..=2 },
                    match time {
                        'H' => "A two digit hour could not be found",
                        'M' => "A two digit minute could not be found",
                        _ => "A two digit second could not be found",
                    },
                )?;
                match time {
                    'H' => self.hour = number,
                    'M' => self.minute = number,
                    _ => self.second = number,
                }
                return Ok(behind);
            }
        };
        let (field, lengths, why) = field;
        let (number, behind) = number(text, lengths, why)?;
        *field = Some(number);
        Ok(behind)
    }

    /// Reads a zone (`%z`), or an offset in minutes such as `+330` (`%Z`).
    fn take_zone(&mut self, text: &'t str, specifier: char) -> std::result::Result<&'t str, &'static str> {
        let why = "The timezone could not be found in the database";
        if specifier == 'z' {
            let zone = written_zone::parse(text).ok_or(why)?;
            self.zone = Some((zone.name, zone.zone()));
            return Ok(zone.rest);
        }
        let sign = match text.as_bytes().first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Err("Invalid timezone offset in minutes"),
        };
        let (minutes, behind) = digits(&text[1..], 9);
        let offset: i64 = minutes.parse().unwrap_or(0);
        let offset_ms = sign * offset * calendar::MS_PER_MINUTE;
        self.zone = Some((&text[..=minutes.len()], Zone::Fixed { offset_ms }));
        Ok(behind)
    }

    fn finish(self, text: &'t str) -> std::result::Result<WrittenMoment<'t>, String> {
        let failure = |why: &str| format!("Error parsing date string '{text}'; {}: {why}", text.len());
        let has_iso = self.iso_year.is_some() || self.iso_week.is_some() || self.iso_day.is_some();
        if has_iso && (self.year.is_some() || self.month.is_some() || self.day.is_some()) {
            return Err(failure("Mixing of ISO dates with natural dates is not allowed"));
        }
        let incomplete = || format!("an incomplete date/time string has been found, with elements missing: \"{text}\"");
        let days = if has_iso {
            let (week, day) = (self.iso_week.unwrap_or(1), self.iso_day.unwrap_or(1));
            if !(1..=53).contains(&week) || !(1..=7).contains(&day) {
                return Err(failure("The parsed date was invalid"));
            }
            Civil::first_iso_monday(self.iso_year.ok_or_else(incomplete)?) + (week - 1) * 7 + day - 1
        } else {
            let year = self.year.ok_or_else(incomplete)?;
            // MongoDB reads days of the year from 0, but writes them from 1.
            let (month, day) = match self.day_of_year {
                Some(ordinal) => (1, ordinal + 1),
                None => (self.month.ok_or_else(incomplete)?, self.day.ok_or_else(incomplete)?),
            };
            let last = match self.day_of_year {
                Some(_) => 366,
                None if (1..=12).contains(&month) => days_in_month(year, month),
                None => 0,
            };
            if !(1..=last).contains(&day) {
                return Err(failure("The parsed date was invalid"));
            }
            calendar::days_from_civil(year, month, 1) + day - 1
        };
        if self.hour > 23 || self.minute > 59 || self.second > 59 {
            return Err(failure("The parsed time was invalid"));
        }
        let time_ms = self.hour * calendar::MS_PER_HOUR
            + self.minute * calendar::MS_PER_MINUTE
            + self.second * calendar::MS_PER_SECOND
            + self.millisecond;
        let (name, zone) = self.zone.unwrap_or(("", Zone::UTC));
        Ok(WrittenMoment { ms: zone.utc_ms(days * MS_PER_DAY + time_ms), zone: name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, format: &str) -> std::result::Result<String, String> {
        parse(text, format).map(|moment| calendar::iso_text(moment.ms))
    }

    #[test]
    fn dates_are_read_in_their_format() {
        for (text, format, expected) in [
            ("15/06/2018", "%d/%m/%Y", "2018-06-15T00:00:00.000Z"),
            ("january 15 2020", "%B %d %Y", "2020-01-15T00:00:00.000Z"),
            ("2024-W24-6", "%G-W%V-%u", "2024-06-15T00:00:00.000Z"),
            ("2024-06-15 +0530", "%Y-%m-%d %z", "2024-06-14T18:30:00.000Z"),
            ("2024-06-15 -330", "%Y-%m-%d %Z", "2024-06-15T05:30:00.000Z"),
            ("2024-06-15 GMT+02:00", "%Y-%m-%d%z", "2024-06-14T22:00:00.000Z"),
            ("2024-06-15L", "%Y-%m-%d%z", "2024-06-14T13:00:00.000Z"),
            ("2024-06-15 (CEST)", "%Y-%m-%d %z", "2024-06-14T22:00:00.000Z"),
            ("1.1.1", "%V.%u.%G", "0001-01-01T00:00:00.000Z"),
            ("100% 2024167", "100%% %Y%j", "2024-06-16T00:00:00.000Z"),
            ("2024-06-15 1:05:09.5", "%Y-%m-%d %H:%M:%S.%L", "2024-06-15T01:05:09.500Z"),
        ] {
            assert_eq!(read(text, format).as_deref(), Ok(expected), "{text} {format}");
        }
    }

    #[test]
    fn text_that_does_not_match_the_format_is_refused() {
        for (text, format, why) in [
            ("2017-02-08", "%m-%d-%Y", "2: The format separator does not match '1'"),
            ("2017-02", "%Y-%m-%d", "7: Not enough data available to satisfy format ''"),
            ("2017-02-08x", "%Y-%m-%d", "10: Trailing data 'x'"),
            ("2017-02-30", "%Y-%m-%d", "10: The parsed date was invalid"),
            ("2017 W03", "%Y W%V", "8: Mixing of ISO dates with natural dates is not allowed"),
            ("2017", "%Y", "with elements missing: \"2017\""),
            ("040 2017", "%j %Y", "0: A 'day of year' can only come after a year has been found '0'"),
            ("2017-02-08 Asia/Tokyo", "%Y-%m-%d %z", "11: The timezone could not be found in the database 'A'"),
        ] {
            let refused = read(text, format).expect_err(text);
            assert!(refused.ends_with(why), "{refused}");
        }
    }
}
