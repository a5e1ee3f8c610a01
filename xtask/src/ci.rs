//! `cargo xtask ci`: every check that is not a test.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::findings::Findings;
use crate::{advisories, duplicates, licences, report, sbom, tidy};

type Check = fn(&Path) -> Result<Findings, String>;

/// Name, and cargo's arguments. The order lets the slow steps find most dependencies built.
const CARGO_STEPS: &[(&str, &[&str])] = &[
    ("format", &["fmt", "--all", "--", "--check"]),
    ("clippy", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    ("rustdoc", &["doc", "--workspace", "--no-deps"]),
];

/// The environment in which `cargo clippy -- -D warnings` compiles. In it, cargo does not check for rustdoc the members
/// that clippy has checked. `None` if clippy is not beside cargo; then, as after a change of these names, cargo checks
/// them again.
/// Source: `src/main.rs` of clippy.
fn clippy_environment() -> Option<[(&'static str, PathBuf); 2]> {
    let cargo = Path::new(env!("CARGO"));
    let driver = cargo.canonicalize().unwrap_or_else(|_| cargo.to_owned()).with_file_name("clippy-driver");
    let arguments = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__".into();
    driver.exists().then_some([("RUSTC_WORKSPACE_WRAPPER", driver), ("CLIPPY_ARGS", arguments)])
}

/// Runs all steps, even after a failed one: one run shows everything that is wrong.
///
/// # Errors
/// A step that could not be run at all.
pub fn run(root: &Path) -> Result<ExitCode, String> {
    let mut failed = Vec::new();
    for (name, arguments) in CARGO_STEPS {
        println!("== {name}: cargo {}", arguments.join(" "));
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(*arguments).env("RUSTDOCFLAGS", "-Dwarnings").current_dir(root);
        if *name == "rustdoc" {
            cargo.envs(clippy_environment().into_iter().flatten());
        }
        let status = cargo.status().map_err(|error| format!("cargo does not start: {error}"))?;
        if !status.success() {
            failed.push(*name);
        }
    }
    let checks: [(&str, Check); 5] = [
        ("tidy", tidy::run),
        ("licences", licences::run),
        ("duplicates", duplicates::run),
        ("advisories", advisories::run),
        ("sbom", sbom::run),
    ];
    for (name, check) in checks {
        println!("== {name}");
        if report(name, &check(root)?) != ExitCode::SUCCESS {
            failed.push(name);
        }
    }
    if failed.is_empty() {
        println!("ci: every check passed");
        Ok(ExitCode::SUCCESS)
    } else {
        println!("ci: failed: {}", failed.join(", "));
        Ok(ExitCode::FAILURE)
    }
}
