//! Every built-in scenario, small, on a server that the lab starts: each runs to its end, with every file written,
//! every step measured and every count verified. Nothing is asserted about speed: this is a debug build, perhaps on a
//! busy machine.

use crate::lab::{Lab, REPORT};
use bunko_bench::Report;
use bunko_bench::scenario::{BUILTIN, Limits, LoadSettings, Role, Scenario, ScenarioSource};
use bunko_report::result::{Completion, Finding, Measurement, Outcome};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Scenarios that run at the same time.
const RUNS_AT_ONCE: usize = 3;

/// Arguments that make a scenario small.
fn small(scenario: &Scenario) -> Vec<String> {
    let mut arguments: Vec<String> =
        [scenario.name.as_str(), "--output", REPORT, "--repetitions", "1"].map(Into::into).into();
    let mut set = |change: String| arguments.extend(["--set".to_owned(), change]);
    for axis in &scenario.sweep {
        if axis.0.contains_key("dataset.document-bytes") {
            set("dataset.document-bytes=400,100KB".to_owned());
        }
        // One value of each restore setting is enough: only compressions run different code.
        for (setting, values) in axis.0.iter().filter(|(setting, _)| setting.starts_with("phase.restore.")) {
            let last = values.as_array().and_then(|values| values.last()).expect("a list");
            set(format!("{setting}={last}"));
        }
    }
    if sets(&scenario.load, "duration") {
        set("load.duration=300ms".to_owned());
    }
    if sets(&scenario.load, "warm-up") {
        set("load.warm-up=30ms".to_owned());
    }
    for phase in &scenario.phase {
        if sets(&phase.load, "duration") {
            set(format!("phase.{}.load.duration=300ms", phase.name));
        }
        // The limits are for sizes and times far above these.
        if phase.limits != Limits::default() {
            set(format!("phase.{}.limits={{}}", phase.name));
        }
    }
    if scenario.allocation.is_some() {
        set("allocation.sizes=[4096, '1MiB']".to_owned());
    }
    // `--scale` is refused where no phase loads documents.
    if scenario.phase.iter().any(|phase| phase.operation.name() == "load") {
        arguments.extend(["--scale".to_owned(), "500KB".to_owned()]);
    }
    arguments
}

fn sets(load: &LoadSettings, setting: &str) -> bool {
    load.names().iter().any(|name| name == setting)
}

/// Findings that a run of 300 ms on a busy machine may have.
fn is_about_time(finding: &Finding) -> bool {
    matches!(
        finding,
        Finding::Short { .. }
            | Finding::NotSteady { .. }
            | Finding::GeneratorBound { .. }
            | Finding::RateNotKept { .. }
            | Finding::NotSettled { .. }
            | Finding::LoopDevice(_)
    )
}

fn check_measurement(place: &str, measurement: &Measurement) {
    assert!(measurement.requests > 0 && measurement.documents > 0, "{place} did nothing");
    assert_eq!((measurement.errors, measurement.latency.samples), (0, measurement.requests), "{place}");
    assert!(measurement.verified_documents > 0, "{place}: nothing was read back");
    let flaws: Vec<_> = measurement.findings.iter().filter(|finding| !is_about_time(finding)).collect();
    assert!(flaws.is_empty(), "{place}: {flaws:?}");
    let in_intervals: u64 = measurement.intervals.iter().map(|interval| interval.requests).sum();
    assert_eq!(in_intervals, measurement.requests, "{place}: seconds add up");
}

fn check_report(report: &Report, scenario: &Scenario) {
    let name = &scenario.name;
    assert_eq!((&report.scenario.name, &report.completion), (name, &Completion::Complete));
    for phase in scenario.phase.iter().filter(|phase| phase.role == Role::Measure) {
        assert!(report.steps.iter().any(|step| step.phase == phase.name), "{name}: no step of phase {}", phase.name);
    }
    for step in &report.steps {
        let place = format!("{name}, {:?} {} x{}", step.variant, step.phase, step.connections);
        assert_eq!(step.runs.len(), 1, "{place}");
        let settles = scenario.phase.iter().any(|phase| phase.name == step.phase && phase.settle.is_some());
        let settled = step.measurements().next().and_then(|run| run.settling);
        assert_eq!(settled.is_some(), settles, "{place}: {settled:?}");
        match &step.runs[0].outcome {
            Outcome::Measured(measurement) => check_measurement(&place, measurement),
            Outcome::Skipped { reason } => panic!("{place} was skipped: {reason}"),
        }
    }
    match &scenario.allocation {
        Some(settings) => {
            assert_eq!(report.allocations.len(), 2 * settings.methods.len(), "{name}: two sizes each");
        }
        None => assert!(report.allocations.is_empty(), "{name}"),
    }
}

#[test]
fn every_built_in_scenario_runs_to_the_end() {
    // A run mostly waits: for its duration, for a server to start, for the server to settle.
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..RUNS_AT_ONCE {
            scope.spawn(|| {
                while let Some(builtin) = BUILTIN.get(next.fetch_add(1, Ordering::Relaxed)) {
                    runs_to_the_end(builtin.name);
                }
            });
        }
    });
}

fn runs_to_the_end(name: &str) {
    let scenario = ScenarioSource::builtin(name).and_then(|source| source.scenario()).expect("checked");
    let arguments = small(&scenario);
    let lab = Lab::new();
    let done = lab.bench(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    done.assert_ended();
    let report = lab.report(REPORT);
    check_report(&report, &scenario);
    let csv = std::fs::read_to_string(lab.path(REPORT).join("runs.csv")).expect("there");
    assert_eq!(csv.lines().count(), 1 + report.steps.len(), "{name}: a line for each run");
    assert!(done.stdout.starts_with("verdict: valid") || done.code == Some(2), "{}", done.stdout);
}

#[test]
fn every_built_in_scenario_is_listed_and_shown() {
    let lab = Lab::new();
    let listed = lab.bench(&["list"]).stdout;
    for builtin in BUILTIN {
        assert!(listed.contains(builtin.name) && listed.contains(builtin.about()), "{listed}");
        let shown = lab.bench(&["show", builtin.name]);
        assert_eq!((shown.code, shown.stdout.as_str()), (Some(0), builtin.text));
    }
    assert_eq!(
        lab.bench(&["show", "nothing"]).refusal(),
        "bunko: nothing: there is no such scenario; 'bunko bench list' shows them"
    );
}
