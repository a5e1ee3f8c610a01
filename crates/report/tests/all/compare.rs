//! Comparisons: the scripts in `tests/scripts/compare`, and how often chance passes for a difference.
//!
//! ```text
//! compare
//! A insert 10x1 documents/s=990,1000,1010 p99=200,210,190
//! B insert 10x1 documents/s=880,900,890 p99=230,220,225
//! ----
//! B is slower in ...
//! ```
//! `compare` takes two reports, `targets` two targets of one. A line is the side, then a step with the figures of its
//! repetitions, or one of `durability TEXT`, `server NAME=VALUE` (a setting of it), `transport NAMES` (`tcp`, `unix`,
//! several, or none), `interrupted`, `version TEXT` (of the lab), `setting NAME = VALUE` (of the scenario), and for a
//! step `skipped REASON`, or findings: `errors=COUNT`, `pauses=US`. `REWRITE=1 cargo test` writes the answers; read them.

use crate::fixture;
use crate::steps::{clear_figures, transport};
use bunko_report::Report;
use bunko_report::compare::{Comparison, Role, Verdict, compare, compare_targets};
use bunko_report::result::{Completion, Finding, Measurement, Outcome, Run, Step};
use bunko_testkit::random::Random;
use std::collections::BTreeMap;

#[test]
fn scripts() {
    datadriven::walk("tests/scripts/compare", |file| {
        file.run(|case| {
            let (a, b) = (side(&case.input, "A"), side(&case.input, "B"));
            match case.directive.as_str() {
                "compare" => match compare(&a, &b) {
                    Ok(comparison) => comparison.to_string(),
                    Err(error) => format!("error: {error}\n"),
                },
                "targets" => compare_targets(&one_report(a, b), 0, 1).to_string(),
                other => panic!("no directive {other}"),
            }
        });
    });
}

/// A report without steps, and a step without figures.
fn empty() -> (Report, Step) {
    let mut report = fixture::plain();
    report.steps[0].runs.truncate(1);
    report.scenario.resolved = "name = 'insert'\n".into();
    let mut step = report.steps.remove(0);
    clear_figures(fixture::measurement(&mut step));
    (report, step)
}

/// The lines of one side as a report.
fn side(input: &str, label: &str) -> Report {
    let (mut report, template) = empty();
    for line in input.lines() {
        let Some(line) = line.strip_prefix(label).and_then(|line| line.strip_prefix(' ')) else { continue };
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "durability" => report.targets[0].durability = rest.into(),
            "server" => {
                let (name, value) = rest.split_once('=').expect("NAME=VALUE");
                report.targets[0].settings.push((name.into(), value.into()));
            }
            "transport" => report.targets[0].transports = rest.split_whitespace().map(transport).collect(),
            "interrupted" => report.completion = Completion::Interrupted,
            "version" => report.lab_version = rest.into(),
            "setting" => {
                report.scenario.resolved.extend([rest, "\n"]);
                report.scenario.hash = format!("hash of {}", report.scenario.resolved);
            }
            _ => report.steps.push(step(&template, line)),
        }
    }
    report
}

/// `insert 10x1 documents/s=1,2,3 p99=4,5,6`
fn step(template: &Step, line: &str) -> Step {
    let mut words = line.split(' ');
    let mut step = template.clone();
    step.phase = words.next().unwrap().into();
    let (connections, in_flight) = words.next().unwrap().split_once('x').expect("CONNECTIONSxIN_FLIGHT");
    (step.connections, step.in_flight) = (connections.parse().unwrap(), in_flight.parse().unwrap());
    let mut figures: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    while let Some(word) = words.next() {
        if word == "skipped" {
            let reason = words.by_ref().collect::<Vec<_>>().join(" ");
            step.runs[0].outcome = Outcome::Skipped { reason };
            return step;
        }
        let (name, values) = word.split_once('=').expect("NAME=VALUE,...");
        figures.insert(name, values.split(',').map(|value| value.parse().unwrap()).collect());
    }
    step.runs = repeat(fixture::measurement(&mut step), &figures);
    step
}

/// One run per figure.
fn repeat(template: &Measurement, figures: &BTreeMap<&str, Vec<f64>>) -> Vec<Run> {
    let repetitions = figures.values().map(Vec::len).max().expect("a step has figures");
    let run = |index: usize| {
        let mut measurement = template.clone();
        for (&name, values) in figures {
            let Some(&value) = values.get(index) else { continue };
            match name {
                "documents/s" => measurement.documents_per_second = value,
                "p50" => measurement.latency.p50_us = Some(value),
                "p99" => measurement.latency.p99_us = Some(value),
                "p99.9" => measurement.latency.p999_us = Some(value),
                "server" => measurement.server_cpu_seconds = Some(value * measurement.documents as f64 / 1e6),
                "generator" => measurement.generator_cpu_seconds = value * measurement.requests as f64 / 1e6,
                "errors" => {
                    let first = "E11000 duplicate key".to_owned();
                    measurement.findings.push(Finding::Errors { count: value as u64, first });
                }
                "pauses" => {
                    let (pause_us, latency_us) = (value, measurement.latency.p999_us.unwrap_or_default());
                    measurement.findings.push(Finding::MachinePauses { pause_us, latency_us });
                }
                other => panic!("no metric {other}"),
            }
        }
        Run { repetition: index as u32 + 1, started_at_ms: 0, outcome: Outcome::Measured(Box::new(measurement)) }
    };
    (0..repetitions).map(run).collect()
}

/// Both sides as two targets of one report.
fn one_report(mut a: Report, b: Report) -> Report {
    a.targets[0].label = "lsm".into();
    a.targets.extend(b.targets);
    a.targets[1].label = "memory".into();
    a.steps.extend(b.steps.into_iter().map(|step| Step { target: 1, ..step }));
    a
}

/// Noise as a shared machine makes it: 3 % of the one kind, and now and then a repetition that is much slower.
struct Machine(Random);

impl Machine {
    fn slowdown(&mut self) -> f64 {
        let normal: f64 = (0..12).map(|_| self.0.fraction()).sum::<f64>() - 6.0;
        let disturbed = if self.0.fraction() < 0.03 { 0.2 * self.0.fraction() } else { 0.0 };
        (0.03 * normal + disturbed).exp()
    }

    /// Steps of `repetitions` runs each, of a server that takes `cost` times as long.
    fn run(&mut self, steps: usize, repetitions: usize, cost: f64) -> Report {
        let (mut report, template) = empty();
        for connections in 1..=steps {
            let mut step = Step { connections, ..template.clone() };
            let slowdowns: Vec<f64> = (0..repetitions).map(|_| cost * self.slowdown()).collect();
            let rates = slowdowns.iter().map(|slowdown| 1e4 / slowdown).collect();
            // The tail has noise of its own.
            let p99 = slowdowns.iter().map(|slowdown| 500.0 * slowdown * self.slowdown()).collect();
            let figures = BTreeMap::from([("documents/s", rates), ("p99", p99)]);
            step.runs = repeat(fixture::measurement(&mut step), &figures);
            report.steps.push(step);
        }
        report
    }
}

fn finds_a_difference(comparison: &Comparison) -> bool {
    let metrics = comparison.steps.iter().flat_map(|step| &step.metrics);
    let mut headlines = metrics.filter(|metric| metric.role == Role::Headline);
    headlines.any(|metric| matches!(metric.verdict, Verdict::Better | Verdict::Worse))
}

#[test]
fn json_has_what_the_table_has() {
    let a = side("A insert 1x1 documents/s=1000,1010,990 generator=2.00,2.01,1.99", "A");
    let b = side("B insert 1x1 documents/s=1500,1510,1490 generator=2.00,2.01,1.99", "B");
    let json = serde_json::to_value(compare(&a, &b).unwrap()).unwrap();
    assert_eq!(json["summary"], "B is faster in insert, 1 x 1 (documents/s 1.50 ± 0.03x)");
    assert_eq!(json["pairing"], "independent");
    assert_eq!(json["drift"], 1.0);
    let metrics = &json["steps"][0]["metrics"];
    assert_eq!(metrics[0]["a"]["median"], 1000.0);
    let words = ["metric", "role", "direction", "verdict"].map(|field| metrics[0][field].as_str().unwrap().to_owned());
    assert_eq!(words, ["documents/s", "headline", "higher-is-better", "better"]);
    assert_eq!(metrics[1]["role"], "control");
}

#[test]
fn two_runs_of_one_build_do_not_differ() {
    let mut machine = Machine(Random(1));
    let comparisons = 60;
    let false_alarms = (0..comparisons)
        .map(|_| compare(&machine.run(20, 5, 1.0), &machine.run(20, 5, 1.0)).unwrap())
        .filter(finds_a_difference)
        .count();
    assert!(false_alarms * 10 <= comparisons, "{false_alarms} of {comparisons}");
}

#[test]
fn a_tenth_slower_is_found() {
    let mut machine = Machine(Random(2));
    let comparisons = 15;
    let mut found = 0;
    for _ in 0..comparisons {
        let comparison = compare(&machine.run(20, 5, 1.0), &machine.run(20, 5, 1.1)).unwrap();
        let throughput = comparison.steps.iter().map(|step| &step.metrics[0]);
        found += throughput.filter(|metric| metric.verdict == Verdict::Worse).count();
    }
    // 5 of 20 steps could be missed by a machine with 3 % noise and worse.
    assert!(found >= comparisons * 15, "{found} of {}", comparisons * 20);
}
