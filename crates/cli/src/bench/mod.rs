//! `bunko bench`: the lab's command line.

mod arguments;
mod chart;
mod find_max;
mod history;
mod list;
mod output;
mod progress;
mod run;
mod terminal;

pub use arguments::BenchCommand;

use crate::printed::{print, print_line};
use arguments::Verb;
use bunko_bench::Report;
use bunko_bench::scenario::{BUILTIN, ScenarioSource};
use bunko_report::{compare, html, merge};
use std::path::Path;
use std::process::ExitCode;

/// Runs the command.
/// # Errors
/// One line for the user.
pub fn run(command: BenchCommand) -> Result<ExitCode, String> {
    match command {
        BenchCommand::Builtin(name, arguments) => run::run(builtin(name)?, arguments),
        BenchCommand::Verb(Verb::List) => list::print(),
        BenchCommand::Verb(Verb::Show { scenario }) => show(&scenario),
        BenchCommand::Verb(Verb::Run { file, run }) => run::run(read(&file)?, run),
        BenchCommand::Verb(Verb::Compare { a, b, json, html }) => compare_reports(&a, &b, json, html.as_deref()),
        BenchCommand::Verb(Verb::History { paths, json, html }) => history::run(&paths, json, html.as_deref()),
        BenchCommand::Verb(Verb::Ab { a, b, scenario, run }) => run::ab(source(&scenario)?, [a, b], run),
        BenchCommand::Verb(Verb::FindMax { scenario, search, uri, embedded, run }) => {
            find_max::run(&source(&scenario)?, &search, uri, &embedded, &run)
        }
        BenchCommand::Verb(Verb::Chart { report, phase, target, output }) => {
            chart::draw(&report, phase.as_deref(), target.as_deref(), &output)
        }
        BenchCommand::Verb(Verb::Merge { reports, output }) => merge_reports(&reports, output),
    }
}

fn show(name: &str) -> Result<ExitCode, String> {
    builtin(name)?;
    let text = BUILTIN.iter().find(|builtin| builtin.name == name).map_or("", |builtin| builtin.text);
    print(format_args!("{text}"))?;
    Ok(ExitCode::SUCCESS)
}

fn builtin(name: &str) -> Result<ScenarioSource, String> {
    ScenarioSource::builtin(name).map_err(|error| error.to_string())
}

fn read(file: &Path) -> Result<ScenarioSource, String> {
    ScenarioSource::read(file).map_err(|error| error.to_string())
}

/// The built-in scenario of that name, or the scenario file.
fn source(name: &str) -> Result<ScenarioSource, String> {
    let path = Path::new(name);
    if path.extension().is_some_and(|extension| extension == "toml") { read(path) } else { builtin(name) }
}

fn compare_reports(a: &Path, b: &Path, json: bool, html: Option<&Path>) -> Result<ExitCode, String> {
    let read = |path: &Path| Report::read(path).map_err(|error| error.to_string());
    let (a, b) = (read(a)?, read(b)?);
    let comparison = compare::compare(&a, &b).map_err(|error| error.to_string())?;
    if let Some(path) = html {
        let text = html::render_comparison(&comparison, &a, &b);
        std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    if json {
        print_line(format_args!("{}", serde_json::to_string_pretty(&comparison).map_err(|error| error.to_string())?))?;
    } else {
        print(format_args!("{comparison}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn merge_reports(paths: &[std::path::PathBuf], output: Option<std::path::PathBuf>) -> Result<ExitCode, String> {
    let reports = paths.iter().map(|path| Report::read(path)).collect::<Result<Vec<_>, _>>();
    let merged = merge::merge(&reports.map_err(|error| error.to_string())?).map_err(|error| error.to_string())?;
    output::finish(&merged, output, output::Shown::Table)
}
