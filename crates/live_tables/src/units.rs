//! Numbers as text.

/// How sizes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// Three digits and a unit: `75.0M`.
    Readable,
    /// Bytes without a unit.
    Bytes,
}

const MEBIBYTE: f64 = 1_048_576.0;

/// An amount of memory in MiB.
pub(crate) fn memory(mebibytes: f64, units: Units) -> String {
    match units {
        Units::Readable => scaled(mebibytes, 1024.0, &["M", "G", "T"]),
        Units::Bytes => format!("{:.0}", mebibytes * MEBIBYTE),
    }
}

/// An amount of network traffic in bytes.
pub(crate) fn traffic(bytes: f64, units: Units) -> String {
    match units {
        Units::Readable if bytes.round() < 1000.0 => format!("{bytes:.0}b"),
        Units::Readable => scaled(bytes / 1000.0, 1000.0, &["k", "m", "g"]),
        Units::Bytes => format!("{bytes:.0}"),
    }
}

/// A share of 1 as percent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// A whole number.
pub(crate) fn count(number: f64) -> String {
    format!("{number:.0}")
}

/// A number with up to three digits after the point.
pub(crate) fn plain(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Three digits, in the largest unit that leaves a number of at least 1.
fn scaled(number: f64, step: f64, units: &[&str]) -> String {
    let (mut number, mut units) = (number, units.iter().copied());
    let mut unit = units.next().unwrap_or_default();
    // A number that rounds to a whole step is written in the next unit.
    while number.round() >= step {
        let Some(next) = units.next() else { break };
        (number, unit) = (number / step, next);
    }
    match number {
        ..9.995 => format!("{number:.2}{unit}"),
        ..99.95 => format!("{number:.1}{unit}"),
        _ => format!("{number:.0}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits_and_the_largest_unit() {
        let memory = |mebibytes| memory(mebibytes, Units::Readable);
        assert_eq!([0.0, 9.0, 75.0, 999.0, 1023.4].map(memory), ["0.00M", "9.00M", "75.0M", "999M", "1023M"]);
        assert_eq!([1023.6, 1536.0, 2570.0, 2_097_152.0].map(memory), ["1.00G", "1.50G", "2.51G", "2.00T"]);
        let traffic = |bytes| traffic(bytes, Units::Readable);
        assert_eq!([0.0, 158.0, 999.4].map(traffic), ["0b", "158b", "999b"]);
        assert_eq!([999.6, 39_400.0, 9_999.0, 2.5e6].map(traffic), ["1.00k", "39.4k", "10.0k", "2.50m"]);
        assert_eq!(scaled(5e6, 1000.0, &["k", "m"]), "5000m");
    }

    #[test]
    fn bytes_have_no_unit() {
        assert_eq!(memory(1.5, Units::Bytes), "1572864");
        assert_eq!(traffic(39_400.4, Units::Bytes), "39400");
    }

    #[test]
    fn shares_and_numbers() {
        assert_eq!([0.0, 0.0004, 0.5, 1.0].map(percent), ["0.0%", "0.0%", "50.0%", "100.0%"]);
        assert_eq!([2.0, 2.4, 2.6].map(count), ["2", "2", "3"]);
        assert_eq!([2.0, 2.5, -0.125, 100.0].map(plain), ["2", "2.5", "-0.125", "100"]);
    }
}
