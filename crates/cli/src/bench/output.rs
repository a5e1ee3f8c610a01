//! Output of a report: a table on the terminal, files in a folder.

use super::terminal;
use crate::exit_status::NOT_VALID;
use crate::printed::{print, print_line};
use bunko_bench::Report;
use bunko_report::compare::Comparison;
use bunko_report::{csv, html, interval_log, text};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The form in which a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The table.
    Table,
    /// The whole report as JSON.
    Json,
}

impl Shown {
    /// The form that `--json` selects.
    pub fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Table }
    }
}

/// Prints the report, writes its files, and returns the exit status of its verdict.
pub fn finish(report: &Report, folder: Option<PathBuf>, shown: Shown) -> Result<ExitCode, String> {
    match shown {
        Shown::Table => print(format_args!("{}", text::table(report, terminal::width())))?,
        Shown::Json => {
            print_line(format_args!("{}", report.to_json()))?;
        }
    }
    write(report, folder)?;
    let is_good = report.is_valid() && report.keeps_limits();
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(NOT_VALID.number) })
}

/// Writes the report's files and prints their location.
pub fn write(report: &Report, folder: Option<PathBuf>) -> Result<(), String> {
    let folder = self::folder(report, folder);
    write_files(report, &folder).map_err(|error| format!("cannot write to {}: {error}", folder.display()))?;
    eprintln!("report: {}", folder.join("report.html").display());
    Ok(())
}

fn write_files(report: &Report, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let create = |name: &str| File::create(folder.join(name)).map(BufWriter::new);
    report.write_json(&folder.join("report.json"))?;
    fs::write(folder.join("report.html"), html::render(report))?;
    let mut runs = create("runs.csv")?;
    csv::write(report, &mut runs)?;
    runs.flush()?;
    let mut intervals = create("intervals.csv")?;
    csv::write_intervals(report, &mut intervals)?;
    intervals.flush()?;
    interval_log::write(report, create("intervals.hlog")?)
}

/// Writes the comparison of two targets of a report.
pub fn write_comparison(comparison: &Comparison, report: &Report, folder: &Path) -> Result<(), String> {
    let path = folder.join("comparison.html");
    let text = html::render_comparison(comparison, report, report);
    fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    eprintln!("comparison: {}", path.display());
    Ok(())
}

/// The folder that the command line names; otherwise one named after scenario and time.
pub fn folder(report: &Report, named: Option<PathBuf>) -> PathBuf {
    if let Some(named) = named {
        return named;
    }
    let seconds = report.started_at_ms / 1_000;
    let time = bunko_bson::datetime::format_iso8601_ms((seconds * 1_000) as i64);
    let time = time.replace([':', '-'], "").replace(".000", "");
    PathBuf::from("bunko-bench").join(format!("{}-{time}", report.scenario.name))
}
