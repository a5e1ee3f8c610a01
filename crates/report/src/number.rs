//! Numbers as people read them.

/// `12,345`, `99.5`, `4.21`, `0.0123`: three significant digits, and a whole number from 100 on.
pub(crate) fn figure(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || size >= 99.95 || !value.is_finite() {
        return thousands(value);
    }
    let decimals = (2 - size.log10().floor() as i32).clamp(1, 9) as usize;
    format!("{value:.decimals$}")
}

/// A ratio of two figures: with two decimals, and below 0.1 with three significant digits.
pub(crate) fn ratio(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.1 { figure(value) } else { format!("{value:.2}") }
}

/// A whole number with its thousands apart.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if value < 0.0 && digits != "0" {
        shown.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) && value.is_finite() {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Bytes in decimal units, as disks and networks are sold: `736 MB`.
pub(crate) fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut unit = 0;
    let mut scaled = value;
    while scaled.abs() >= 999.5 && unit + 1 < UNITS.len() {
        scaled /= 1_000.0;
        unit += 1;
    }
    if unit == 0 { format!("{scaled:.0} B") } else { format!("{} {}", figure(scaled), UNITS[unit]) }
}

/// A length of time in the units that fit it: `12.0 ms`, `9 min 20 s`.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds > 0.0 && seconds < 0.999_5e-3 => format!("{} us", figure(seconds * 1e6)),
        _ if seconds > 0.0 && seconds < 0.999_5 => format!("{} ms", figure(seconds * 1e3)),
        0..60 => format!("{} s", figure(seconds)),
        60..3_600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3_600, whole % 3_600 / 60),
    }
}

/// A moment in UTC to the second, ISO 8601.
pub(crate) fn utc(milliseconds_since_1970: u64) -> String {
    let seconds = milliseconds_since_1970 / 1_000;
    let (year, month, day) = civil_date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Year, month and day in the Gregorian calendar.
/// Source: Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`: years begin in March, so that
/// the leap day is the last of its year.
fn civil_date(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits() {
        let shown = [0.0, 0.012_34, 0.999_9, 4.206, 9.999, 99.94, 99.96, 999.4, 1_000.0, -1_234_567.0].map(figure);
        assert_eq!(shown, ["0", "0.0123", "1.000", "4.21", "10.00", "99.9", "100", "999", "1,000", "-1,234,567"]);
    }

    #[test]
    fn ratios_keep_hundredths() {
        assert_eq!([1.0, 12.345, 0.1, 0.000_53].map(ratio), ["1.00", "12.35", "0.10", "0.000530"]);
    }

    #[test]
    fn thousands_are_set_apart() {
        let shown = [0.0, -0.2, 999.4, 1_000.0, -123_456.0, 1_234_567.0, f64::INFINITY].map(thousands);
        assert_eq!(shown, ["0", "0", "999", "1,000", "-123,456", "1,234,567", "inf"]);
    }

    #[test]
    fn bytes_have_the_unit_that_fits() {
        let shown = [0.0, 999.0, 1_000.0, 736_706_560.0, 5e9, 2e15].map(bytes);
        assert_eq!(shown, ["0 B", "999 B", "1.00 kB", "737 MB", "5.00 GB", "2,000 TB"]);
    }

    #[test]
    fn times_are_readable() {
        assert_eq!(
            [0.000_4, 0.25, 59.4, 61.0, 7_380.0].map(duration),
            ["400 us", "250 ms", "59.4 s", "1 min 1 s", "2 h 3 min"]
        );
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_825_599_999), "2000-02-29 11:59:59 UTC");
        assert_eq!(utc(1_763_737_200_000), "2025-11-21 15:00:00 UTC");
    }
}
