//! `bunko bench history`.

use crate::exit_status::NOT_VALID;
use crate::printed::{print, print_line};
use bunko_bench::Report;
use bunko_report::history::{Ending, LeftOut, history};
use bunko_report::result::Outcome;
use bunko_report::{ReportError, html};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

/// Name of a run's report in its folder.
const FILE_NAME: &str = "report.json";
/// Maximum number of reports of one history. Finding changes takes quadratic time: this many of one scenario take some
/// seconds.
const REPORTS_MAX: usize = 5_000;
/// Depth of nested folders that are searched.
const DEPTH_MAX: usize = 16;

pub fn run(paths: &[PathBuf], json: bool, html: Option<&Path>) -> Result<ExitCode, String> {
    let (reports, unreadable) = read(find(paths)?)?;
    let mut history = history(&reports).map_err(|error| error.to_string())?;
    history.left_out.extend(unreadable);
    if let Some(path) = html {
        let text = html::render_history(&history);
        fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    if json {
        print_line(format_args!("{}", serde_json::to_string_pretty(&history).map_err(|error| error.to_string())?))?;
    } else {
        print(format_args!("{history}"))?;
    }
    Ok(if history.ending == Ending::Worse { ExitCode::from(NOT_VALID.number) } else { ExitCode::SUCCESS })
}

/// How a file was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    ByUser,
    ByFolder,
}

/// A report file to be read.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReportFile {
    path: PathBuf,
    named: Named,
}

/// The reports with their files, and the files in folders that cannot be read.
type Read = (Vec<(PathBuf, Report)>, Vec<LeftOut>);

fn read(files: Vec<ReportFile>) -> Result<Read, String> {
    let (mut reports, mut unreadable) = (Vec::new(), Vec::new());
    for ReportFile { path, named } in files {
        match (Report::read(&path), named) {
            (Ok(mut report), _) => {
                forget_seconds(&mut report);
                reports.push((path, report));
            }
            // A file that the user named is never skipped.
            (Err(error), Named::ByUser) => return Err(error.to_string()),
            (Err(error), Named::ByFolder) => unreadable.push(LeftOut::new(&path, reason(&error, &path))),
        }
    }
    Ok((reports, unreadable))
}

/// An error's message without the file's name, which precedes it anyway.
fn reason(error: &ReportError, path: &Path) -> String {
    let message = error.to_string();
    message.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&message).to_owned()
}

/// Every file once, sorted by path.
fn find(paths: &[PathBuf]) -> Result<Vec<ReportFile>, String> {
    let mut found = BTreeSet::new();
    for path in paths {
        if path.is_dir() {
            search(path, DEPTH_MAX, &mut found).map_err(|error| format!("{}: {error}", path.display()))?;
        } else {
            found.insert(ReportFile { path: path.clone(), named: Named::ByUser });
        }
    }
    if found.len() > REPORTS_MAX {
        return Err(format!("{} reports; a history takes at most {REPORTS_MAX}", found.len()));
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.dedup_by(|one, other| one.path == other.path);
    Ok(found)
}

/// Adds the reports below a folder. Links are not followed, because they could form cycles.
fn search(folder: &Path, depth: usize, found: &mut BTreeSet<ReportFile>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && depth > 0 {
            search(&entry.path(), depth - 1, found)?;
        } else if kind.is_file() && entry.file_name() == FILE_NAME && found.len() <= REPORTS_MAX {
            found.insert(ReportFile { path: entry.path(), named: Named::ByFolder });
        }
    }
    Ok(())
}

/// Drops the parts of a report that a history does not use. They are the largest, so that thousands of reports fit into
/// memory.
fn forget_seconds(report: &mut Report) {
    for run in report.steps.iter_mut().flat_map(|step| &mut step.runs) {
        if let Outcome::Measured(measurement) = &mut run.outcome {
            measurement.intervals = Vec::new();
            measurement.server = Vec::new();
            measurement.parts = Vec::new();
            measurement.histogram = String::new();
        }
    }
}
