//! Judges whether a run's figures mean anything.

use bunko_host::MachineCpu;
use bunko_report::result::{Ended, Finding, Interval, MachinePauses};
use bunko_statistics::{LatencySummary, Steadiness};
use std::time::Duration;

/// Busy share of its threads' time above which the generator may be the bottleneck.
const GENERATOR_BUSY_MAX: f64 = 0.9;
/// Busy share of the machine's time above which generator and server take CPU from each other.
const MACHINE_BUSY_MAX: f64 = 0.8;
/// Shortest run that tells how busy the generator was.
const BUSY_SECONDS_MIN: f64 = 0.2;
/// Minimum CPU time of the generator, in seconds, that can count as more than the server's.
const CPU_SECONDS_MIN: f64 = 0.2;
/// Share of the run for which a quota or a debugger may hold the generator back.
const HELD_BACK_MAX: f64 = 0.05;

/// Measurements of a run that the judge uses.
pub(crate) struct Evidence<'a> {
    /// Requests that failed.
    pub errors: u64,
    /// Message of the first error.
    pub first_error: Option<String>,
    /// Time from the starting signal to the last reply.
    pub elapsed: Duration,
    /// Generator threads.
    pub threads: usize,
    /// CPU time of the generator threads.
    pub generator_cpu: Duration,
    /// Time in which the generator threads had nothing to do.
    pub generator_waited: Duration,
    /// Time in which the generator threads could have run but no processor was free.
    pub generator_queued: Duration,
    /// Time in which a quota kept this process from running.
    pub throttled: Duration,
    /// The server's CPU time; `None` if it is not on this machine.
    pub server_cpu: Option<Duration>,
    /// CPU time of all processors of this machine.
    pub machine: Option<MachineCpu>,
    /// The open loop's rate in requests per second.
    pub offered_rate: Option<f64>,
    /// The rate reached, in requests per second.
    pub achieved_rate: f64,
    /// The run second by second.
    pub intervals: &'a [Interval],
    /// Latencies of all requests.
    pub latency: &'a LatencySummary,
    /// Pauses of this machine that sleeping threads noticed; `None` if there were no such threads.
    pub pauses: Option<&'a MachinePauses>,
    /// Whether the run ended with its work and not by the clock.
    pub has_natural_end: bool,
}

/// All findings against the figures; if there are none, they are valid.
pub(crate) fn judge(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if evidence.errors > 0 {
        let first = evidence.first_error.clone().unwrap_or_default();
        findings.push(Finding::Errors { count: evidence.errors, first });
    }
    findings.extend(generator_bound(evidence).map(|detail| Finding::GeneratorBound { detail }));
    findings.extend(evidence.offered_rate.and_then(|offered| Finding::of_rate(offered, evidence.achieved_rate)));
    findings.extend(not_steady(evidence));
    findings.extend(evidence.pauses.and_then(|pauses| Finding::of_pauses(&pauses.lateness, evidence.latency)));
    findings
}

fn generator_bound(evidence: &Evidence<'_>) -> Option<String> {
    if evidence.elapsed.as_secs_f64() < BUSY_SECONDS_MIN {
        return None;
    }
    let threads_seconds = (evidence.elapsed.as_secs_f64() * evidence.threads as f64).max(f64::MIN_POSITIVE);
    let cpu_seconds = evidence.generator_cpu.as_secs_f64();
    if cpu_seconds / threads_seconds > GENERATOR_BUSY_MAX {
        return Some(format!("its threads were busy for {:.0} % of the run", cpu_seconds / threads_seconds * 100.0));
    }
    let throttled = evidence.throttled.as_secs_f64() / evidence.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    if throttled > HELD_BACK_MAX {
        return Some(format!("a CPU quota stopped it for {:.0} % of the run", throttled * 100.0));
    }
    let machine_busy = machine_busy(evidence);
    // A thread that neither ran nor waited, for a reply or for a processor, was stopped from outside.
    let accounted = evidence.generator_cpu + evidence.generator_waited + evidence.generator_queued;
    let held_back = (threads_seconds - accounted.as_secs_f64()) / threads_seconds;
    if held_back > HELD_BACK_MAX {
        return Some(format!("it was kept from running for {:.0} % of the run", held_back * 100.0));
    }
    // On a busy machine, a generator that uses more CPU than the server takes it from the server. On an idle machine
    // that is harmless: waking up for one request at a time costs more than the request.
    let server_seconds = evidence.server_cpu?.as_secs_f64();
    let is_busy = machine_busy.is_none_or(|busy| busy > MACHINE_BUSY_MAX);
    (is_busy && cpu_seconds > server_seconds.max(CPU_SECONDS_MIN))
        .then(|| format!("it took {cpu_seconds:.2} s of CPU on a busy machine, the server {server_seconds:.2} s"))
}

fn machine_busy(evidence: &Evidence<'_>) -> Option<f64> {
    let machine = evidence.machine?;
    let total = (machine.busy + machine.idle).as_secs_f64();
    (total > 0.0).then(|| machine.busy.as_secs_f64() / total)
}

/// In a closed loop the throughput must not drift, in an open one the latency.
fn not_steady(evidence: &Evidence<'_>) -> Option<Finding> {
    let whole = evidence.intervals.iter().filter(|interval| interval.seconds >= 0.999);
    let (what, series): (_, Vec<f64>) = match evidence.offered_rate {
        None => ("requests/s", whole.map(|interval| interval.requests as f64).collect()),
        Some(_) => ("median latency in us", whole.filter_map(|interval| interval.latency.p50_us).collect()),
    };
    match Steadiness::of(&series) {
        Steadiness::Drifting { from, to } => {
            Some(Finding::NotSteady { detail: format!("{what} went from {from:.0} to {to:.0}") })
        }
        Steadiness::TooShort => {
            let ended = if evidence.has_natural_end { Ended::ByItself } else { Ended::ByClock };
            Finding::of_length(evidence.elapsed.as_secs_f64(), ended)
        }
        Steadiness::Steady => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_report::result::SleepPriority;
    use bunko_statistics::LatencyHistogram;

    fn intervals(requests: impl Iterator<Item = u64>) -> Vec<Interval> {
        let interval = |(second, requests): (usize, u64)| Interval {
            at_seconds: second as f64,
            seconds: 1.0,
            requests,
            documents: requests,
            errors: 0,
            latency: LatencyHistogram::default().summary(),
            histogram: None,
        };
        requests.enumerate().map(interval).collect()
    }

    /// Ten thousand equal times.
    fn times(us: u64) -> LatencyHistogram {
        let mut times = LatencyHistogram::default();
        (0..10_000).for_each(|_| times.record(Duration::from_micros(us)));
        times
    }

    fn pauses(us: u64) -> MachinePauses {
        MachinePauses::new(1, SleepPriority::RealTime, 10_000, 0.0, &times(us))
    }

    fn good<'e>(intervals: &'e [Interval], latency: &'e LatencySummary) -> Evidence<'e> {
        Evidence {
            errors: 0,
            first_error: None,
            elapsed: Duration::from_secs(10),
            threads: 1,
            generator_cpu: Duration::from_secs(4),
            generator_waited: Duration::from_secs(6),
            generator_queued: Duration::ZERO,
            throttled: Duration::ZERO,
            server_cpu: Some(Duration::from_secs(8)),
            machine: Some(MachineCpu {
                busy: Duration::from_secs(12),
                idle: Duration::from_secs(8),
                stolen: Duration::ZERO,
            }),
            offered_rate: None,
            achieved_rate: 1000.0,
            intervals,
            latency,
            pauses: None,
            has_natural_end: false,
        }
    }

    fn found(change: impl FnOnce(&mut Evidence<'_>)) -> Vec<String> {
        let steady = intervals((0..10).map(|_| 1000));
        let latency = times(1_000).summary();
        let mut evidence = good(&steady, &latency);
        change(&mut evidence);
        judge(&evidence).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_good_run_is_valid() {
        assert_eq!(found(|_| {}), Vec::<String>::new());
    }

    #[test]
    fn each_flaw_is_found() {
        let one = |change: fn(&mut Evidence<'_>), expected: &str| {
            let found = found(change);
            assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
        };
        one(|evidence| evidence.errors = 2, "2 errors");
        one(|evidence| evidence.generator_cpu = Duration::from_millis(9_500), "busy for 95 %");
        one(|evidence| evidence.throttled = Duration::from_secs(9), "quota stopped it for 90 %");
        one(|evidence| evidence.generator_waited = Duration::from_secs(1), "kept from running for 50 %");
        one(|evidence| evidence.offered_rate = Some(1050.0), "1050 requests/s offered");
        one(
            |evidence| {
                evidence.machine = None;
                evidence.server_cpu = Some(Duration::from_secs(3));
            },
            "4.00 s of CPU on a busy machine",
        );
    }

    #[test]
    fn pauses_that_explain_the_slow_requests_are_named() {
        let (steady, latency) = (intervals((0..10).map(|_| 1000)), times(1_000).summary());
        let judged = |us| judge(&Evidence { pauses: Some(&pauses(us)), ..good(&steady, &latency) });
        assert_eq!(judged(450), []);
        let findings = judged(600);
        let [Finding::MachinePauses { pause_us, latency_us }] = findings[..] else { panic!("{findings:?}") };
        assert!((590.0..610.0).contains(&pause_us) && (990.0..1010.0).contains(&latency_us), "{findings:?}");
    }

    #[test]
    fn a_drift_is_found_and_a_run_too_short_is_named() {
        let latency = times(1_000).summary();
        let drifting = intervals((0..12).map(|second| 1000 - second * 50));
        assert!(judge(&good(&drifting, &latency)).iter().any(|finding| matches!(finding, Finding::NotSteady { .. })));
        let short = intervals([1000, 1000].into_iter());
        let mut evidence = good(&short, &latency);
        (evidence.elapsed, evidence.generator_cpu) = (Duration::from_secs(2), Duration::from_secs(1));
        evidence.generator_waited = Duration::from_secs(1);
        assert!(judge(&evidence).iter().any(|finding| matches!(finding, Finding::Short { .. })));
        evidence.has_natural_end = true;
        assert!(judge(&evidence).is_empty());
        // Work that ends in less than a second shows no steady state either.
        evidence.elapsed = Duration::from_millis(900);
        (evidence.generator_cpu, evidence.generator_waited) = (Duration::ZERO, Duration::from_millis(900));
        assert_eq!(judge(&evidence), [Finding::Short { seconds: 0.9 }]);
    }
}
