//! Checks that cargo itself does not make: `cargo xtask tidy | licences | ci`.

#![forbid(unsafe_code)]

mod ci;
mod findings;
mod licences;
mod metadata;
mod source_tree;
mod spdx;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

use findings::Findings;

const USAGE: &str = "\
usage: cargo xtask <task>

  tidy      dependency arrows, file length, registries, paths named in docs, names, unfinished code
  licences  every dependency's licence is on the list xtask/licences.txt (needs no network)
  ci        fmt, clippy, rustdoc with warnings denied, then tidy and licences";

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    let task = std::env::args().nth(1);
    let outcome = match task.as_deref() {
        Some("tidy") => tidy::run(root).map(|findings| report("tidy", &findings)),
        Some("licences") => licences::run(root).map(|findings| report("licences", &findings)),
        Some("ci") => ci::run(root),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(exit) => exit,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn report(task: &str, findings: &Findings) -> ExitCode {
    for warning in &findings.warnings {
        println!("warning: {warning}");
    }
    for failure in &findings.failures {
        println!("error: {failure}");
    }
    println!("{task}: {} errors, {} warnings", findings.failures.len(), findings.warnings.len());
    if findings.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
