//! Sizes, times and lists in the form in which people write them.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A size in bytes: a number, or text such as `64MB` (decimal) or `64MiB` (binary).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// A length of time: text such as `250ms`, `10s`, `2m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

const BYTE_UNITS: [(&str, u64); 8] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("kB", 1_000),
    ("B", 1),
];
const TIME_UNITS: [(&str, f64); 5] = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
/// Longest time that is accepted, in seconds; longer ones are typing mistakes.
const SECONDS_MAX: f64 = 7.0 * 24.0 * 3600.0;

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split(text);
        let factor = BYTE_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        let factor = factor.or(unit.is_empty().then_some(1));
        match (number.parse::<f64>(), factor) {
            (Ok(number), Some(factor)) if (0.0..1e15).contains(&(number * factor as f64)) => {
                Ok(Self((number * factor as f64).round() as u64))
            }
            _ => Err(format!("'{text}' is not a size in bytes such as 4096, 64MB or 1GiB")),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = BYTE_UNITS.iter().filter(|(name, _)| *name != "kB");
        let (name, factor) = whole
            .filter(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor))
            .max_by_key(|(_, factor)| *factor)
            .copied()
            .unwrap_or(("B", 1));
        if name == "B" { write!(f, "{}", self.0) } else { write!(f, "{}{name}", self.0 / factor) }
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split(text);
        let factor = TIME_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        match (number.parse::<f64>(), factor) {
            (Ok(number), Some(factor)) if (0.0..=SECONDS_MAX).contains(&(number * factor)) => {
                Ok(Self(Duration::from_secs_f64(number * factor)))
            }
            _ => Err(format!("'{text}' is not a time such as 250ms, 10s or 2m")),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let microseconds = self.0.as_micros();
        if microseconds.is_multiple_of(1_000_000) {
            write!(f, "{}s", microseconds / 1_000_000)
        } else if microseconds.is_multiple_of(1_000) {
            write!(f, "{}ms", microseconds / 1_000)
        } else {
            write!(f, "{microseconds}us")
        }
    }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let unit_at = text.find(|character: char| character.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    (number.trim(), unit)
}

/// TOML forms of a quantity: a whole number or text.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a size in bytes such as 4096, '64MB' or '1GiB'")]
enum NumberOrText {
    Number(u64),
    Text(String),
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(bytes) => Ok(Self(bytes)),
            NumberOrText::Text(text) => text.parse().map_err(de::Error::custom),
        }
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer);
        let text = text.map_err(|_| de::Error::custom("expected a time such as '250ms', '10s' or '2m'"))?;
        text.parse().map_err(de::Error::custom)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One value or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a whole number or a list of them")]
pub enum OneOrMany<T> {
    /// One value.
    One(T),
    /// Several values, in this order.
    Many(Vec<T>),
}

impl<T: Clone> OneOrMany<T> {
    /// All values.
    pub fn values(&self) -> Vec<T> {
        match self {
            Self::One(value) => vec![value.clone()],
            Self::Many(values) => values.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        let read = |text: &str| text.parse::<Bytes>().map(|bytes| bytes.0);
        assert_eq!(read("64MB"), Ok(64_000_000));
        assert_eq!(read("1.5 GiB"), Ok(1_610_612_736));
        assert_eq!(read("400"), Ok(400));
        assert!(read("64 Mb").is_err() && read("-1").is_err() && read("").is_err() && read("NaN").is_err());
        let shown = [400, 1_000, 4_096, 64_000_000, 2 << 30].map(|bytes| Bytes(bytes).to_string());
        assert_eq!(shown, ["400", "1KB", "4KiB", "64MB", "2GiB"]);
    }

    #[test]
    fn times_are_read_and_shown() {
        let read = |text: &str| text.parse::<Span>().map(|span| span.to_string());
        assert_eq!(read("250ms").as_deref(), Ok("250ms"));
        assert_eq!(read("2m").as_deref(), Ok("120s"));
        assert_eq!(read("0.5 s").as_deref(), Ok("500ms"));
        assert!(read("10").is_err() && read("-1s").is_err() && read("infs").is_err() && read("900h").is_err());
    }
}
