//! Reasons not to trust figures, and the badges that show them.

use bunko_statistics::LatencySummary;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that a reader must know about a run's figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "kebab-case")]
pub enum Finding {
    /// Requests failed.
    Errors {
        /// How many.
        count: u64,
        /// What the first said.
        first: String,
    },
    /// The collection holds another number of documents than it must.
    CountsDiffer {
        /// What was counted: documents in the collection, documents acknowledged, ...
        what: String,
        /// Expected.
        expected: u64,
        /// Found.
        found: u64,
    },
    /// A document read back is not what was written.
    ContentsDiffer {
        /// Which document and which field, or that it is missing.
        detail: String,
    },
    /// The generator, not the server, may have set the pace.
    GeneratorBound {
        /// What shows it.
        detail: String,
    },
    /// The server did not keep up with the open loop.
    RateNotKept {
        /// Requests per second offered.
        offered: f64,
        /// Requests per second reached.
        achieved: f64,
    },
    /// Throughput or latency moved during the run, so that its mean says little.
    NotSteady {
        /// What moved, from where to where.
        detail: String,
    },
    /// The machine woke threads that only slept so late that the slow requests may be as late as that.
    MachinePauses {
        /// 999 of 1,000 wake-ups were at most so late, in microseconds.
        pause_us: f64,
        /// 999 of 1,000 requests took at most so long, in microseconds.
        latency_us: f64,
    },
    /// The run was too short to show steadiness, or for a journal and compaction to take part.
    Short {
        /// Its length.
        seconds: f64,
    },
    /// The server's background work did not end while the lab waited for it.
    NotSettled {
        /// How long that was.
        seconds: f64,
    },
    /// A figure is beyond a limit that the scenario sets.
    LimitExceeded {
        /// Which figure and which limit.
        detail: String,
    },
    /// Whether a limit was kept cannot be seen from here.
    LimitUnchecked {
        /// Which, and why.
        detail: String,
    },
    /// The state of caches that the scenario declares could not be brought about.
    CacheNotAsDeclared {
        /// Why.
        detail: String,
    },
}

/// An open loop must reach this share of the offered rate.
pub const RATE_KEPT_MIN: f64 = 0.97;
/// From this share of the latency on, the machine's pauses may be all that there is to see at that percentile: a request
/// needs two wake-ups at least, the server's and the generator's.
const PAUSES_SHARE_MAX: f64 = 0.5;

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Nothing speaks against the figures.
    Good,
    /// The figures hold for what they say, with a restriction.
    Caution,
    /// The figures hold, but one of them is beyond a limit that the scenario sets.
    Exceeded,
    /// The figures mean nothing.
    Invalid,
}

/// A word or two that stand beside a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Badge {
    /// `valid`, `generator-bound`, `not steady`, `rate not kept`, `errors`, `counts differ`, ...
    pub text: String,
    /// Its colour.
    pub severity: Severity,
}

impl Finding {
    /// The finding on an open loop's rates in requests per second, if the server did not keep up.
    pub fn of_rate(offered: f64, achieved: f64) -> Option<Self> {
        (achieved < offered * RATE_KEPT_MIN).then_some(Self::RateNotKept { offered, achieved })
    }

    /// The finding on the machine's pauses, if p99.9 of requests is hardly more than they are.
    pub fn of_pauses(lateness: &LatencySummary, latency: &LatencySummary) -> Option<Self> {
        let (pause_us, latency_us) = (lateness.p999_us?, latency.p999_us?);
        (pause_us > latency_us * PAUSES_SHARE_MAX).then_some(Self::MachinePauses { pause_us, latency_us })
    }

    /// How much it weighs.
    pub fn severity(&self) -> Severity {
        match self {
            Self::Short { .. }
            | Self::NotSteady { .. }
            | Self::MachinePauses { .. }
            | Self::NotSettled { .. }
            | Self::LimitUnchecked { .. }
            | Self::CacheNotAsDeclared { .. } => Severity::Caution,
            Self::LimitExceeded { .. } => Severity::Exceeded,
            _ => Severity::Invalid,
        }
    }

    /// The badge that shows it.
    pub fn badge(&self) -> Badge {
        let text = match self {
            Self::Errors { .. } => "errors",
            Self::CountsDiffer { .. } => "counts differ",
            Self::ContentsDiffer { .. } => "contents differ",
            Self::GeneratorBound { .. } => "generator-bound",
            Self::RateNotKept { .. } => "rate not kept",
            Self::NotSteady { .. } => "not steady",
            Self::MachinePauses { .. } => "machine pauses",
            Self::Short { .. } => "short",
            Self::NotSettled { .. } => "not settled",
            Self::LimitExceeded { .. } => "limit exceeded",
            Self::LimitUnchecked { .. } => "limit unchecked",
            Self::CacheNotAsDeclared { .. } => "cache not as declared",
        };
        Badge { text: text.to_owned(), severity: self.severity() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Errors { count, first } => write!(f, "{count} errors, the first: {first}"),
            Self::CountsDiffer { what, expected, found } => {
                write!(f, "counts differ: {expected} {what} expected, {found} found")
            }
            Self::ContentsDiffer { detail } => write!(f, "contents differ: {detail}"),
            Self::GeneratorBound { detail } => write!(f, "generator-bound: {detail}"),
            Self::RateNotKept { offered, achieved } => {
                write!(f, "rate not kept: {offered:.0} requests/s offered, {achieved:.0} achieved")
            }
            Self::NotSteady { detail } => write!(f, "not steady: {detail}"),
            Self::MachinePauses { pause_us, latency_us } => write!(
                f,
                "machine pauses: the machine woke threads that only slept {pause_us:.0} us late (p99.9), requests took \
                 {latency_us:.0} us (p99.9): latencies from there on are the machine's and not the server's"
            ),
            Self::Short { seconds } => write!(f, "short: {seconds:.1} s do not show a steady state"),
            Self::NotSettled { seconds } => {
                write!(f, "not settled: the server still worked {seconds:.0} s after the last reply")
            }
            Self::LimitExceeded { detail } => write!(f, "limit exceeded: {detail}"),
            Self::LimitUnchecked { detail } => write!(f, "limit unchecked: {detail}"),
            Self::CacheNotAsDeclared { detail } => write!(f, "cache not as declared: {detail}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_statistics::LatencyHistogram;

    fn summary(p999_us: Option<f64>) -> LatencySummary {
        LatencySummary { p999_us, ..LatencyHistogram::default().summary() }
    }

    #[test]
    fn pauses_count_from_half_of_the_latency_on() {
        let found = |pause_us, latency_us| Finding::of_pauses(&summary(pause_us), &summary(latency_us));
        assert_eq!(found(Some(500.0), Some(1_000.0)), None);
        let finding = found(Some(501.0), Some(1_000.0)).expect("more than half");
        assert_eq!(finding, Finding::MachinePauses { pause_us: 501.0, latency_us: 1_000.0 });
        assert_eq!(finding.badge(), Badge { text: "machine pauses".into(), severity: Severity::Caution });
        // Percentiles that have too few samples say nothing.
        assert_eq!((found(None, Some(1.0)), found(Some(1e6), None)), (None, None));
    }
}
