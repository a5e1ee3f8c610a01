//! How load is offered.

use super::{OneOrMany, Span};
use crate::operation::SessionUse;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// How load is offered. What is not set is taken from the scenario's own `load`, then from the defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LoadSettings {
    /// Sockets; `1` if not set; with a list the phase is run once for each number.
    pub connections: Option<OneOrMany<usize>>,
    /// Requests in flight on each socket; `1` if not set.
    pub in_flight: Option<usize>,
    /// Generator threads; `1` if not set.
    pub threads: Option<usize>,
    /// Whether they stay on their processors; `free` if not set.
    pub placement: Option<PlacementSetting>,
    /// An open loop: requests per second, or a share of what a closed phase before reached. Without it the loop is
    /// closed.
    pub rate: Option<Rate>,
    /// How the requests of an open loop are distributed in time; `constant` if not set.
    pub arrival: Option<ArrivalKind>,
    /// How long the same load runs unmeasured before; its last reply is in before measuring begins; `0s` if not set.
    pub warm_up: Option<Span>,
    /// How long requests are made; this, or `requests`, or what the operation calls complete.
    pub duration: Option<Span>,
    /// How many requests are made.
    pub requests: Option<u64>,
    /// `0`, `1`, a larger number, `majority` or `j`; if not set what the connection string says, else 1.
    #[serde(default, deserialize_with = "number_or_text")]
    pub write_concern: Option<String>,
    /// In what sessions requests are made; `none` if not set.
    pub sessions: Option<SessionUse>,
    /// Without any reply for this long a phase fails; `60s` if not set.
    pub stall_timeout: Option<Span>,
}

/// Whether generator threads may be moved between processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementSetting {
    /// They may.
    #[default]
    Free,
    /// Each stays on one, from the last backwards.
    Pinned,
}

/// How the requests of an open loop are distributed in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalKind {
    /// At equal distances.
    #[default]
    Constant,
    /// At exponentially distributed distances, as independent users do.
    Poisson,
}

/// The rate of an open loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// Requests per second.
    Fixed(f64),
    /// A share of what an earlier phase reached, written `50% of PHASE`.
    ShareOf {
        /// 0..=1 and beyond.
        share: f64,
        /// The phase's name.
        phase: String,
    },
}

impl LoadSettings {
    /// `self` where set, otherwise `defaults`.
    #[must_use]
    pub fn or(&self, defaults: &Self) -> Self {
        Self {
            connections: self.connections.clone().or_else(|| defaults.connections.clone()),
            in_flight: self.in_flight.or(defaults.in_flight),
            threads: self.threads.or(defaults.threads),
            placement: self.placement.or(defaults.placement),
            rate: self.rate.clone().or_else(|| defaults.rate.clone()),
            arrival: self.arrival.or(defaults.arrival),
            warm_up: self.warm_up.or(defaults.warm_up),
            // A phase that counts its requests is not cut off by the scenario's duration, and the other way round.
            duration: self.duration.or_else(|| defaults.duration.filter(|_| self.requests.is_none())),
            requests: self.requests.or_else(|| defaults.requests.filter(|_| self.duration.is_none())),
            write_concern: self.write_concern.clone().or_else(|| defaults.write_concern.clone()),
            sessions: self.sessions.or(defaults.sessions),
            stall_timeout: self.stall_timeout.or(defaults.stall_timeout),
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

/// Text, or a number as text.
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

    #[test]
    fn a_phases_own_end_replaces_the_scenarios() {
        let seconds = |seconds| Some(Span(std::time::Duration::from_secs(seconds)));
        let defaults = LoadSettings { duration: seconds(10), in_flight: Some(4), ..LoadSettings::default() };
        let phase = LoadSettings { requests: Some(5), ..LoadSettings::default() };
        let settled = phase.or(&defaults);
        assert_eq!((settled.duration, settled.requests, settled.in_flight), (None, Some(5), Some(4)));
    }
}
