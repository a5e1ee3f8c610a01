//! Renders the fixture's reports for the terminal, as CSV and as HTML, and compares them with files that a person can
//! read.
//!
//! `REWRITE=1 cargo test -p bunko-report --test all rendering::` writes the files again; read them then.

use crate::fixture;
use bunko_report::result::Outcome;
use bunko_report::{Report, csv, history, html, text};
use bunko_testkit::cpu_time::CpuTime;
use std::path::Path;
use std::time::Duration;
use std::{env, fs};

/// Limits for the HTML of ten minutes of one-second intervals in 24 steps.
const BYTES_MAX: usize = 1_000_000;
const RENDERING_MAX: Duration = Duration::from_secs(2);

#[test]
fn the_terminal_shows_what_the_files_show() {
    for (name, make) in fixture::ALL {
        check(&format!("{name}.txt"), &text::table(&make(), text::DEFAULT_WIDTH));
    }
}

#[test]
fn csv_is_what_the_files_show() {
    let mut out = Vec::new();
    csv::write(&fixture::hostile(), &mut out).unwrap();
    check("hostile.csv", &String::from_utf8(out).unwrap().replace("\r\n", "\n"));
}

#[test]
fn html_says_the_same_without_scripts() {
    for (name, make) in fixture::ALL {
        check(&format!("{name}.html.txt"), &visible_text(&html::render(&make())));
    }
}

#[test]
fn a_history_says_the_same_without_scripts() {
    let mut nights = fixture::nightly();
    let hostile = fixture::hostile();
    nights.push(("</script>".into(), hostile));
    let history = history::history(&nights).unwrap();
    check("nightly.txt", &history.to_string());
    let page = html::render_history(&history);
    check("nightly.html.txt", &visible_text(&page));
    assert!(!page.contains("<script>alert"), "a name became a script");
    assert_eq!((page.matches("<script").count(), page.matches("</script>").count()), (3, 3));
}

#[test]
fn names_do_not_become_markup() {
    let page = html::render(&fixture::hostile());
    assert!(!page.contains("<script>alert"), "a name became a script");
    // Two blocks of JSON, the charts' library, and the page's own script.
    assert_eq!((page.matches("<script").count(), page.matches("</script>").count()), (4, 4));
    let seconds = |report: &Report| report.steps[0].measurements().next().map(|run| run.intervals.len());
    assert_eq!(seconds(&embedded(&page)), seconds(&fixture::hostile()));
    assert!(without_seconds(embedded(&page)) == without_seconds(fixture::hostile()));
}

#[test]
fn a_page_asks_for_nothing_and_runs_nothing_else() {
    for (name, make) in fixture::ALL {
        let page = html::render(&make());
        for forbidden in [" src=", "@import", "url(", "<link", " onclick=", " onload=", " style=", "unsafe-inline"] {
            let ours = page.split(r#"<script type="application/json""#).next().unwrap();
            assert!(!ours.contains(forbidden), "{name}: {forbidden}");
        }
        assert!(page.contains("default-src &#39;none&#39;; script-src &#39;sha256-"), "{name}");
    }
}

#[test]
fn ten_minutes_in_many_steps_fit() {
    let report = fixture::sizes();
    let began = CpuTime::now();
    let page = html::render(&report);
    assert!(began.elapsed() < RENDERING_MAX, "{:?}", began.elapsed());
    assert!(page.len() < BYTES_MAX, "{} bytes", page.len());
}

/// Compares with the file, or writes it.
fn check(file: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rendered").join(file);
    if env::var_os("REWRITE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == found, "{file} differs from what is rendered; REWRITE=1 writes it anew:\n{found}");
}

/// The text that a reader sees: one line per block, ` | ` between cells.
fn visible_text(page: &str) -> String {
    let body = page.split_once("<body>").unwrap().1;
    let body = body.split(r#"<script type="application/json""#).next().unwrap();
    let mut text = String::new();
    for part in body.split('<').skip(1) {
        let (tag, following) = part.split_once('>').unwrap();
        match tag.split(' ').next().unwrap() {
            "/p" | "/h1" | "/h2" | "/h3" | "/tr" | "/li" | "/dd" | "/summary" | "/caption" | "/option" | "/pre" => {
                text.push('\n');
            }
            "/th" | "/td" | "/dt" | "/span" => text.push_str(" | "),
            _ => {}
        }
        text.push_str(following);
    }
    let unescaped = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    let text = unescaped.iter().fold(text, |text, (entity, character)| text.replace(entity, character));
    let lines = text.lines().map(|line| line.trim_end_matches([' ', '|']).to_owned() + "\n");
    lines.filter(|line| line != "\n").collect()
}

/// The report embedded in the page.
fn embedded(page: &str) -> Report {
    let start = r#"<script type="application/json" id="report-json">"#;
    let json = page.split_once(start).unwrap().1.split_once("</script>").unwrap().0;
    serde_json::from_str(json).unwrap()
}

/// Removes the figures of seconds, which the page rounds.
fn without_seconds(mut report: Report) -> Report {
    for run in report.steps.iter_mut().flat_map(|step| &mut step.runs) {
        if let Outcome::Measured(measurement) = &mut run.outcome {
            measurement.intervals.clear();
            measurement.server.clear();
        }
    }
    report
}
