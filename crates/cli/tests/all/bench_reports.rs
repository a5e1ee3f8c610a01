//! Results of several runs: merged workers, compared reports, servers in turn, the highest rate.

use crate::lab::{self, Done, Lab, Measured, REPORT, only_measurement};
use bunko_report::Report;
use bunko_report::result::{Completion, Finding, Measurement, WorkerShare};
use std::process::Child;

const SHORT: &str = "\
[load]
duration = '300ms'
connections = 2
[[phase]]
name = 'load'
operation.load = {}
[[phase]]
name = 'find'
operation.find = {}
";

fn start_worker(lab: &Lab, uri: &str, index: &str, more: &[&str]) -> Child {
    let arguments = ["run", "mine.toml", "--uri", uri, "--worker", index, "--output"];
    let arguments: Vec<&str> = arguments.iter().chain(more).copied().collect();
    lab::start(lab.command(&arguments))
}

#[test]
fn workers_share_the_load_and_their_reports_add_up() {
    let server = Measured::start();
    let lab = Lab::with_phases(
        "[[phase]]\nname = 'load'\noperation.load = { batch = 10 }\n\
         [[phase]]\nname = 'update'\noperation.update = { fields = ['d'], to = 'int32', keys = 'sequential' }\n\
         [[phase]]\nname = 'insert'\noperation.insert = {}\nload = { requests = 301, connections = 3 }\n\
         [[phase]]\nname = 'find'\noperation.find = {}\nload = { requests = 200, rate = 400 }\n",
    );
    let workers = [start_worker(&lab, &server.uri(), "0/2", &["a"]), start_worker(&lab, &server.uri(), "1/2", &["b"])];
    workers.map(Done::of).iter().for_each(Done::assert_ended);
    assert_eq!(server.databases(), [""; 0]);
    let (a, b) = (lab.report("a"), lab.report("b"));
    assert!(matches!(a.worker, Some(WorkerShare::Share { index: 0, count: 2, .. })), "{:?}", a.worker);
    assert!(matches!(b.worker, Some(WorkerShare::Share { index: 1, count: 2, .. })), "{:?}", b.worker);

    let merged = lab.bench(&["merge", "a/report.json", "b/report.json", "--output", "sum"]);
    merged.assert_ended();
    let sum = lab.report("sum");
    assert!(matches!(sum.worker, Some(WorkerShare::Merged { count: 2 })), "{:?}", sum.worker);
    assert_eq!(sum.completion, Completion::Complete);
    for (phase, documents) in [("load", 500), ("update", 500), ("insert", 301), ("find", 200)] {
        let of = |report| only_measurement(report, phase);
        let (a, b, sum) = (of(&a), of(&b), of(&sum));
        assert_eq!((a.documents + b.documents, sum.documents), (documents, documents), "{phase}");
        assert_eq!(a.documents.abs_diff(b.documents) % 10, u64::from(phase == "insert"), "{phase}: equal shares");
        assert_eq!((sum.requests, sum.errors), (a.requests + b.requests, 0), "{phase}");
        assert_eq!(sum.latency.samples, a.latency.samples + b.latency.samples, "{phase}");
        let slowest = [a, b].map(|run| run.latency.max_us.expect("samples"));
        assert_eq!(sum.latency.max_us, Some(slowest[0].max(slowest[1])), "{phase}");
        assert_counts(phase, sum);
    }
    assert_eq!(only_measurement(&sum, "find").offered_rate, Some(400.0));

    let mut other = b;
    other.scenario.hash = "0".repeat(64);
    other.write_json(&lab.path("other.json")).expect("written");
    let refused = lab.bench(&["merge", "a/report.json", "other.json", "--output", "none"]);
    assert!(refused.refusal().contains("scenario"), "{}", refused.stderr);
    let twice = lab.bench(&["merge", "a/report.json", "a/report.json", "--output", "none"]);
    assert!(twice.refusal().contains("worker"), "{}", twice.stderr);
    let half = lab.bench(&["merge", "a/report.json", "--output", "none"]);
    assert!(half.refusal().contains("worker"), "{}", half.stderr);
    assert!(!lab.path("none").exists());
}

/// Checks that no finding is about counts or contents.
fn assert_counts(phase: &str, measurement: &Measurement) {
    let is_wrong = |finding: &&Finding| {
        matches!(finding, Finding::Errors { .. } | Finding::CountsDiffer { .. } | Finding::ContentsDiffer { .. })
    };
    let wrong: Vec<_> = measurement.findings.iter().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{phase}: {wrong:?}");
}

#[test]
fn two_reports_are_compared() {
    let server = Measured::start();
    let lab = Lab::with_phases(SHORT);
    for folder in ["a", "b"] {
        let run = ["run", "mine.toml", "--repetitions", "3", "--uri", &server.uri(), "--output", folder];
        lab.bench(&run).assert_ended();
    }
    let reports = ["compare", "a/report.json", "b/report.json"];
    let shown = lab.bench(&reports);
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "{}", shown.stdout);
    assert!(shown.stdout.contains("load") && shown.stdout.contains("find"), "{}", shown.stdout);
    let json = lab.bench(&[&reports[..], &["--json", "--html", "c.html"]].concat());
    serde_json::from_str::<serde_json::Value>(&json.stdout).expect("JSON and nothing else");
    let html = std::fs::read_to_string(lab.path("c.html")).expect("written");
    assert!(html.contains("<html") && html.trim_end().ends_with("</html>"), "a whole page");
    assert!(!html.contains("src=\"http") && !html.contains("href=\"http"), "nothing is fetched");

    lab.write("broken.json", "{}");
    let broken = lab.bench(&["compare", "a/report.json", "broken.json"]);
    assert!(broken.refusal().starts_with("bunko: broken.json: not a report: "), "{}", broken.stderr);
    let missing = lab.bench(&["compare", "a/report.json", "missing.json"]);
    assert!(missing.refusal().starts_with("bunko: missing.json"), "{}", missing.stderr);
}

/// Labels of the targets, in the order in which a phase ran on them.
fn order(report: &Report, phase: &str) -> String {
    let steps = report.steps.iter().filter(|step| step.phase == phase);
    let mut runs: Vec<_> =
        steps.flat_map(|step| step.runs.iter().map(|run| (run.started_at_ms, step.target))).collect();
    runs.sort_unstable();
    runs.iter().map(|(_, target)| report.targets[*target].label.as_str()).collect()
}

#[test]
fn two_servers_are_measured_in_turn() {
    let (one, other) = (Measured::start(), Measured::start());
    let lab = Lab::with_phases(SHORT);
    let arguments = ["--a", &one.uri(), "--b", &other.uri(), "mine.toml", "--output", "ab", "--repetitions", "3"];
    let done = lab.bench(&[&["ab"][..], &arguments].concat());
    done.assert_ended();
    let report = lab.report("ab");
    assert_eq!(order(&report, "find"), "ABBAAB");
    assert_eq!(order(&report, "load"), "ABBAAB");
    let addresses: Vec<_> = report.targets.iter().map(|target| target.address.clone()).collect();
    assert_eq!(addresses, [one.server.address().to_string(), other.server.address().to_string()]);
    let comparison = done.stdout.split("\n\n").last().expect("behind the table");
    assert!(comparison.contains('A') && comparison.contains('B'), "{}", done.stdout);
    assert_eq!((one.databases(), other.databases()), (vec![], vec![]));
}

#[test]
fn the_highest_rate_is_searched() {
    let server = Measured::start();
    let lab = Lab::with_phases(&SHORT.replace("300ms", "1200ms"));
    let arguments = ["find-max", "mine.toml", "--uri", &server.uri(), "--output", "max", "--json"];
    let search = ["--p99", "2s", "--start", "1000", "--trials", "3", "--resolution", "0.2"];
    let done = lab.bench(&[&arguments[..], &search].concat());
    // A busy machine may reach no rate.
    done.assert_ended();
    let answer: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON and nothing else");
    let trials = answer["trials"].as_array().expect("a list");
    assert!((1..=3).contains(&trials.len()) && trials[0]["offered"] == 1_000.0, "{answer}");
    let met = trials.iter().filter(|trial| trial["met"] == true).map(|trial| trial["offered"].as_f64());
    let best = met.max_by(|one, other| one.partial_cmp(other).expect("numbers")).flatten();
    assert_eq!(answer["requests_per_second"].as_f64(), best, "the highest rate that met the objective");
    assert_eq!(done.code, Some(if best.is_some() { 0 } else { 2 }), "{answer}");
    if best.is_some() {
        let measurement = lab.report("max").steps.iter().find(|step| step.phase == "find").cloned().expect("a step");
        assert_eq!(measurement.measurements().next().and_then(|run| run.offered_rate), best, "its report");
    }

    // No server meets an objective of a microsecond.
    let search = ["--p99", "1us", "--start", "1000", "--trials", "2", "--phase", "find"];
    let arguments = ["find-max", "mine.toml", "--uri", &server.uri(), "--output", "none"];
    let done = lab.bench(&[&arguments[..], &search].concat());
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(done.stdout.starts_with("no rate that was tried keeps p99 under 0.001 ms"), "{}", done.stdout);
    let wrong =
        lab.bench(&["find-max", "mine.toml", "--uri", &server.uri(), "--p99", "1s", "--phase", "nothing", "--quiet"]);
    assert!(wrong.refusal().contains("'nothing'"), "{}", wrong.stderr);
}

/// Each trial ends with the searched phase, and is one row.
#[test]
fn a_search_runs_nothing_that_it_throws_away() {
    let server = Measured::start();
    let lab = Lab::with_phases(
        "[[phase]]\nname = 'load'\noperation.load = {}\n\
         [[phase]]\nname = 'find'\noperation.find = {}\nload = { duration = '1200ms', connections = [1, 2] }\n\
         [[phase]]\nname = 'insert'\noperation.insert = {}\nload = { requests = 10 }\n\
         [[sweep]]\n'dataset.document-bytes' = [400, 500]\n'phase.insert.operation.insert.batch' = [1, 2]\n",
    );
    let search = |more: &[&str]| {
        let arguments = ["find-max", "mine.toml", "--uri", &server.uri(), "--output", "max", "--phase", "find"];
        let limits = ["--p99", "2s", "--start", "300", "--trials", "1"];
        lab.bench(&[&arguments[..], &limits, more].concat())
    };
    let done = search(&[]);
    // A busy machine may not reach the rate.
    done.assert_ended();
    assert!(done.stdout.contains("\nsearched: dataset.document-bytes 500, find, 2 x 1\n"), "{}", done.stdout);
    assert!(done.stdout.contains("met (short)") || done.code == Some(2), "{}", done.stdout);
    assert!(
        done.stderr.contains("searching with phase.find.load.connections=2 of 1, 2; --set chooses"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("[2/2]") && !done.stderr.contains("insert"), "{}", done.stderr);
    let steps: Vec<_> = lab.report("max").steps.iter().map(|step| step.phase.clone()).collect();
    assert_eq!(steps, ["load", "find"]);
    for (change, expected) in [
        ("phase.insert.load.requests=5", "the run ends after phase 'find'"),
        ("phase.find.load.rate=5", "find-max varies it, from --start on"),
        ("repetitions=2", "find-max runs each rate once"),
        ("servers=each-engine", "the command line says which servers are measured"),
    ] {
        let refusal = search(&["--set", change]);
        assert!(refusal.refusal().ends_with(&format!("--set {change}: {expected}")), "{}", refusal.stderr);
    }
}

/// One run of each setting, or runs of a moment, lead to no recommendation: neither on the terminal nor in a file.
#[test]
fn single_and_short_runs_are_named_and_recommend_nothing() {
    let server = Measured::start();
    let lab = Lab::with_phases(
        "[[phase]]\nname = 'load'\noperation.load = {}\n[[phase]]\nname = 'dump'\noperation.dump = {}\n\
         [[phase]]\nname = 'restore'\noperation.restore = {}\n\
         [[sweep]]\n'phase.restore.operation.restore.workers' = [1, 2]\n",
    );
    let expected =
        "nothing is recommended for restore: of 2 settings, 2 with a single run, 2 with runs shorter than a second";
    let done = lab.run(&server.uri(), &[]);
    assert!(done.stdout.starts_with("verdict: valid with cautions: "), "{}", done.stdout);
    assert!(done.stdout.contains(&format!("\n{expected}\n")), "{}", done.stdout);
    assert!(!done.stdout.contains("noise") && !done.stdout.contains("fastest"), "{}", done.stdout);
    let read = |file: &str| std::fs::read_to_string(lab.path(REPORT).join(file)).expect("written");
    let json: serde_json::Value = serde_json::from_str(&read("report.json")).expect("JSON");
    assert_eq!(json["conclusions"]["recommendations"], serde_json::json!([expected]));
    for step in json["conclusions"]["steps"].as_array().expect("a list") {
        let badges: Vec<_> = step["badges"].as_array().expect("a list").iter().map(|badge| &badge["text"]).collect();
        assert_eq!(badges, ["short", "single run"], "{step}");
    }
    let page = read("report.html");
    assert!(page.contains(expected) && !page.contains("fastest restore"), "the page says it, too");
    assert!(!page.contains("id=\"percentiles\""), "500 documents in one batch, and dumps: no curve");

    let arguments = ["--repetitions", "3", "--uri", &server.uri(), "--output"];
    for folder in ["a", "b"] {
        lab.bench(&[&["run", "mine.toml"][..], &arguments, &[folder]].concat()).assert_ended();
    }
    let compared = lab.bench(&["compare", "a/report.json", "b/report.json"]);
    assert!(compared.stdout.starts_with("too short to compare 4 steps: "), "{}", compared.stdout);
}
