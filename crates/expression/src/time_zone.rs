//! Time zones: fixed offsets, and the zones of the IANA database, which is compiled into the program.

use crate::calendar::{Civil, MS_PER_MINUTE};
use bunko_errors::{ErrorCode, Failure, Result};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use std::sync::LazyLock;

/// The bundled database is used and not the machine's, so that results do not depend on the machine.
static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone.
#[derive(Clone, Debug)]
pub(crate) enum Zone {
    /// A constant offset.
    Fixed {
        /// In milliseconds, positive in the east.
        offset_ms: i64,
    },
    /// A zone with a history of offsets.
    Named(TimeZone),
}

impl Zone {
    pub(crate) const UTC: Self = Self::Fixed { offset_ms: 0 };

    /// Reads `UTC`, `GMT`, `Z`, `+05:30`, `-0330`, `+03` or a name such as `Europe/Paris`.
    /// # Errors
    /// 40485 for anything else.
    pub(crate) fn parse(name: &str) -> Result<Self> {
        if matches!(name, "UTC" | "GMT" | "Z" | "Etc/UTC" | "Etc/GMT") {
            return Ok(Self::UTC);
        }
        if let Some(minutes) = offset_minutes(name) {
            return Ok(Self::Fixed { offset_ms: minutes * MS_PER_MINUTE });
        }
        // The database ignores the case of names; MongoDB does not.
        let named = DATABASE.get(name).ok().filter(|zone| zone.iana_name() == Some(name));
        named
            .map(Self::Named)
            .ok_or_else(|| Failure::new(ErrorCode(40485), format!("unrecognized time zone identifier: \"{name}\"")))
    }

    /// The zone's offset from UTC at a moment, in milliseconds; positive in the east.
    pub(crate) fn offset_ms(&self, utc_ms: i64) -> i64 {
        match self {
            Self::Fixed { offset_ms } => *offset_ms,
            Self::Named(zone) => {
                // Beyond the years of the database, its first and last offsets hold.
                let end = if utc_ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
                let moment = Timestamp::from_millisecond(utc_ms).unwrap_or(end);
                i64::from(zone.to_offset(moment).seconds()) * 1000
            }
        }
    }

    /// The local time at a moment, as milliseconds since 1970 on its clock.
    pub(crate) fn local_ms(&self, utc_ms: i64) -> i64 {
        utc_ms.saturating_add(self.offset_ms(utc_ms))
    }

    /// The moment of a local time: the earlier one if there are two. A local time that the clock skips moves later by
    /// the length of the gap.
    pub(crate) fn utc_ms(&self, local_ms: i64) -> i64 {
        match self {
            Self::Fixed { offset_ms } => local_ms.saturating_sub(*offset_ms),
            Self::Named(zone) => {
                let moment = civil(local_ms).and_then(|shown| zone.to_ambiguous_timestamp(shown).compatible().ok());
                moment.map_or_else(|| local_ms.saturating_sub(self.offset_ms(local_ms)), Timestamp::as_millisecond)
            }
        }
    }
}

fn civil(local_ms: i64) -> Option<DateTime> {
    let shown = Civil::of(local_ms);
    let nanosecond = (shown.millisecond * 1_000_000) as i32;
    let (hour, minute, second) = (shown.hour as i8, shown.minute as i8, shown.second as i8);
    DateTime::new(i16::try_from(shown.year).ok()?, shown.month as i8, shown.day as i8, hour, minute, second, nanosecond)
        .ok()
}

fn offset_minutes(zone: &str) -> Option<i64> {
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits = match digits.len() {
        5 if digits.as_bytes()[2] == b':' => digits.replacen(':', "", 1),
        2 | 4 => digits.to_owned(),
        _ => return None,
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let hours: i64 = digits[..2].parse().ok()?;
    let minutes: i64 = if digits.len() == 4 { digits[2..].parse().ok()? } else { 0 };
    Some(sign * (hours * 60 + minutes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::iso_text;
    use crate::written_moment::parse_iso;

    fn shown(zone: &str, utc: &str) -> String {
        let utc_ms = parse_iso(utc).expect("a moment").ms;
        iso_text(Zone::parse(zone).expect("a zone").local_ms(utc_ms))
    }

    #[test]
    fn clocks_follow_their_history() {
        assert_eq!(shown("America/New_York", "2021-03-14T06:59:59Z"), "2021-03-14T01:59:59.000Z");
        assert_eq!(shown("America/New_York", "2021-03-14T07:00:00Z"), "2021-03-14T03:00:00.000Z");
        assert_eq!(shown("+05:30", "2021-01-01T00:00:00Z"), "2021-01-01T05:30:00.000Z");
        assert!(Zone::parse("america/new_york").is_err() && Zone::parse("Nowhere").is_err());
    }

    #[test]
    fn local_times_lead_back_to_their_moment() {
        let zone = Zone::parse("America/New_York").expect("a zone");
        for utc in ["1969-07-20T20:17:40Z", "2021-03-14T07:00:00Z", "2021-11-07T05:30:00Z", "2100-01-01T00:00:00Z"] {
            let utc_ms = parse_iso(utc).expect("a moment").ms;
            assert_eq!(zone.utc_ms(zone.local_ms(utc_ms)), utc_ms, "{utc}");
        }
        // A skipped local time, and a repeated one.
        let local = |text: &str| parse_iso(text).expect("a moment").ms;
        assert_eq!(iso_text(zone.utc_ms(local("2021-03-14T02:30:00Z"))), "2021-03-14T07:30:00.000Z");
        assert_eq!(iso_text(zone.utc_ms(local("2021-11-07T01:30:00Z"))), "2021-11-07T05:30:00.000Z");
        assert_eq!(zone.utc_ms(i64::MAX) - i64::MAX, 0);
    }
}
