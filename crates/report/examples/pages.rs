//! Writes every report of the fixture as HTML, two comparisons and a history, to look at and for `tests/report_in_browser`:
//! `cargo run -p bunko-report --example pages -- DIRECTORY`

#[path = "../src/fixture/mod.rs"]
mod fixture;

use bunko_report::{compare, history, html};
use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let directory = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| ".".into()));
    for (name, make) in fixture::ALL {
        fs::write(directory.join(format!("{name}.html")), html::render(&make()))?;
    }
    let engines = fixture::engines();
    let comparison = compare::compare_targets(&engines, 0, 1);
    fs::write(directory.join("targets-compared.html"), html::render_comparison(&comparison, &engines, &engines))?;
    let nights = history::history(&fixture::nightly()).expect("there are reports");
    fs::write(directory.join("nightly.html"), html::render_history(&nights))?;
    let (before, after) = (fixture::mixed(), fixture::mixed_later());
    let comparison = compare::compare(&before, &after).expect("the same scenario");
    fs::write(directory.join("runs-compared.html"), html::render_comparison(&comparison, &before, &after))
}
