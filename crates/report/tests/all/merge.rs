//! Merging the reports of several generators.

use crate::fixture;
use bunko_report::Report;
use bunko_report::merge::merge;
use bunko_report::result::{
    Completion, Finding, Interval, MachinePauses, Measurement, OperationPart, Outcome, Run, ServerSample,
    SleepPriority, Transport, WorkerShare,
};
use bunko_statistics::LatencyHistogram;
use proptest::prelude::*;
use std::time::Duration;

const WORKERS: usize = 4;
/// The run's starting signal by the server's clock.
const START_MS: u64 = 1_763_737_200_000;

/// A request: the second in which it was answered and how long it took.
type Sample = (u32, Duration);

/// The measurement of a generator with these samples, in runs of `seconds`.
fn measure(samples: &[Sample], seconds: u32) -> Measurement {
    let mut report = fixture::plain();
    report.steps[0].runs.truncate(1);
    let template = fixture::measurement(&mut report.steps[0]).clone();
    let histogram_of = |samples: &mut dyn Iterator<Item = &Sample>| {
        let mut histogram = LatencyHistogram::default();
        samples.for_each(|(_, latency)| histogram.record(*latency));
        histogram
    };
    let interval = |second: u32| {
        let histogram = histogram_of(&mut samples.iter().filter(|(at, _)| *at == second));
        Interval {
            at_seconds: f64::from(second),
            seconds: 1.0,
            requests: histogram.len(),
            documents: histogram.len(),
            errors: 0,
            latency: histogram.summary(),
            histogram: Some(histogram.encode()),
        }
    };
    let whole = histogram_of(&mut samples.iter());
    let requests = whole.len();
    Measurement {
        requests,
        documents: requests,
        document_bytes: Some(requests * 1_000),
        elapsed_seconds: f64::from(seconds),
        documents_per_second: requests as f64 / f64::from(seconds),
        achieved_rate: requests as f64 / f64::from(seconds),
        latency: whole.summary(),
        histogram: whole.encode(),
        intervals: (0..seconds).map(interval).collect(),
        server: Vec::new(),
        findings: Vec::new(),
        ..template
    }
}

/// A report of one step with one run.
fn report(measurement: Measurement) -> Report {
    let mut report = fixture::plain();
    report.steps[0].runs.truncate(1);
    let outcome = Outcome::Measured(Box::new(measurement));
    report.steps[0].runs = vec![Run { repetition: 1, started_at_ms: START_MS, outcome }];
    report
}

/// A worker's report. Its clock is ahead of the server's, and it starts late, both in milliseconds.
fn share(index: usize, clock_offset_ms: u32, late_ms: u32, measurement: Measurement) -> Report {
    let mut report = report(measurement);
    report.worker = Some(WorkerShare::Share {
        index: index as u32,
        count: WORKERS as u32,
        clock_offset_ms: f64::from(clock_offset_ms),
    });
    report.steps[0].runs[0].started_at_ms = START_MS + u64::from(clock_offset_ms) + u64::from(late_ms);
    report
}

/// Workers with trivial figures and equal clocks.
fn shares() -> Vec<Report> {
    let samples = [(0, Duration::from_micros(100)), (1, Duration::from_micros(200))];
    (0..WORKERS).map(|index| share(index, 10 * index as u32, 0, measure(&samples, 2))).collect()
}

fn figures(report: &mut Report) -> &mut Measurement {
    fixture::measurement(&mut report.steps[0])
}

fn decode(encoded: &str) -> LatencyHistogram {
    LatencyHistogram::decode(encoded).expect("a histogram")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Four generators that share the samples of one report as much, bucket by bucket and second by second.
    #[test]
    fn merged_shares_equal_one_generator(
        samples in prop::collection::vec((0_usize..WORKERS, 0_u32..3, 0_u64..5_000_000_000), 0..300),
        offsets_ms in prop::array::uniform4(0_u32..100_000),
    ) {
        let all: Vec<Sample> = samples.iter().map(|&(_, at, ns)| (at, Duration::from_nanos(ns))).collect();
        let mut alone = report(measure(&all, 3));
        let shares: Vec<Report> = (0..WORKERS)
            .map(|worker| {
                let own = samples.iter().filter(|sample| sample.0 == worker);
                let own: Vec<Sample> = own.map(|&(_, at, ns)| (at, Duration::from_nanos(ns))).collect();
                share(worker, offsets_ms[worker], 0, measure(&own, 3))
            })
            .collect();
        let mut merged = merge(&shares).unwrap();
        let (merged, alone) = (figures(&mut merged), figures(&mut alone));
        prop_assert!(decode(&merged.histogram) == decode(&alone.histogram));
        prop_assert_eq!(&merged.latency, &alone.latency);
        prop_assert_eq!(merged.requests, alone.requests);
        prop_assert_eq!(merged.documents_per_second, alone.documents_per_second);
        prop_assert_eq!(merged.intervals.len(), alone.intervals.len());
        for (of_merged, of_alone) in merged.intervals.iter().zip(&alone.intervals) {
            let histogram = |interval: &Interval| decode(interval.histogram.as_deref().unwrap());
            prop_assert!(histogram(of_merged) == histogram(of_alone));
            prop_assert_eq!((of_merged.at_seconds, of_merged.requests), (of_alone.at_seconds, of_alone.requests));
            prop_assert_eq!(&of_merged.latency, &of_alone.latency);
        }
    }
}

#[test]
fn work_of_generators_adds_up() {
    let mut shares = shares();
    // Reports may come in any order.
    shares.swap(0, 3);
    for share in &mut shares {
        figures(share).offered_rate = Some(1.0);
    }
    let mut merged = merge(&shares).unwrap();
    assert_eq!(merged.worker, Some(WorkerShare::Merged { count: 4 }));
    assert_eq!(merged.completion, Completion::Complete);
    assert_eq!(merged.steps[0].connections, 4, "each has a socket");
    assert_eq!(merged.steps[0].runs[0].started_at_ms, START_MS);
    assert_eq!(merged.machine.processor, "4 generators, each: Example CPU 2.4 GHz");
    let template = figures(&mut shares[0]).clone();
    let sum = figures(&mut merged);
    assert_eq!((sum.requests, sum.documents, sum.document_bytes), (8, 8, Some(8_000)));
    assert_eq!((sum.elapsed_seconds, sum.documents_per_second, sum.achieved_rate), (2.0, 4.0, 4.0));
    assert_eq!(sum.offered_rate, Some(4.0));
    assert_eq!(sum.generator_cpu_seconds, 4.0 * template.generator_cpu_seconds);
    assert_eq!(sum.generator_threads, 4);
    assert_eq!(sum.verified_documents, 4_000);
    assert_eq!(sum.server_cpu_seconds, template.server_cpu_seconds, "one server, seen four times");
    assert_eq!(sum.cache, template.cache);
    assert_eq!(sum.findings, []);
}

#[test]
fn seconds_are_aligned_to_the_earliest_start() {
    let samples = [(0, Duration::from_micros(100)), (1, Duration::from_micros(100)), (1, Duration::from_micros(100))];
    let late_ms = [0, 400, 600, 1_000];
    let shares: Vec<_> = (0..WORKERS).map(|i| share(i, 5_000, late_ms[i], measure(&samples, 2))).collect();
    let mut merged = merge(&shares).unwrap();
    let sum = figures(&mut merged);
    let seconds: Vec<_> = sum.intervals.iter().map(|second| (second.at_seconds, second.requests)).collect();
    assert_eq!(seconds, [(0.0, 2), (1.0, 2 + 2 + 1 + 1), (2.0, 2 + 2)]);
    assert_eq!(sum.elapsed_seconds, 3.0, "from the earliest start to the latest end");
    assert_eq!(sum.achieved_rate, 4.0);
}

#[test]
fn the_server_is_seen_by_the_worker_that_sees_most() {
    let mut shares = shares();
    let sample =
        |at_seconds: f64, cpu: f64| ServerSample { at_seconds, cpu_percent: Some(cpu), ..ServerSample::default() };
    for share in &mut shares {
        figures(share).server_cpu_seconds = None;
        figures(share).journal_syncs = None;
    }
    figures(&mut shares[1]).server = vec![sample(1.0, 50.0)];
    shares[2] = share(2, 0, 250, figures(&mut shares[2]).clone());
    figures(&mut shares[2]).server = vec![sample(1.0, 60.0), sample(2.0, 70.0)];
    figures(&mut shares[3]).journal_syncs = Some(9);
    let mut merged = merge(&shares).unwrap();
    let sum = figures(&mut merged);
    assert_eq!(sum.server, [sample(1.25, 60.0), sample(2.25, 70.0)]);
    assert_eq!((sum.server_cpu_seconds, sum.journal_syncs), (None, Some(9)));
}

/// A worker's pauses: ten thousand milliseconds with this delay.
fn pauses(late_us: u64) -> MachinePauses {
    let mut milliseconds = LatencyHistogram::default();
    (0..10_000).for_each(|_| milliseconds.record(Duration::from_micros(late_us)));
    MachinePauses::new(2, SleepPriority::RealTime, 5_000, 0.125, &milliseconds)
}

#[test]
fn pauses_of_all_machines_are_added_and_judged_anew() {
    let slow = vec![(0, Duration::from_micros(900)); 4_000];
    let mut shares: Vec<_> = (0..WORKERS).map(|index| share(index, 0, 0, measure(&slow, 1))).collect();
    for (share, late_us) in shares.iter_mut().zip([50, 50, 50, 600]) {
        figures(share).pauses = Some(pauses(late_us));
    }
    figures(&mut shares[0]).findings.push(Finding::MachinePauses { pause_us: 1.0, latency_us: 1.0 });
    figures(&mut shares[1]).pauses.as_mut().expect("just set").priority = SleepPriority::Ordinary;
    let mut merged = merge(&shares).unwrap();
    let sum = figures(&mut merged).pauses.clone().expect("all have some");
    assert_eq!((sum.threads, sum.wake_ups, sum.cpu_seconds), (8, 20_000, 0.5));
    assert_eq!(sum.priority, SleepPriority::Ordinary, "no better than the worst");
    assert_eq!(decode(&sum.histogram).summary(), sum.lateness);
    assert_eq!(sum.lateness.samples, 40_000);
    // A quarter of all milliseconds was late.
    let near = |us: Option<f64>, expected: f64| us.is_some_and(|us| (us / expected - 1.0).abs() < 0.01);
    assert!(near(sum.lateness.p50_us, 50.0) && near(sum.lateness.p999_us, 600.0), "{:?}", sum.lateness);
    let findings = figures(&mut merged).findings.clone();
    let [Finding::MachinePauses { pause_us, latency_us }] = findings[..] else { panic!("{findings:?}") };
    assert!(near(Some(pause_us), 600.0) && near(Some(latency_us), 900.0), "{pause_us} {latency_us}");

    // Only workers that measured pauses count.
    for share in &mut shares[1..] {
        figures(share).pauses = None;
    }
    let mut merged = merge(&shares).unwrap();
    assert_eq!(figures(&mut merged).pauses, Some(pauses(50)));
    assert_eq!(figures(&mut merged).findings, [], "what one said is not what the sum says");
    figures(&mut shares[0]).pauses = None;
    assert_eq!(figures(&mut merge(&shares).unwrap()).pauses, None);
}

#[test]
fn a_worker_beside_the_server_may_come_by_its_socket() {
    let mut shares = shares();
    for share in &mut shares {
        share.targets[0].local = false;
    }
    let near = &mut shares[2].targets[0];
    (near.local, near.transports) = (true, vec![Transport::Unix]);
    assert_eq!(merge(&shares).unwrap().targets[0].transports, [Transport::Tcp, Transport::Unix]);
}

#[test]
fn operations_of_a_mixed_phase_are_summed_one_by_one() {
    let part = |operation: &str, latencies_us: &[u64]| {
        let mut histogram = LatencyHistogram::default();
        for &us in latencies_us {
            histogram.record(Duration::from_micros(us));
        }
        OperationPart {
            operation: operation.to_owned(),
            requests: histogram.len(),
            latency: histogram.summary(),
            histogram: histogram.encode(),
        }
    };
    let mut shares = shares();
    figures(&mut shares[0]).parts = vec![part("find", &[10]), part("insert", &[50])];
    figures(&mut shares[3]).parts = vec![part("insert", &[60, 70]), part("find", &[20])];
    let mut merged = merge(&shares).unwrap();
    assert_eq!(figures(&mut merged).parts, [part("find", &[10, 20]), part("insert", &[50, 60, 70])]);
}

#[test]
fn findings_are_united_and_the_rate_is_judged_anew() {
    let mut shares = shares();
    for share in &mut shares {
        figures(share).offered_rate = Some(1.01);
        figures(share).findings.push(Finding::Short { seconds: 2.0 });
    }
    figures(&mut shares[0]).findings.push(Finding::RateNotKept { offered: 1.01, achieved: 0.5 });
    figures(&mut shares[1]).findings.push(Finding::Errors { count: 2, first: "a".into() });
    figures(&mut shares[2]).findings.push(Finding::Errors { count: 3, first: "b".into() });
    figures(&mut shares[3]).findings.push(Finding::GeneratorBound { detail: "busy".into() });
    let expected = vec![
        Finding::Short { seconds: 2.0 },
        Finding::Errors { count: 5, first: "a".into() },
        Finding::GeneratorBound { detail: "worker 3: busy".into() },
    ];
    assert_eq!(figures(&mut merge(&shares).unwrap()).findings, expected);
    figures(&mut shares[0]).offered_rate = Some(10.0);
    let findings = figures(&mut merge(&shares).unwrap()).findings.clone();
    let [.., Finding::RateNotKept { offered, achieved }] = findings[..] else { panic!("{findings:?}") };
    assert!((offered - 13.03).abs() < 1e-9 && achieved == 4.0, "{offered} {achieved}");
}

#[test]
fn an_interrupted_worker_shortens_the_whole() {
    let mut shares = shares();
    for share in &mut shares {
        let mut second = share.steps[0].clone();
        second.phase = "find".into();
        share.steps.push(second);
    }
    shares[2].steps.pop();
    assert_eq!(
        merge(&shares).unwrap_err().to_string(),
        "cannot merge: workers 0 and 2 did not run the same steps: step find, 1 x 1 is in worker 0 only"
    );
    shares[2].completion = Completion::Interrupted;
    let merged = merge(&shares).unwrap();
    assert_eq!((merged.steps.len(), merged.completion), (1, Completion::Interrupted));
    shares[3].completion = Completion::Failed { reason: "no route".into() };
    assert_eq!(merge(&shares).unwrap().completion, Completion::Failed { reason: "worker 3: no route".into() });
}

#[test]
fn a_run_that_one_worker_skipped_has_no_figures() {
    let mut shares = shares();
    shares[1].steps[0].runs[0].outcome = Outcome::Skipped { reason: "no text index".into() };
    let merged = merge(&shares).unwrap();
    let Outcome::Skipped { reason } = &merged.steps[0].runs[0].outcome else { panic!("it was measured") };
    assert_eq!(reason, "worker 1 skipped it: no text index");
}

#[test]
fn reports_of_different_runs_are_refused() {
    type Spoil = fn(&mut Vec<Report>);
    fn set_share(report: &mut Report, index: u32, count: u32, clock_offset_ms: f64) {
        report.worker = Some(WorkerShare::Share { index, count, clock_offset_ms });
    }
    let refusals: [(Spoil, &str); 15] = [
        (|shares| shares.clear(), "there is no report"),
        (|shares| shares[1].format = 9, "report 2 has format 9, this program reads 1"),
        (|shares| shares[1].worker = None, "report 2 is not one worker's share (--worker INDEX/COUNT)"),
        (
            |shares| shares[1].worker = Some(WorkerShare::Merged { count: 4 }),
            "report 2 is not one worker's share (--worker INDEX/COUNT)",
        ),
        (|shares| set_share(&mut shares[1], 1, 3, 0.0), "one report is a share of 4 workers, another of 3"),
        (|shares| set_share(&mut shares[1], 3, 4, 0.0), "there are two reports of worker 3"),
        (|shares| set_share(&mut shares[3], 4, 4, 0.0), "worker 4 is not one of 0..4"),
        (|shares| drop(shares.remove(1)), "the report of worker 1 (of 0..4) is missing"),
        (|shares| set_share(&mut shares[1], 1, 4, f64::NAN), "worker 1 could not compare its clock with the server's"),
        (
            |shares| set_share(&mut shares[3], 3, 4, -1_000.0),
            "insert, 1 x 1, repetition 1: worker 3 started 1.0 s after worker 0 by the server's clock, more than 1 s",
        ),
        (
            |shares| shares[2].scenario.hash = "other".into(),
            "workers 0 and 2 differ in the scenario's hash: \
             9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, other",
        ),
        (
            |shares| shares[2].targets[0].version = Some("8.0.1".into()),
            "workers 0 and 2 differ in their servers: lsm 8.0.0, lsm 8.0.1",
        ),
        (
            |shares| shares[2].targets[0].embedded = true,
            "worker 2 measured an embedded server of its own (bunko), not one that all share",
        ),
        (
            |shares| shares[2].steps[0].runs.clear(),
            "workers 0 and 2 did not run the same steps: repetition 1 of insert, 1 x 1 is in worker 0 only",
        ),
        (
            |shares| figures(&mut shares[2]).intervals[0].histogram = None,
            "insert, 1 x 1, repetition 1: histogram of worker 2: missing for second 0: merge the JSON reports, HTML \
             leaves it out",
        ),
    ];
    for (spoil, expected) in refusals {
        let mut shares = shares();
        spoil(&mut shares);
        assert_eq!(merge(&shares).unwrap_err().to_string(), format!("cannot merge: {expected}"));
    }
    let mut shares = shares();
    figures(&mut shares[1]).histogram = "garbage".into();
    let refusal = merge(&shares).unwrap_err().to_string();
    assert!(refusal.starts_with("cannot merge: insert, 1 x 1, repetition 1: histogram of worker 1: "), "{refusal}");
}
