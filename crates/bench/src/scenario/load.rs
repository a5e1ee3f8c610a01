//! How load is offered.

use super::{OneOrMany, Span};
use crate::operation::SessionUse;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How load is offered. Settings that are missing are taken from the scenario's own `load`, then from the defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LoadSettings {
    /// Number of sockets; `1` if not set. With a list, the phase is run once for each number.
    pub(super) connections: Option<OneOrMany<usize>>,
    /// Requests in flight on each socket; `1` if not set.
    pub(super) in_flight: Option<usize>,
    /// Generator threads; `1` if not set.
    pub(super) threads: Option<usize>,
    /// Whether generator threads stay on their processors; `free` if not set.
    pub(super) placement: Option<PlacementSetting>,
    /// An open loop: requests per second, or a share of the rate that an earlier closed phase reached. If not set, the
    /// loop is closed.
    pub(super) rate: Option<Rate>,
    /// Distribution of an open loop's requests in time; `constant` if not set.
    pub(super) arrival: Option<ArrivalKind>,
    /// Length of the unmeasured warm-up with the same load; `0s` if not set. All its replies arrive before the
    /// measurement begins.
    pub(super) warm_up: Option<Span>,
    /// Length of the load. A phase ends after this time, after `requests`, or when the operation is complete.
    pub(super) duration: Option<Span>,
    /// Number of requests.
    pub(super) requests: Option<u64>,
    /// `0`, `1`, a larger number, `majority` or `j`. If not set, the connection string's write concern, else 1.
    #[serde(default, deserialize_with = "number_or_text")]
    pub(super) write_concern: Option<String>,
    /// Use of sessions in requests; `none` if not set.
    pub(super) sessions: Option<SessionUse>,
    /// Time without any reply after which a phase fails; `60s` if not set.
    pub(super) stall_timeout: Option<Span>,
}

/// Whether generator threads may be moved between processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementSetting {
    /// The kernel may move the threads.
    #[default]
    Free,
    /// Each stays on one processor, from the last backwards.
    Pinned,
}

/// Distribution of an open loop's requests in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalKind {
    /// At equal intervals.
    #[default]
    Constant,
    /// At exponentially distributed intervals, like requests of independent users.
    Poisson,
}

/// The rate of an open loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// Requests per second.
    Fixed(f64),
    /// A share of the rate that an earlier phase reached, written `50% of PHASE`.
    ShareOf {
        /// The share, which may exceed 1.
        share: f64,
        /// The phase's name.
        phase: String,
    },
}

impl LoadSettings {
    /// Whether no setting, or only the write concern, is set.
    pub(crate) fn is_at_most_a_write_concern(&self) -> bool {
        Self { write_concern: None, ..self.clone() } == Self::default()
    }

    /// Refuses an end that contradicts itself, even if it would not be used.
    /// # Errors
    /// A sentence with the name of the setting.
    pub(crate) fn check_end(&self) -> Result<(), String> {
        match (self.duration, self.requests) {
            (Some(_), Some(_)) => Err("load: 'duration' and 'requests' exclude each other".into()),
            (Some(Span(Duration::ZERO)), _) => Err("load: duration: it is zero".into()),
            (_, Some(0)) => Err("load: requests: at least 1 is needed".into()),
            _ => Ok(()),
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is neither requests per second nor a share such as '50% of insert'");
        if let Some((percent, phase)) = text.split_once("% of ") {
            let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
            let is_share = percent > 0.0 && percent <= 1000.0;
            return if is_share {
                Ok(Self::ShareOf { share: percent / 100.0, phase: phase.trim().to_owned() })
            } else {
                Err(wrong())
            };
        }
        match text.parse::<f64>() {
            Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(Self::Fixed(rate)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(rate) => rate.fmt(f),
            Self::ShareOf { share, phase } => write!(f, "{}% of {phase}", share * 100.0),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected requests per second, or a share such as '50% of insert'")]
enum NumberOrText {
    Number(f64),
    Text(String),
}

/// Deserializes text, or a number as text.
fn number_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Some(match NumberOrText::deserialize(deserializer)? {
        NumberOrText::Number(number) => number.to_string(),
        NumberOrText::Text(text) => text,
    }))
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(number) => number.to_string(),
            NumberOrText::Text(text) => text,
        };
        text.parse().map_err(de::Error::custom)
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(rate) => serializer.serialize_f64(*rate),
            Self::ShareOf { .. } => serializer.collect_str(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        assert_eq!("40000".parse(), Ok(Rate::Fixed(40_000.0)));
        assert_eq!("50% of insert".parse(), Ok(Rate::ShareOf { share: 0.5, phase: "insert".into() }));
        for wrong in ["0", "-3", "50%", "x% of y", "0% of y", "inf", ""] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }
}
