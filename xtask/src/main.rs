//! Checks that cargo itself does not make: `cargo xtask tidy | licences | duplicates | advisories | sbom | ci`; and
//! packages, `cargo xtask package`.

#![forbid(unsafe_code)]

mod advisories;
mod ci;
mod duplicates;
mod findings;
mod licences;
mod lock_file;
mod metadata;
mod module_tree;
mod package;
mod ratchet;
mod rust_source;
mod sbom;
mod source_tree;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

use findings::Findings;

const USAGE: &str = "\
usage: cargo xtask <task>

  tidy      dependency arrows, circles of modules, lengths of files and functions, clocks, registries, paths named in
            docs, names, plain words, lookups of fields, features of dependencies, unfinished code,
            translations of the handbook
  licences  every dependency's licence is on the list xtask/licences.txt (needs no network)
  duplicates
            no package is part of the binary in two versions, except those that xtask/duplicates.txt lists
  advisories [CLONE]
            no package of a lock file has a weakness that xtask/advisories.txt knows (needs no network); with a clone of
            the RustSec Advisory Database: writes that list anew
  sbom [FILE]
            what the binary is made of, as CycloneDX JSON, to a file or standard output
  package [--binary PATH] [--out DIR] [tar | deb | rpm | oci]...
            packages of a static binary, which is built unless one is given, with sums and a bill of materials; the same
            commit makes the same bytes
  ci        fmt, clippy, rustdoc with warnings denied, then tidy, licences, duplicates, advisories and sbom";

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    let task = std::env::args().nth(1);
    let argument = std::env::args().nth(2);
    let outcome = match task.as_deref() {
        Some("tidy") => tidy::run(root).map(|findings| report("tidy", &findings)),
        Some("licences") => licences::run(root).map(|findings| report("licences", &findings)),
        Some("duplicates") => duplicates::run(root).map(|findings| report("duplicates", &findings)),
        Some("advisories") => match &argument {
            None => advisories::run(root).map(|findings| report("advisories", &findings)),
            Some(clone) => advisories::renew(root, Path::new(clone)).map(|count| {
                println!("advisories: {count} on packages of the lock files");
                ExitCode::SUCCESS
            }),
        },
        Some("sbom") => sbom::make(root).and_then(|document| write(&document, argument.as_deref())),
        Some("package") => package::run(root, std::env::args().skip(2)),
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

fn write(document: &serde_json::Value, file: Option<&str>) -> Result<ExitCode, String> {
    let text = serde_json::to_string_pretty(document).map_err(|error| error.to_string())? + "\n";
    match file {
        Some(file) => std::fs::write(file, text).map_err(|error| format!("{file}: {error}"))?,
        None => print!("{text}"),
    }
    Ok(ExitCode::SUCCESS)
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
