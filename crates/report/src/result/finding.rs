//! Reasons to doubt figures, and the badges that show them.

use crate::number::duration;
use bunko_statistics::{LatencySummary, SAMPLES_MIN};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A fact that a reader must know about a run's figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "kebab-case")]
pub enum Finding {
    /// Requests failed.
    Errors {
        /// Number of failed requests.
        count: u64,
        /// The first error.
        first: String,
    },
    /// The number of documents in the collection is wrong.
    CountsDiffer {
        /// The counted documents: documents in the collection, documents acknowledged, ...
        what: String,
        /// Expected number.
        expected: u64,
        /// Number found.
        found: u64,
    },
    /// A document read back differs from the written one.
    ContentsDiffer {
        /// The document and the field, or that the document is missing.
        detail: String,
    },
    /// The generator, not the server, may have set the pace.
    GeneratorBound {
        /// The evidence.
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
        /// The figure that moved, from where to where.
        detail: String,
    },
    /// The machine woke sleeping threads so late that slow requests may be due to that.
    MachinePauses {
        /// Delay that 999 of 1,000 wake-ups did not exceed, in microseconds.
        pause_us: f64,
        /// Latency that 999 of 1,000 requests did not exceed, in microseconds.
        latency_us: f64,
    },
    /// The run was too short to show steadiness, or for a journal and compaction to take part.
    Short {
        /// Length of the run.
        seconds: f64,
    },
    /// The step has too few runs for an interval. No single run has this finding: it follows from the number of runs.
    FewRuns {
        /// Number of runs with figures.
        runs: usize,
    },
    /// The files are in a filesystem in an image file, so the loop device is part of every latency.
    LoopDevice(LoopDeviceUse),
    /// The server's background work did not end while the lab waited for it.
    NotSettled {
        /// How long the lab waited.
        seconds: f64,
    },
    /// A figure exceeds a limit of the scenario.
    LimitExceeded {
        /// The figure and the limit.
        detail: String,
    },
    /// The lab cannot tell whether a limit was kept.
    LimitUnchecked {
        /// The limit, and the reason.
        detail: String,
    },
    /// A member of the replica set did not get all writes while the lab waited for it.
    MembersBehind {
        /// The member, and how far it was behind.
        detail: String,
    },
    /// The lab could not prepare the state of caches that the scenario declares.
    CacheNotAsDeclared {
        /// The reason.
        detail: String,
    },
}

/// A loop device below the files that were written, and the processor time of its kernel threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopDeviceUse {
    /// `loop0`
    pub device: String,
    /// Processor time of kernel threads that worked for this device alone, in seconds; `None` where this process sees
    /// no kernel threads, as in a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// Processor time of kernel threads that worked for this device and for others, and of threads that write pages
    /// back to the device below the image. This device's share of it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_cpu_seconds: Option<f64>,
}

/// A shorter run shows nothing about a steady state.
pub const BRIEF_SECONDS: f64 = 1.0;
/// Minimum length of a run that the clock ends. In a shorter one, journal and compaction take no part.
const CUT_OFF_SECONDS_MIN: f64 = 5.0;

/// Share of the offered rate that an open loop must reach.
pub const RATE_KEPT_MIN: f64 = 0.97;
/// From this share of the latency on, the percentile may show only the machine's pauses: a request needs at least two
/// wake-ups, the server's and the generator's.
const PAUSES_SHARE_MAX: f64 = 0.5;

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its time was over.
    ByClock,
    /// Its work was done.
    ByItself,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// No reason for doubt.
    Good,
    /// The figures are valid, with a restriction.
    Caution,
    /// The figures are valid, but one exceeds a limit of the scenario.
    Exceeded,
    /// The figures are meaningless.
    Invalid,
}

/// A label of one or two words beside a result.
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

    /// The finding on a run's length. A run that the clock ended must be longer than a run that finished its work.
    pub fn of_length(seconds: f64, ended: Ended) -> Option<Self> {
        let least = match ended {
            Ended::ByClock => CUT_OFF_SECONDS_MIN,
            Ended::ByItself => BRIEF_SECONDS,
        };
        (seconds < least).then_some(Self::Short { seconds })
    }

    /// The finding on the number of runs with figures, if it is too small for an interval.
    pub fn of_runs(runs: usize) -> Option<Self> {
        (1..SAMPLES_MIN).contains(&runs).then_some(Self::FewRuns { runs })
    }

    /// The finding on the machine's pauses, if they are a large part of the requests' p99.9.
    pub fn of_pauses(lateness: &LatencySummary, latency: &LatencySummary) -> Option<Self> {
        let (pause_us, latency_us) = (lateness.p999_us?, latency.p999_us?);
        (pause_us > latency_us * PAUSES_SHARE_MAX).then_some(Self::MachinePauses { pause_us, latency_us })
    }

    /// How far the finding takes away from the figures.
    pub fn severity(&self) -> Severity {
        match self {
            Self::Short { .. }
            | Self::FewRuns { .. }
            | Self::LoopDevice(_)
            | Self::NotSteady { .. }
            | Self::MachinePauses { .. }
            | Self::NotSettled { .. }
            | Self::LimitUnchecked { .. }
            | Self::MembersBehind { .. }
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
            Self::FewRuns { runs: 1 } => "single run",
            Self::FewRuns { .. } => "two runs",
            Self::LoopDevice(_) => "loop device",
            Self::NotSettled { .. } => "not settled",
            Self::LimitExceeded { .. } => "limit exceeded",
            Self::LimitUnchecked { .. } => "limit unchecked",
            Self::MembersBehind { .. } => "members behind",
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
            Self::Short { seconds } if *seconds < 0.1 => {
                write!(f, "short: {:.1} ms do not show a steady state", seconds * 1e3)
            }
            Self::Short { seconds } => write!(f, "short: {seconds:.1} s do not show a steady state"),
            Self::FewRuns { runs: 1 } => f.write_str("single run: it does not show how far a second one would differ"),
            Self::FewRuns { .. } => f.write_str("two runs: an interval needs three"),
            Self::LoopDevice(device) => device.fmt(f),
            Self::NotSettled { seconds } => {
                write!(f, "not settled: the server still worked {seconds:.0} s after the last reply")
            }
            Self::LimitExceeded { detail } => write!(f, "limit exceeded: {detail}"),
            Self::LimitUnchecked { detail } => write!(f, "limit unchecked: {detail}"),
            Self::MembersBehind { detail } => write!(f, "members behind: {detail}"),
            Self::CacheNotAsDeclared { detail } => write!(f, "cache not as declared: {detail}"),
        }
    }
}

impl fmt::Display for LoopDeviceUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "loop device: the files lie in an image file ({}), so latencies and stalls are the loop device's as much as \
             the filesystem's; its kernel threads took ",
            self.device
        )?;
        match (self.cpu_seconds, self.shared_cpu_seconds) {
            (Some(own), Some(shared)) => write!(
                f,
                "{} of CPU, and {} more went to kernel threads that may have worked for it, too",
                duration(own),
                duration(shared)
            ),
            _ => f.write_str("CPU that cannot be seen from here"),
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
        // Percentiles without enough samples are not evidence.
        assert_eq!((found(None, Some(1.0)), found(Some(1e6), None)), (None, None));
    }

    #[test]
    fn a_run_below_a_second_is_short_whatever_ended_it() {
        let found = |seconds, ended| Finding::of_length(seconds, ended).map(|finding| finding.badge().text);
        assert_eq!(found(0.9, Ended::ByItself).as_deref(), Some("short"));
        assert_eq!(found(0.9, Ended::ByClock).as_deref(), Some("short"));
        assert_eq!((found(1.0, Ended::ByItself), found(5.0, Ended::ByClock)), (None, None));
        assert_eq!(found(4.9, Ended::ByClock).as_deref(), Some("short"));
        assert_eq!(Finding::Short { seconds: 0.02 }.to_string(), "short: 20.0 ms do not show a steady state");
    }

    #[test]
    fn fewer_runs_than_an_interval_needs_are_named() {
        let badges = [0, 1, 2, 3].map(|runs| Finding::of_runs(runs).map(|finding| finding.badge().text));
        assert_eq!(badges, [None, Some("single run".to_owned()), Some("two runs".to_owned()), None]);
    }
}
