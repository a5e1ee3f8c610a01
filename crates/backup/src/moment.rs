//! Moments as people write them.

use crate::Result;
use bunko_tools::ToolError;
use jiff::Timestamp;

/// Reads a moment such as `2026-11-30T14:03:05.123Z`, in milliseconds since 1970.
/// # Errors
/// `Usage` for another form.
pub fn parse_ms(text: &str) -> Result<u64> {
    let refused = || {
        ToolError::Usage(format!(
            "'{text}' is not a moment: write it as 2026-11-30T14:03:05.123Z, or with another zone as +01:00"
        ))
    };
    let moment: Timestamp = text.parse().map_err(|_| refused())?;
    u64::try_from(moment.as_millisecond()).map_err(|_| refused())
}

/// Writes a moment, in UTC to the millisecond.
pub fn format_ms(ms: u64) -> String {
    match i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()) {
        Some(moment) => format!("{moment:.3}"),
        None => format!("{ms} ms after 1970"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_written() {
        assert_eq!(format_ms(1_796_047_385_120), "2026-11-30T14:03:05.120Z");
        assert_eq!(parse_ms("2026-11-30T14:03:05.120Z").ok(), Some(1_796_047_385_120));
        assert_eq!(parse_ms("2026-11-30T15:03:05.12+01:00").ok(), Some(1_796_047_385_120));
        for text in ["", "yesterday", "2026-11-30", "14:03", "1796047385", "1960-01-01T00:00:00Z"] {
            assert!(parse_ms(text).is_err(), "{text}");
        }
    }
}
