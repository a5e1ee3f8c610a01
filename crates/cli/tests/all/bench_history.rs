//! `bunko bench history` on reports that the test writes: its input, its output, its exit status.

use crate::lab::Lab;
use bunko_report::Report;
use serde_json::{Value, json};

const FIRST_DAY_MS: u64 = 1_763_737_200_000;
const DAY_MS: u64 = 86_400_000;
/// Factors by which days differ.
const NOISE: [f64; 5] = [1.0, 1.01, 0.992, 1.004, 0.995];

/// A report of one step with one run.
fn report(day: u64, documents_per_second: f64) -> Value {
    let latency = json!({
        "samples": 60_000, "mean_us": 90.0, "p50_us": 80.0, "p90_us": 120.0, "p99_us": 1.6e6 / documents_per_second,
        "p999_us": 400.0, "p9999_us": 900.0, "max_us": 1000.0,
    });
    let measurement = json!({
        "outcome": "measured", "requests": 60_000, "documents": 60_000, "document_bytes": null, "errors": 0,
        "elapsed_seconds": 6.0, "documents_per_second": documents_per_second, "offered_rate": null,
        "achieved_rate": documents_per_second, "latency": latency, "histogram": "", "intervals": [], "server": [],
        "server_cpu_seconds": null, "server_resident_bytes": null, "journal_syncs": null,
        "generator_cpu_seconds": 0.12, "generator_threads": 1, "cache": "", "verified_documents": 0, "findings": [],
    });
    let started_at_ms = FIRST_DAY_MS + day * DAY_MS;
    json!({
        "format": 1, "lab_version": "0.1.0", "command": ["bunko", "bench", "nightly"],
        "scenario": {
            "name": "nightly", "about": "a test", "prose": "why", "experiment": null, "seed": 1, "hash": "0",
            "resolved": "name = 'nightly'\n",
        },
        "started_at_ms": started_at_ms, "ended_at_ms": started_at_ms + 60_000,
        "completion": { "state": "complete" }, "worker": null,
        "machine": { "processor": "Example CPU", "cores": 2, "memory_bytes": 8_000_000_000_u64, "kernel": "Linux" },
        "targets": [{
            "label": "A", "address": "127.0.0.1:27017", "embedded": true, "local": true, "version": "8.0.0",
            "storage_engine": "lsm", "durability": "w: 1", "data_directory": null, "filesystem": null,
        }],
        "steps": [{
            "target": 0, "variant": [], "phase": "insert", "operation": "insert", "connections": 8, "in_flight": 1,
            "reference": null,
            "runs": [{ "repetition": 1, "started_at_ms": started_at_ms, "outcome": measurement }],
        }],
        "storage": [], "allocations": [],
    })
}

/// A lab with one report per day below `nightly`; `level` gives the figure of a day.
fn lab_with_days(days: u64, level: impl Fn(u64) -> f64) -> Lab {
    let lab = Lab::new();
    for day in 0..days {
        let folder = format!("nightly/{day:02}/run");
        std::fs::create_dir_all(lab.path(&folder)).expect("made");
        let text = report(day, level(day) * NOISE[day as usize % NOISE.len()]).to_string();
        lab.write(&format!("{folder}/report.json"), &text);
        Report::read(&lab.path(&format!("{folder}/report.json"))).expect("a report");
    }
    lab
}

#[test]
fn a_change_for_the_worse_is_found_and_told() {
    let lab = lab_with_days(12, |day| if day < 7 { 20_000.0 } else { 18_000.0 });
    lab.write("nightly/report.json", "{}");
    let told = lab.bench(&["history", "nightly"]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(2), ""), "{}", told.stdout);
    let expected = "\
nightly: worse since 2025-11-28 15:00:00 UTC: insert, 8 x 1 (documents/s 0.90x)

nightly: 12 reports, 2025-11-21 15:00:00 UTC to 2025-12-02 15:00:00 UTC
    generator's cost  ▅▅▅▅▅▅▅▅▅▅▅▅  1.00 .. 1.00

  insert, 8 x 1
    documents/s  ▆▇▆▇▆▆▇▂▃▂▂▃  20,000 .. 18,180
      2025-11-28 15:00:00 UTC  20,000 -> 18,000  0.90x  worse  nightly/07/run/report.json
    p99 us       ▃▂▃▂▃▃▂▇▆▇▇▆    80.0 ..   88.0
      2025-11-28 15:00:00 UTC  80.0 -> 88.9  1.11x  worse  nightly/07/run/report.json

left out: nightly/report.json: not a report: missing field `format` at line 1 column 2
";
    assert_eq!(told.stdout, expected);
}

#[test]
fn json_and_html_say_the_same() {
    let lab = lab_with_days(12, |day| if day < 7 { 20_000.0 } else { 18_000.0 });
    let done = lab.bench(&["history", "nightly", "--json", "--html", "history.html"]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(2), ""), "{}", done.stdout);
    let json: Value = serde_json::from_str(&done.stdout).expect("JSON and nothing else");
    assert_eq!(json["ending"], "worse");
    let change = &json["scenarios"][0]["steps"][0]["metrics"][0]["changes"][0];
    assert_eq!((&change["file"], &change["effect"]), (&"nightly/07/run/report.json".into(), &"worse".into()));
    let html = std::fs::read_to_string(lab.path("history.html")).expect("written");
    assert!(html.contains("worse since 2025-11-28") && html.trim_end().ends_with("</html>"), "a whole page");
    assert!(!html.contains("src=\"http") && !html.contains("href=\"http"), "nothing is fetched");
}

#[test]
fn a_history_that_is_not_worse_is_a_success() {
    let steady = lab_with_days(12, |_| 20_000.0).bench(&["history", "nightly"]);
    assert_eq!((steady.code, steady.stdout.lines().next()), (Some(0), Some("nightly: no change in 12 reports")));
    let better = lab_with_days(12, |day| if day < 7 { 20_000.0 } else { 25_000.0 }).bench(&["history", "nightly"]);
    assert_eq!(better.code, Some(0));
    assert!(better.stdout.starts_with("nightly: better since 2025-11-28 15:00:00 UTC: "), "{}", better.stdout);
    let lab = lab_with_days(4, |_| 20_000.0);
    let few = lab.bench(&["history", "nightly/00", "nightly/01/run/report.json", "nightly/02", "nightly/02/run"]);
    assert_eq!(few.code, Some(0));
    assert!(few.stdout.starts_with("nightly: too few valid figures to find a change: 3 of 6"), "{}", few.stdout);
    assert!(few.stdout.contains("nightly: 3 reports"), "each file once: {}", few.stdout);
}

#[test]
fn reports_that_are_not_a_history_are_refused() {
    let lab = lab_with_days(3, |_| 20_000.0);
    std::fs::create_dir(lab.path("empty")).expect("made");
    assert_eq!(lab.bench(&["history", "empty"]).refusal(), "bunko: there are no reports");
    lab.write("broken.json", "{}");
    let broken = lab.bench(&["history", "nightly", "broken.json"]);
    assert!(broken.refusal().starts_with("bunko: broken.json: not a report: "), "{}", broken.stderr);
    let missing = lab.bench(&["history", "nightly", "missing"]);
    assert!(missing.refusal().starts_with("bunko: missing: "), "{}", missing.stderr);
}
