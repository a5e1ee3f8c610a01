//! Whether a run's figures mean anything.

use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// From this share of its threads' time on, the generator may be what was measured.
const GENERATOR_BUSY_MAX: f64 = 0.9;
/// From this share of the machine's time on, generator and server take CPU from each other.
const MACHINE_BUSY_MAX: f64 = 0.8;
/// An open loop must reach this share of the offered rate.
const RATE_KEPT_MIN: f64 = 0.97;

/// What a run left behind for the judge.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Documents sent, or for reads and updates asked for.
    pub sent: u64,
    /// Documents that the server acknowledged; `None` where it was told not to.
    pub acknowledged: Option<u64>,
    /// Documents that must be in the collection afterwards.
    pub expected_count: u64,
    /// Documents that the server counts afterwards.
    pub counted: u64,
    /// Requests that failed.
    pub errors: u64,
    /// What the first of them said.
    pub first_error: Option<String>,
    /// From the starting signal to the last reply.
    pub elapsed: Duration,
    /// Generator threads.
    pub threads: usize,
    /// Their CPU time.
    pub generator_cpu: Duration,
    /// The server's CPU time; `None` where it is not on this machine.
    pub server_cpu: Option<Duration>,
    /// Processors that both share if the server is on this machine.
    pub cores: usize,
    /// The open loop's rate in requests per second.
    pub offered_rate: Option<f64>,
    /// The rate reached, in requests per second.
    pub achieved_rate: f64,
}

/// A reason not to trust a run's figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "finding", rename_all = "kebab-case")]
pub enum Finding {
    /// Requests failed.
    Errors {
        /// How many.
        count: u64,
        /// What the first said.
        first: String,
    },
    /// The server kept another number of documents than it said.
    CountsDiffer {
        /// Sent.
        sent: u64,
        /// Acknowledged.
        acknowledged: Option<u64>,
        /// Expected in the collection.
        expected: u64,
        /// Found there.
        counted: u64,
    },
    /// The generator had no time to spare: it, not the server, may have set the pace.
    GeneratorBusy {
        /// CPU time over the threads' time, 0 to 1.
        share: f64,
    },
    /// On a busy machine the generator took more CPU than the server that it measures. On an idle one the same is
    /// harmless: waking up for one request at a time costs more than the request.
    GeneratorDearer {
        /// The generator's CPU seconds.
        generator_seconds: f64,
        /// The server's CPU seconds.
        server_seconds: f64,
    },
    /// The server did not keep up with the open loop: latencies grow with the run's length.
    RateMissed {
        /// Requests per second asked for.
        offered: f64,
        /// Requests per second reached.
        achieved: f64,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Errors { count, first } => write!(f, "{count} errors, the first: {first}"),
            Self::CountsDiffer { sent, acknowledged, expected, counted } => {
                let acknowledged = acknowledged.map_or("none".into(), |count| count.to_string());
                write!(f, "counts differ: {sent} sent, {acknowledged} acknowledged, ")?;
                write!(f, "{expected} expected and {counted} found in the collection")
            }
            Self::GeneratorBusy { share } => {
                write!(f, "generator-bound: its threads were busy for {:.0} % of the run", share * 100.0)
            }
            Self::GeneratorDearer { generator_seconds, server_seconds } => {
                write!(f, "generator-bound: it took {generator_seconds:.2} s of CPU, the server {server_seconds:.2} s")
            }
            Self::RateMissed { offered, achieved } => {
                write!(f, "rate missed: {offered:.0} requests/s offered, {achieved:.0} achieved")
            }
        }
    }
}

/// Everything that speaks against the figures; nothing means valid.
pub fn judge(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = Vec::new();
    if evidence.errors > 0 {
        let first = evidence.first_error.clone().unwrap_or_default();
        findings.push(Finding::Errors { count: evidence.errors, first });
    }
    let unacknowledged = evidence.acknowledged.is_some_and(|count| count != evidence.sent);
    if unacknowledged || evidence.counted != evidence.expected_count {
        findings.push(Finding::CountsDiffer {
            sent: evidence.sent,
            acknowledged: evidence.acknowledged,
            expected: evidence.expected_count,
            counted: evidence.counted,
        });
    }
    let threads_seconds = evidence.elapsed.as_secs_f64() * evidence.threads as f64;
    let share = evidence.generator_cpu.as_secs_f64() / threads_seconds.max(f64::MIN_POSITIVE);
    if share > GENERATOR_BUSY_MAX {
        findings.push(Finding::GeneratorBusy { share });
    }
    findings.extend(generator_dearer(evidence));
    if let Some(offered) = evidence.offered_rate.filter(|&offered| evidence.achieved_rate < offered * RATE_KEPT_MIN) {
        findings.push(Finding::RateMissed { offered, achieved: evidence.achieved_rate });
    }
    findings
}

fn generator_dearer(evidence: &Evidence) -> Option<Finding> {
    let server_seconds = evidence.server_cpu?.as_secs_f64();
    let generator_seconds = evidence.generator_cpu.as_secs_f64();
    let machine_seconds = evidence.elapsed.as_secs_f64() * evidence.cores as f64;
    let is_busy = server_seconds + generator_seconds > machine_seconds * MACHINE_BUSY_MAX;
    (is_busy && generator_seconds > server_seconds)
        .then_some(Finding::GeneratorDearer { generator_seconds, server_seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Evidence {
        Evidence {
            sent: 100,
            acknowledged: Some(100),
            expected_count: 100,
            counted: 100,
            errors: 0,
            first_error: None,
            elapsed: Duration::from_secs(10),
            threads: 2,
            generator_cpu: Duration::from_secs(3),
            server_cpu: Some(Duration::from_secs(9)),
            cores: 2,
            offered_rate: Some(10.0),
            achieved_rate: 10.0,
        }
    }

    fn only(evidence: &Evidence) -> String {
        let findings = judge(evidence);
        assert_eq!(findings.len(), 1, "{findings:?}");
        findings[0].to_string()
    }

    #[test]
    fn nothing_speaks_against_a_good_run() {
        assert_eq!(judge(&good()), []);
        assert_eq!(judge(&Evidence { acknowledged: None, server_cpu: None, offered_rate: None, ..good() }), []);
    }

    #[test]
    fn each_flaw_is_found_and_named() {
        let first_error = Some("E11000".to_owned());
        assert_eq!(only(&Evidence { errors: 2, first_error, ..good() }), "2 errors, the first: E11000");
        assert!(only(&Evidence { counted: 99, ..good() }).contains("100 expected and 99 found"));
        assert!(only(&Evidence { acknowledged: Some(98), ..good() }).contains("98 acknowledged"));
        let busy = Evidence { generator_cpu: Duration::from_millis(18_100), server_cpu: None, ..good() };
        assert!(only(&busy).contains("busy for 90 %"), "{}", only(&busy));
        let dearer = Evidence { generator_cpu: Duration::from_secs(10), ..good() };
        assert!(only(&dearer).contains("it took 10.00 s of CPU, the server 9.00 s"));
        assert_eq!(judge(&Evidence { server_cpu: Some(Duration::from_secs(2)), ..good() }), [], "the machine was idle");
        assert!(only(&Evidence { achieved_rate: 9.6, ..good() }).contains("rate missed"));
    }
}
