//! Servers that the lab starts with an engine and settings of the user's choice; limits; charts.

use crate::lab::{self, HEAD, Lab, REPORT, only_measurement};
use bunko_report::result::Finding;

const PHASES: &str = "[[phase]]\nname = 'load'\noperation.load = {}\nsettle = '30s'\n\
                      [[phase]]\nname = 'verify'\noperation.verify = { ids = 7 }\nload = { connections = 3 }\n";

/// Runs `mine.toml` on a server that the lab starts.
fn run(lab: &Lab, more: &[&str]) -> lab::Done {
    let arguments = ["run", "mine.toml", "--output", REPORT];
    lab.bench(&[&arguments[..], more].concat())
}

#[test]
fn engine_and_settings_are_the_users_and_stand_in_the_report() {
    let lab = Lab::with_phases(PHASES);
    run(&lab, &["--engine", "wiredTiger", "--server-option", "cacheSizeGB=0.25"]).assert_ended();
    let report = lab.report(REPORT);
    let target = &report.targets[0];
    // MongoDB's engine name stands for our engine in that role.
    assert_eq!((target.label.as_str(), target.storage_engine.as_deref()), ("lsm", Some("lsm")));
    assert_eq!(target.settings, [("cacheSizeGB".to_owned(), "0.25".to_owned())]);

    let loaded = only_measurement(&report, "load");
    let settling = loaded.settling.expect("the phase waits");
    assert!((0.0..30.0).contains(&settling.seconds) && settling.server_cpu_seconds.is_some(), "{settling:?}");
    assert!(loaded.settled_cpu_seconds() >= loaded.server_cpu_seconds);
    let verified = only_measurement(&report, "verify");
    assert_eq!((verified.documents, verified.requests, verified.errors), (500, 72, 0));
    assert_eq!(verified.settling, None);

    let chart = lab.bench(&["chart", "report/report.json", "--phase", "load", "--output", "chart.svg"]);
    assert_eq!((chart.code, chart.stderr.as_str()), (Some(0), "chart of load: chart.svg\n"));
    assert!(std::fs::read_to_string(lab.path("chart.svg")).expect("written").starts_with("<svg "));
    let wrong = lab.bench(&["chart", "report/report.json", "--phase", "nothing", "--output", "other.svg"]);
    assert_eq!(wrong.refusal(), "bunko: --phase: 'nothing' has no figures on that target");
}

#[test]
fn several_engines_are_measured_in_turn() {
    let lab = Lab::with_phases("[[phase]]\nname = 'load'\noperation.load = {}\n");
    let names: Vec<_> = bunko_engines::ENGINES.iter().map(|entry| entry.name).collect();
    run(&lab, &["--engine", &names.join(",")]).assert_ended();
    let report = lab.report(REPORT);
    let labels: Vec<_> = report.targets.iter().map(|target| target.label.as_str()).collect();
    let engines: Vec<_> = report.targets.iter().filter_map(|target| target.storage_engine.as_deref()).collect();
    // Each target is labelled with its engine's name, also a single target.
    assert_eq!((labels, engines), (names.clone(), names));
}

#[test]
fn servers_that_cannot_start_are_refused_in_one_line() {
    let lab = Lab::with_phases(PHASES);
    let engine = run(&lab, &["--engine", "rocksdb"]);
    assert!(engine.refusal().starts_with("bunko: --engine: there is no storage engine 'rocksdb'; there are lsm"));
    let beside = run(&lab, &["--engine", "lsm", "--uri", "mongodb://127.0.0.1:1"]);
    assert!(beside.refusal().contains("--uri names one that runs"), "{}", beside.stderr);
    let option = run(&lab, &["--server-option", "dbpath=/"]);
    assert!(option.code == Some(2) && option.stderr.contains("the lab's own business"), "{}", option.stderr);
    // The server's error is shown unchanged.
    let value = run(&lab, &["--server-option", "cacheSizeGB=0"]);
    assert!(value.code == Some(1) && value.stderr.contains("cache-size-gb"), "{}", value.stderr);
    assert!(!lab.path(REPORT).exists());
}

#[test]
fn a_limit_that_is_exceeded_leaves_the_figures_and_fails_the_run() {
    let lab = Lab::new();
    let phase = "[[phase]]\nname = 'load'\noperation.load = {}\nlimits = { resident = '1MB', p999-rise = 0.1 }\n";
    lab.write("mine.toml", &format!("{HEAD}{phase}"));
    let done = run(&lab, &[]);
    assert_eq!(done.code, Some(2), "{}", done.stdout);
    let report = lab.report(REPORT);
    let findings = &only_measurement(&report, "load").findings;
    let is_memory = |finding: &Finding| matches!(finding, Finding::LimitExceeded { detail } if detail.contains("1 MB"));
    assert!(findings.iter().any(is_memory), "{findings:?}");
    assert!(findings.iter().any(|finding| matches!(finding, Finding::LimitUnchecked { .. })), "{findings:?}");
    assert!(!report.keeps_limits());
    if report.is_valid() {
        assert!(done.stdout.starts_with("verdict: valid, but beyond its limits: load"), "{}", done.stdout);
    }
}
