//! Histories: the scripts in `tests/scripts/history`, and how often chance passes for a change.
//!
//! ```text
//! history
//! insert 10x1 documents/s 1000 1010 990 - 1005 995 900 890 910
//! insert 10x1 generator 2.0 2.0 2.1 - 2.0 2.0 2.0 2.0 2.0
//! from 6 version 0.2.0
//! ----
//! insert: worse since ...
//! ```
//! A step with a metric and its figure in each report, `-` for none; several figures with commas are repetitions. `from N`
//! (from 0) states a fact about that report and later ones: `version TEXT` (of the lab), `processor TEXT`,
//! `server VERSION`, `durability TEXT`, `transport unix`, `setting NAME = VALUE`. `only N` states a fact about that report
//! alone: one of these, or `errors`, `worker INDEX/COUNT`, `named NAME` (the scenario), `copied`. `REWRITE=1 cargo test`
//! writes the answers; read them.

use crate::fixture;
use crate::steps::{clear_figures, transport};
use bunko_report::Report;
use bunko_report::history::{Ending, history};
use bunko_report::result::{
    Completion, Finding, Measurement, Outcome, Run, Step, TargetRecord, Transport, WorkerShare,
};
use bunko_testkit::random::Random;
use std::path::PathBuf;

const DAY_MS: u64 = 86_400_000;

#[test]
fn scripts() {
    datadriven::walk("tests/scripts/history", |file| {
        file.run(|case| {
            assert_eq!(case.directive, "history", "no such directive");
            match history(&reports(&case.input)) {
                Ok(history) => format!("{history}ending: {:?}\n", history.ending),
                Err(error) => format!("error: {error}\n"),
            }
        });
    });
}

/// One report a day.
fn reports(input: &str) -> Vec<(PathBuf, Report)> {
    let template = without_figures();
    let mut reports: Vec<(PathBuf, Report)> = Vec::new();
    for line in input.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["from", from, what, value] => {
                let from: usize = from.parse().unwrap();
                reports[from..].iter_mut().for_each(|(_, report)| alter(report, what, value));
            }
            ["only", only, "copied"] => {
                let copy = reports[only.parse::<usize>().unwrap()].1.clone();
                reports.push(("copy/report.json".into(), copy));
            }
            ["only", only, what] => alter(&mut reports[only.parse::<usize>().unwrap()].1, what, ""),
            ["only", only, what, value] => alter(&mut reports[only.parse::<usize>().unwrap()].1, what, value),
            [phase, concurrency, metric, figures] => {
                for (index, figure) in figures.split(' ').enumerate() {
                    if reports.len() <= index {
                        reports.push((format!("{index:02}/report.json").into(), empty(index as u64)));
                    }
                    if figure != "-" {
                        set(&mut reports[index].1, &template, [phase, concurrency, metric], figure);
                    }
                }
            }
            _ => panic!("no line {line}"),
        }
    }
    // The history must not depend on the order in which it gets the reports.
    reports.reverse();
    reports
}

fn target() -> TargetRecord {
    TargetRecord {
        label: "bunko".to_owned(),
        address: "127.0.0.1:27017".to_owned(),
        transports: vec![Transport::Tcp],
        embedded: false,
        local: true,
        version: Some("8.0.0".to_owned()),
        storage_engine: Some("lsm".to_owned()),
        durability: "w: 1, j: false".to_owned(),
        settings: Vec::new(),
        data_directory: None,
        filesystem: None,
    }
}

/// A report without steps, of a run on that day.
fn empty(day: u64) -> Report {
    let mut report = fixture::nothing();
    report.completion = Completion::Complete;
    report.targets.push(target());
    "name = 'insert'\n".clone_into(&mut report.scenario.resolved);
    report.started_at_ms += day * DAY_MS;
    report.ended_at_ms += day * DAY_MS;
    report
}

fn alter(report: &mut Report, what: &str, value: &str) {
    match what {
        "version" => value.clone_into(&mut report.lab_version),
        "server" => report.targets[0].version = Some(value.to_owned()),
        "durability" => value.clone_into(&mut report.targets[0].durability),
        "transport" => report.targets[0].transports = vec![transport(value)],
        "processor" => value.clone_into(&mut report.machine.processor),
        "setting" => {
            report.scenario.resolved += value;
            report.scenario.resolved += "\n";
            report.scenario.hash = format!("hash of {}", report.scenario.resolved);
        }
        "named" => value.clone_into(&mut report.scenario.name),
        "worker" => {
            let (index, count) = value.split_once('/').unwrap();
            let (index, count) = (index.parse().unwrap(), count.parse().unwrap());
            report.worker = Some(WorkerShare::Share { index, count, clock_offset_ms: 0.0 });
        }
        "errors" => {
            for run in report.steps.iter_mut().flat_map(|step| &mut step.runs) {
                let Outcome::Measured(measurement) = &mut run.outcome else { panic!("skipped") };
                measurement.findings.push(Finding::Errors { count: 1, first: "E11000 duplicate key".to_owned() });
            }
        }
        other => panic!("no way to alter {other}"),
    }
}

/// Gives a step's runs a figure each.
fn set(report: &mut Report, template: &Step, [phase, concurrency, metric]: [&str; 3], figures: &str) {
    let (connections, in_flight) = concurrency.split_once('x').expect("CONNECTIONSxIN_FLIGHT");
    let (connections, in_flight) = (connections.parse().unwrap(), in_flight.parse().unwrap());
    let is_same =
        |step: &Step| (step.phase.as_str(), step.connections, step.in_flight) == (phase, connections, in_flight);
    let index = report.steps.iter().position(is_same).unwrap_or_else(|| {
        let step = Step { phase: phase.to_owned(), connections, in_flight, ..template.clone() };
        report.steps.push(step);
        report.steps.len() - 1
    });
    let step = &mut report.steps[index];
    for (repetition, figure) in figures.split(',').enumerate() {
        if step.runs.len() <= repetition {
            step.runs.push(Run { repetition: repetition as u32 + 1, ..template.runs[0].clone() });
        }
        let Outcome::Measured(measurement) = &mut step.runs[repetition].outcome else { panic!("skipped") };
        set_figure(measurement, metric, figure.parse().unwrap());
    }
}

fn without_figures() -> Step {
    let mut step = fixture::plain().steps.remove(0);
    step.runs.truncate(1);
    clear_figures(fixture::measurement(&mut step));
    step
}

fn set_figure(measurement: &mut Measurement, metric: &str, figure: f64) {
    match metric {
        "documents/s" => measurement.documents_per_second = figure,
        "p99" => measurement.latency.p99_us = Some(figure),
        "server" => measurement.server_cpu_seconds = Some(figure * measurement.documents as f64 / 1e6),
        "generator" => measurement.generator_cpu_seconds = figure * measurement.requests as f64 / 1e6,
        other => panic!("no metric {other}"),
    }
}

#[test]
fn json_has_what_the_text_has() {
    let found = history(&fixture::nightly()).unwrap();
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!((json["summary"].as_str(), json["ending"].as_str()), (Some(found.summary.as_str()), Some("worse")));
    let scenario = &json["scenarios"][0];
    assert_eq!((&scenario["scenario"], &scenario["invalid_runs"]), (&"insert".into(), &1.into()));
    assert_eq!(scenario["reports"][9]["file"], "night-09/report.json");
    let throughput = &scenario["steps"][0]["metrics"][0];
    assert_eq!((&throughput["metric"], &throughput["values"][13]["report"]), (&"documents/s".into(), &13.into()));
    let change = &throughput["changes"][0];
    assert_eq!((&change["report"], &change["file"]), (&9.into(), &"night-09/report.json".into()));
    assert_eq!((&change["effect"], &change["machine"]["change"]), (&"worse".into(), &"none".into()));
}

/// Noise with a deviation of 3 %.
struct Noise(Random);

impl Noise {
    fn factor(&mut self) -> f64 {
        let normal: f64 = (0..12).map(|_| self.0.fraction()).sum::<f64>() - 6.0;
        (0.03 * normal).exp()
    }

    /// Twenty reports of a scenario with eight steps, of which from the twelfth on some are slower by a tenth.
    fn reports(&mut self, slower: usize) -> Vec<(PathBuf, Report)> {
        let template = without_figures();
        (0..20)
            .map(|day| {
                let mut report = empty(day);
                for connections in 1..=8 {
                    let mut step = Step { connections, ..template.clone() };
                    let cost = if day >= 12 && connections <= slower { 1.1 } else { 1.0 };
                    let measurement = fixture::measurement(&mut step);
                    set_figure(measurement, "documents/s", 10_000.0 / cost / self.factor());
                    set_figure(measurement, "p99", 500.0 * cost * self.factor());
                    report.steps.push(step);
                }
                (format!("{day:02}").into(), report)
            })
            .collect()
    }
}

#[test]
fn nothing_changes_by_chance() {
    let mut noise = Noise(Random(1));
    let histories = 100;
    let changed = (0..histories).filter(|_| history(&noise.reports(0)).unwrap().ending != Ending::NoChange).count();
    assert!(changed * 10 <= histories, "{changed} of {histories}");
}

#[test]
fn a_tenth_slower_is_found_among_other_steps() {
    let mut noise = Noise(Random(2));
    let histories = 20;
    for slower in [1, 8] {
        let worse = (0..histories).filter(|_| history(&noise.reports(slower)).unwrap().ending == Ending::Worse).count();
        assert!(worse * 10 >= histories * 9, "{slower} of 8 steps: {worse} of {histories}");
    }
}

#[test]
fn no_reports_are_an_error() {
    assert_eq!(history(&[]).unwrap_err().to_string(), "there are no reports");
}
