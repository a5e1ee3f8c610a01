//! Dates as people write them: `2018-03-20`, `July 4th, 2018 12:39`, `WED jan 31 12:05:28 +03:30 1996`.
//!
//! The parser cuts a text into pieces, each the longest that one of the [`FORMS`] matches. The form's named groups hold
//! the piece's values.
//! Source: PHP manual, "Supported Date and Time Formats", which MongoDB's dates follow.

use crate::calendar::{self, Civil, MS_PER_DAY, days_in_month};
use crate::time_zone::Zone;
use crate::written_moment::{self, WrittenMoment};
use crate::written_zone;
use pcre2::bytes::{Captures, Regex, RegexBuilder};
use std::sync::LazyLock;

/// Longest accepted date, in bytes.
const LENGTH_MAX: usize = 256;

/// Parts of the forms.
const PARTS: [(&str, &str); 21] = [
    ("{hour}", "(?<h>2[0-4]|[01]?[0-9])"),
    ("{hour2}", "(?<h>2[0-4]|[01][0-9])"),
    ("{hour12}", "(?<h>1[0-2]|0?[1-9])"),
    ("{minute}", "(?<i>[0-5]?[0-9])"),
    ("{minute2}", "(?<i>[0-5][0-9])"),
    ("{second}", "(?<s>60|[0-5]?[0-9])"),
    ("{second2}", "(?<s>60|[0-5][0-9])"),
    ("{fraction}", "[.:](?<f>[0-9]+)"),
    ("{half}", "[ \\t]*(?<half>[ap])\\.?m\\.?(?=[ \\t]|$)"),
    ("{year}", "(?<y>[0-9]{1,4})"),
    ("{year2}", "(?<y>[0-9]{2})"),
    ("{year4}", "(?<y>[0-9]{4})"),
    ("{month}", "(?<m>1[0-2]|0?[0-9])"),
    ("{month2}", "(?<m>0[0-9]|1[0-2])"),
    (
        "{word}",
        "(?<name>january|february|march|april|may|june|july|august|september|october|november|december\
                |jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)",
    ),
    (
        "{name}",
        "(?<name>january|february|march|april|may|june|july|august|september|october|november|december\
                |jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec|viii|vii|iii|xii|vi|iv|ix|xi|ii|v|x|i)",
    ),
    ("{day}", "(?<d>3[01]|[0-2]?[0-9])(?:st|nd|rd|th)?"),
    ("{day2}", "(?<d>3[01]|[0-2][0-9])"),
    ("{gap}", "[ \\t.-]*"),
    ("{behind}", "[,.stndrh\\t ]+"),
    ("{clock}", "t?{hour}[:.]{minute}(?:[:.]{second}(?:{fraction})?)?"),
];

/// Where two forms match the same length, the earlier one wins.
const FORMS: [&str; 36] = [
    // Times.
    "{hour12}(?:[:.]{minute2}(?:[:.]{second2})?)?{half}",
    "{clock}",
    "t{hour}",
    "t{hour2}{minute2}",
    "t?{hour2}{minute2}{second2}",
    // Four digits are a time without a colon, or the year if the time is already known.
    "(?<bare>(?:2[0-4]|[01][0-9])[0-5][0-9])",
    // Dates in digits.
    "{month}/{day}",
    "{month}/{day}/{year}",
    "{year4}/{month}/{day}",
    "(?<sign>[+-]?){year4}-{month2}-{day2}",
    "{year}-{month}-{day}",
    "{year4}-{month}",
    "{day}[.\\t-]{month}[.-]{year4}",
    "{day}[.\\t]{month}\\.{year2}",
    "{year4}{month2}{day2}",
    "{year4}:{month2}:{day2}",
    "{year4}\\.?(?<ordinal>00[1-9]|0[1-9][0-9]|[12][0-9]{2}|3[0-5][0-9]|36[0-6])",
    "{year4}-?w(?<week>0[1-9]|[1-4][0-9]|5[0-3])(?:-?(?<weekday>[0-7]))?",
    // Dates with a month's name.
    "{day}{gap}{name}{gap}{year}",
    "{name}{gap}{year4}",
    "{year4}{gap}{name}",
    "{name}{gap}{day}{behind}{year}",
    "{name}{gap}{day}{behind}{clock}",
    "{name}{gap}{day}(?:{behind}|$)",
    "{day}{gap}{name}",
    "{name}-{day2}-{year}",
    "{year}-{name}-{day2}",
    // A Roman number without a day or a year is read as a zone.
    "{word}",
    "(?<year>[0-9]{4})",
    // Words for times and days, and seconds since 1970.
    "(?<relative>noon|midnight|today|tomorrow|yesterday|now)",
    "@(?<epoch>-?[0-9]{1,18})",
    // Days of the week, which could also be names of zones.
    "(?<dayname>sun|mon|tue|wed|thu|fri|sat)(?:s?day|nesday|rsday|urday)?",
    // Zones.
    "(?<z>(?-i:GMT)?[+-](?:2[0-4]|[01]?[0-9]):?[0-5]?[0-9]?)",
    "\\(?(?<z>[a-z]{1,6})\\)?",
    "(?<z>(?-i:[A-Z][a-z]+(?:[_/][A-Z][a-z]+)+))",
    // Separators.
    "[ .,\\t]",
];

static COMPILED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let compiled = FORMS.iter().map(|form| {
        // The clock contains other parts, so it is replaced first.
        let pattern = PARTS.iter().rev().fold((*form).to_owned(), |form, (name, part)| form.replace(name, part));
        RegexBuilder::new().caseless(true).build(&format!("\\A(?:{pattern})"))
    });
    compiled.flatten().collect()
});

/// Reads a date and a time; the time is midnight if the text has none. White space around the text is ignored.
pub(crate) fn parse(text: &str) -> Option<WrittenMoment<'_>> {
    let text =
        text.trim_matches(|character: char| character.is_ascii_whitespace() || matches!(character, '\0' | '\u{a0}'));
    if let Some(moment) = written_moment::parse_iso(text) {
        return Some(moment);
    }
    if text.len() > LENGTH_MAX {
        return None;
    }
    let mut read = Read::default();
    let mut rest = text;
    while !rest.is_empty() {
        let mut longest: Option<Captures<'_>> = None;
        for form in COMPILED.iter() {
            let found = form.captures(rest.as_bytes()).ok().flatten();
            if let Some(found) = found.filter(|found| end(found) > longest.as_ref().map_or(0, end)) {
                longest = Some(found);
            }
        }
        let piece = longest?;
        let at = end(&piece);
        read.take(&piece)?;
        rest = rest.get(at..)?;
    }
    read.finish()
}

fn end(piece: &Captures<'_>) -> usize {
    piece.get(0).map_or(0, |whole| whole.end())
}

fn group<'t>(piece: &Captures<'t>, name: &str) -> Option<&'t str> {
    piece.name(name).and_then(|found| std::str::from_utf8(found.as_bytes()).ok())
}

fn number(piece: &Captures<'_>, name: &str) -> Option<i64> {
    group(piece, name)?.parse().ok()
}

/// The values of the pieces read so far.
#[derive(Default)]
struct Read<'t> {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    has_date: bool,
    /// Milliseconds of the day.
    time_ms: Option<i64>,
    /// 0 is Sunday.
    day_of_week: Option<i64>,
    /// Milliseconds to add to date and time.
    added_ms: i64,
    zone: Option<(&'t str, Zone)>,
}

impl<'t> Read<'t> {
    /// Takes the values of a piece; `None` where an earlier piece gave one of them.
    fn take(&mut self, piece: &Captures<'t>) -> Option<()> {
        if let Some(bare) = number(piece, "bare") {
            match self.time_ms {
                Some(_) => self.year = Some(bare),
                None => self.time_ms = Some((bare / 100 * 60 + bare % 100) * calendar::MS_PER_MINUTE),
            }
        }
        if let Some(year) = number(piece, "year") {
            self.year = Some(year);
        }
        self.take_date(piece)?;
        self.take_time(piece)?;
        if let Some(name) = group(piece, "dayname") {
            const NAMES: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
            self.day_of_week = NAMES.iter().position(|day| name.eq_ignore_ascii_case(day)).map(|day| day as i64);
            // A day of the week means its midnight, unless a time follows.
            self.time_ms = None;
        }
        if let Some(word) = group(piece, "relative") {
            self.take_relative(word);
        }
        if let Some(seconds) = number(piece, "epoch") {
            (self.year, self.month, self.day, self.time_ms) = (Some(1970), Some(1), Some(1), None);
            self.added_ms = self.added_ms.checked_add(seconds.checked_mul(calendar::MS_PER_SECOND)?)?;
            self.take_zone("+00")?;
        }
        group(piece, "z").map_or(Some(()), |name| self.take_zone(name))
    }

    /// Takes a zone; `None` for an unknown zone, or where an earlier piece gave one.
    fn take_zone(&mut self, name: &'t str) -> Option<()> {
        let zone = written_zone::parse(name).filter(|zone| zone.rest.is_empty())?;
        self.zone.replace((zone.name, zone.zone())).is_none().then_some(())
    }

    /// Takes a word for a time of the day or for a day; a day begins at midnight unless a time follows.
    fn take_relative(&mut self, word: &str) {
        let word = word.to_ascii_lowercase();
        match word.as_str() {
            "now" => return,
            "tomorrow" => self.added_ms += MS_PER_DAY,
            "yesterday" => self.added_ms -= MS_PER_DAY,
            _ => {}
        }
        self.time_ms = (word == "noon").then_some(12 * calendar::MS_PER_HOUR);
    }

    fn take_date(&mut self, piece: &Captures<'_>) -> Option<()> {
        let month = number(piece, "m").or_else(|| group(piece, "name").and_then(month_number));
        let (year, day) = (group(piece, "y"), number(piece, "d"));
        if month.is_none() && year.is_none() {
            return Some(());
        }
        if std::mem::replace(&mut self.has_date, true) {
            return None;
        }
        if let Some(year) = year {
            let sign = if group(piece, "sign") == Some("-") { -1 } else { 1 };
            self.year = Some(sign * full_year(year)?);
        }
        (self.month, self.day) = match (number(piece, "ordinal"), number(piece, "week"), month) {
            // Days beyond the end of the month carry over.
            (Some(ordinal), ..) => (Some(1), Some(ordinal)),
            (_, Some(week), _) => {
                let monday = Civil::first_iso_monday(self.year?) + (week - 1) * 7;
                let days = monday + number(piece, "weekday").unwrap_or(1) - 1;
                let date = Civil::of(days.checked_mul(MS_PER_DAY)?);
                self.year = Some(date.year);
                (Some(date.month), Some(date.day))
            }
            (.., month) => (month, Some(day.unwrap_or(1))),
        };
        let is_carried = number(piece, "ordinal").is_some();
        let (Some(month), Some(day)) = (self.month, self.day) else { return None };
        // 2000 is a leap year: whether the year in the text is one may not be known yet.
        let is_valid = (1..=12).contains(&month) && day >= 1 && (is_carried || day <= days_in_month(2000, month));
        is_valid.then_some(())
    }

    fn take_time(&mut self, piece: &Captures<'_>) -> Option<()> {
        let Some(mut hour) = number(piece, "h") else { return Some(()) };
        if self.time_ms.is_some() {
            return None;
        }
        if let Some(half) = group(piece, "half") {
            hour = hour % 12 + if half.eq_ignore_ascii_case("p") { 12 } else { 0 };
        }
        let (minute, second) = (number(piece, "i").unwrap_or(0), number(piece, "s").unwrap_or(0));
        if hour > 23 || second > 59 {
            return None;
        }
        let milliseconds = group(piece, "f").map_or(Some(0), |digits| format!("{digits:0<3}")[..3].parse().ok())?;
        let (hours, minutes) = (hour * calendar::MS_PER_HOUR, minute * calendar::MS_PER_MINUTE);
        self.time_ms = Some(hours + minutes + second * calendar::MS_PER_SECOND + milliseconds);
        Some(())
    }

    fn finish(self) -> Option<WrittenMoment<'t>> {
        let (year, month, day) = (self.year?, self.month?, self.day?);
        if day <= 31 && day > days_in_month(year, month) {
            return None;
        }
        let midnight = Civil { year, month, day, hour: 0, minute: 0, second: 0, millisecond: 0 };
        let mut ms = midnight.to_ms()?;
        if let Some(wanted) = self.day_of_week {
            ms += (wanted - (Civil::of(ms).day_of_week() - 1)).rem_euclid(7) * MS_PER_DAY;
        }
        ms = ms.checked_add(self.time_ms.unwrap_or(0) + self.added_ms)?;
        let (name, zone) = self.zone.unwrap_or(("", Zone::UTC));
        Some(WrittenMoment { ms: zone.utc_ms(ms), zone: name })
    }
}

/// One or two digits mean a year from 1970 to 2069.
fn full_year(digits: &str) -> Option<i64> {
    let year: i64 = digits.parse().ok()?;
    Some(match digits.len() {
        4.. => year,
        _ if year < 70 => year + 2000,
        _ if year < 100 => year + 1900,
        _ => year,
    })
}

/// The month of an English name, of the first three letters of one, or of a Roman number.
pub(crate) fn month_number(name: &str) -> Option<i64> {
    const ROMAN: [&str; 12] = ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii"];
    let lower = name.to_ascii_lowercase();
    let named = |month: &&str| lower == month.to_ascii_lowercase() || lower == month[..3].to_ascii_lowercase();
    let found = calendar::MONTHS.iter().position(named);
    let found = found.or_else(|| ROMAN.iter().position(|roman| lower == *roman));
    found.or(if lower == "sept" { Some(8) } else { None }).map(|index| index as i64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        parse(text).map(|moment| calendar::iso_text(moment.ms))
    }

    #[test]
    fn all_forms_are_regular_expressions() {
        assert_eq!(COMPILED.len(), FORMS.len());
    }

    #[test]
    fn dates_are_read_as_they_are_written() {
        for (text, expected) in [
            ("oct 20 2020", "2020-10-20T00:00:00.000Z"),
            ("WED jan 31 12:05:28 +03:30 1996", "1996-01-31T08:35:28.000Z"),
            ("WED jan 31 12:05:28 2018", "2018-01-31T12:05:28.000Z"),
            ("July 4th, 2018 12:39:23 BST", "2018-07-04T11:39:23.000Z"),
            ("4 July 2018 4:08 pm", "2018-07-04T16:08:00.000Z"),
            ("30-6-2008", "2008-06-30T00:00:00.000Z"),
            ("12/22/78", "1978-12-22T00:00:00.000Z"),
            ("2008/8/8 10:11", "2008-08-08T10:11:00.000Z"),
            ("20080701T22:38:07.5", "2008-07-01T22:38:07.500Z"),
            ("2008-W28-3", "2008-07-09T00:00:00.000Z"),
            ("2008.197", "2008-07-15T00:00:00.000Z"),
            ("May-09-78", "1978-05-09T00:00:00.000Z"),
            ("14 III 1879", "1879-03-14T00:00:00.000Z"),
            ("2018-03-20 11:00 EDT", "2018-03-20T15:00:00.000Z"),
            ("2018-03-20T11:00:00 P", "2018-03-20T14:00:00.000Z"),
            ("2018-03-20T11:00:00 I", "2018-03-20T02:00:00.000Z"),
            ("2018-03-20 GMT+2", "2018-03-19T22:00:00.000Z"),
            ("2018-Mar-20 noon", "2018-03-20T12:00:00.000Z"),
            ("midnight 2018-03-20", "2018-03-20T00:00:00.000Z"),
            ("2018-03-20 11:00 tomorrow", "2018-03-21T00:00:00.000Z"),
            ("@1521543600", "2018-03-20T11:00:00.000Z"),
            ("-0001-01-01T00:00:00Z", "-001-01-01T00:00:00.000Z"),
            // MongoDB reads the first four digits as a year, and the fifth as another year.
            ("20609-01-01T00:00:00Z", "2009-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_date_is_refused() {
        for text in [
            "",
            "Friday",
            "not-a-date",
            "2024",
            "July 2",
            "2024 -06-15T12:30:45Z",
            "2024-06-15T12: 30:45Z",
            "10000-01-01T00:00:00Z",
            "20599-01-01T00:00:00Z",
            "2017-13-01",
            "2017-02-30",
            "feb 29 2019",
            "12:00 13:00",
            "2018-03-20 11:00 America/New_York",
            "2018-03-20T11:00:00 Etc/UTC",
            "2018-03-20T11:00:00+25:00",
            "2018-03-20 11:00 UTC+1",
            "noon",
            "tomorrow",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
