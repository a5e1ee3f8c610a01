//! Moments in ISO 8601, with their zone.

use crate::calendar::{Civil, days_in_month};
use crate::written_zone;

/// The moment that a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrittenMoment<'t> {
    /// Milliseconds since 1970; in UTC if the text names no zone.
    pub(crate) ms: i64,
    /// The zone as it was written, or empty.
    pub(crate) zone: &'t str,
}

/// Reads ISO 8601: a date, `T` or a space, a time to the minute or finer, a zone. Whole years and months are not read.
pub(crate) fn parse_iso(text: &str) -> Option<WrittenMoment<'_>> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        text.get(from..to)?.parse().ok()
    };
    if bytes.get(4) != Some(&b'-') || bytes.get(7) != Some(&b'-') {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let mut civil = Civil { year, month, day, hour: 0, minute: 0, second: 0, millisecond: 0 };
    if bytes.len() == 10 {
        return Some(WrittenMoment { ms: civil.to_ms()?, zone: "" });
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    // Any number of blanks may stand in the place of the T.
    let blanks = bytes[10..].iter().take_while(|byte| is_blank(byte)).count();
    if blanks > 1 || bytes.get(10) == Some(&b'\t') {
        let single = format!("{} {}", text.get(..10)?, text.get(10 + blanks..)?);
        let moment = parse_iso(&single)?;
        return Some(WrittenMoment { ms: moment.ms, zone: text.get(text.len() - moment.zone.len()..)? });
    }
    if !matches!(bytes.get(10), Some(b'T' | b't' | b' ')) || bytes.get(13) != Some(&b':') {
        return None;
    }
    (civil.hour, civil.minute) = (number(11, 13)?, number(14, 16)?);
    let mut end = 16;
    if bytes.get(end) == Some(&b':') {
        civil.second = number(17, 19)?;
        end = 19;
        if bytes.get(end) == Some(&b'.') {
            let digits = bytes[end + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let taken = digits.min(3);
            civil.millisecond = number(20, 20 + taken)? * 10_i64.pow(3 - taken as u32);
            end += 1 + digits;
        }
    }
    if civil.hour > 23 || civil.minute > 59 || civil.second > 59 {
        return None;
    }
    let zone = text.get(end..)?.trim_start();
    if zone.is_empty() {
        return Some(WrittenMoment { ms: civil.to_ms()?, zone });
    }
    let zone = written_zone::parse(zone).filter(|zone| zone.rest.is_empty() && zone.is_within_a_day())?;
    Some(WrittenMoment { ms: zone.zone().utc_ms(civil.to_ms()?), zone: zone.name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_text_is_read_at_any_offset() {
        let moment = |ms, zone| Some(WrittenMoment { ms, zone });
        assert_eq!(parse_iso("2000-02-29T01:30:00.5+01:30"), moment(951_782_400_500, "+01:30"));
        assert_eq!(parse_iso("2000-02-29"), moment(951_782_400_000, ""));
        assert_eq!(parse_iso("2001-02-29"), None);
        assert_eq!(parse_iso("yesterday"), None);
    }
}
