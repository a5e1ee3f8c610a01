//! Time zones after a time in a date that people wrote: `+05:30`, `GMT-2`, `CEST`, `(Z)`.
//!
//! Names of the IANA database (`Europe/Amsterdam`) are not read: MongoDB does not look them up in dates.
//! Source: timelib, `timelib_parse_zone`, which MongoDB reads dates with.

use crate::calendar::{MS_PER_HOUR, MS_PER_MINUTE, MS_PER_SECOND};
use crate::time_zone::Zone;

/// Minutes ahead of UTC of the abbreviations common in dates, and of the military letters.
const MINUTES: [(&str, i64); 59] = [
    ("utc", 0),
    ("gmt", 0),
    ("wet", 0),
    ("west", 60),
    ("bst", 60),
    ("cet", 60),
    ("cest", 120),
    ("cat", 120),
    ("ist", 120),
    ("eet", 120),
    ("eest", 180),
    ("idt", 180),
    ("eat", 180),
    ("msk", 180),
    ("awst", 480),
    ("hkt", 480),
    ("jst", 540),
    ("acst", 570),
    ("aest", 600),
    ("acdt", 630),
    ("aedt", 660),
    ("adt", -180),
    ("ast", -240),
    ("edt", -240),
    ("est", -300),
    ("cdt", -300),
    ("cst", -360),
    ("mdt", -360),
    ("mst", -420),
    ("pdt", -420),
    ("pst", -480),
    ("akdt", -480),
    ("akst", -540),
    ("hst", -600),
    ("a", 60),
    ("b", 120),
    ("c", 180),
    ("d", 240),
    ("e", 300),
    ("f", 360),
    ("g", 420),
    ("h", 480),
    ("i", 540),
    ("k", 600),
    ("l", 660),
    ("m", 720),
    ("n", -60),
    ("o", -120),
    ("p", -180),
    ("q", -240),
    ("r", -300),
    ("s", -360),
    ("t", -420),
    ("u", -480),
    ("v", -540),
    ("w", -600),
    ("x", -660),
    ("y", -720),
    ("z", 0),
];

/// A zone at the front of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrittenZone<'t> {
    /// The zone as written, without the characters around it; an offset begins with its sign.
    pub(crate) name: &'t str,
    pub(crate) offset_ms: i64,
    /// The text after the zone.
    pub(crate) rest: &'t str,
}

impl WrittenZone<'_> {
    pub(crate) fn zone(&self) -> Zone {
        Zone::Fixed { offset_ms: self.offset_ms }
    }

    /// Whether the zone is an abbreviation, or an offset in minutes that a clock can show: `+24:59` at most.
    pub(crate) fn is_within_a_day(&self) -> bool {
        let Some(digits) = self.name.strip_prefix(['+', '-']) else { return true };
        let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
        let (hours, minutes) = match digits.len() {
            2 => (digits.as_str(), "0"),
            4 => digits.split_at(2),
            _ => return false,
        };
        hours.parse().is_ok_and(|hours: u8| hours <= 24) && minutes.parse().is_ok_and(|minutes: u8| minutes <= 59)
    }
}

/// Reads a zone at the front of a text, after blanks and brackets.
pub(crate) fn parse(text: &str) -> Option<WrittenZone<'_>> {
    let text = text.trim_start_matches([' ', '\t', '(']);
    let text = text.strip_prefix("GMT").filter(|rest| rest.starts_with(['+', '-'])).unwrap_or(text);
    let (name, offset_ms) = match text.as_bytes().first()? {
        b'+' => offset(text, 1)?,
        b'-' => offset(text, -1)?,
        _ => abbreviation(text)?,
    };
    Some(WrittenZone { name, offset_ms, rest: text.get(name.len()..)?.trim_start_matches(')') })
}

/// `+1`, `+01`, `+130`, `+0130`, `+1:30`, `+01:30`, with seconds `+013000` and `+01:30:00`.
fn offset(text: &str, sign: i64) -> Option<(&str, i64)> {
    let length = text.bytes().skip(1).take_while(|byte| byte.is_ascii_digit() || *byte == b':').count();
    let digits = text.get(1..=length)?;
    let parts: Vec<&str> = digits.split(':').collect();
    let number = |part: &str| if part.is_empty() { Some(0) } else { part.parse::<i64>().ok() };
    let (hours, minutes, seconds) = match (parts.as_slice(), length) {
        ([hours], 1..=2) => (number(hours)?, 0, 0),
        ([both], 3..=4) => (number(both)? / 100, number(both)? % 100, 0),
        ([all], 6) => (number(all)? / 10_000, number(all)? / 100 % 100, number(all)? % 100),
        ([hours, minutes], 3..=5) if (1..=2).contains(&hours.len()) => (number(hours)?, number(minutes)?, 0),
        ([hours, minutes, seconds], 8) if hours.len() == 2 && minutes.len() == 2 => {
            (number(hours)?, number(minutes)?, number(seconds)?)
        }
        _ => return None,
    };
    let offset_ms = hours * MS_PER_HOUR + minutes * MS_PER_MINUTE + seconds * MS_PER_SECOND;
    Some((text.get(..=length)?, sign * offset_ms))
}

fn abbreviation(text: &str) -> Option<(&str, i64)> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'/' | b'_');
    let name = text.get(..text.bytes().take_while(is_part).count())?;
    let (_, minutes) = MINUTES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known))?;
    Some((name, minutes * MS_PER_MINUTE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_offsets_and_abbreviations() {
        for (text, name, minutes, rest) in [
            ("+1", "+1", 60, ""),
            ("-0545 x", "-0545", -345, " x"),
            ("GMT+02", "+02", 120, ""),
            (" (CEST) y", "CEST", 120, " y"),
            ("+1:30", "+1:30", 90, ""),
            ("+01:30:00", "+01:30:00", 90, ""),
            ("L", "L", 660, ""),
            ("p", "p", -180, ""),
            ("ACST", "ACST", 570, ""),
            ("utc", "utc", 0, ""),
        ] {
            let read = parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((read.name, read.offset_ms / MS_PER_MINUTE, read.rest), (name, minutes, rest), "{text}");
        }
    }

    #[test]
    fn names_of_the_database_are_no_zones() {
        for text in ["", "Europe/Amsterdam", "J", "+", "+12345", "+012:30", "gmt+2", "Nowhere"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
