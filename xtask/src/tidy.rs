//! `cargo xtask tidy`: the rules of this repository that neither rustc nor clippy knows.

mod clocks;
mod command_names;
mod dependency_arrows;
mod field_lookups;
mod file_length;
mod function_length;
mod log_lines;
mod member_features;
mod module_circles;
mod paths_in_docs;
mod plain_words;
mod registries;
mod room_names;
mod translations;
mod unfinished;

use std::path::Path;

use crate::findings::Findings;

type Check = fn(&Path, &mut Findings) -> Result<(), String>;

const CHECKS: &[Check] = &[
    command_names::check,
    dependency_arrows::check,
    field_lookups::check,
    file_length::check,
    log_lines::check,
    member_features::check,
    registries::check,
    paths_in_docs::check,
    room_names::check,
    plain_words::check,
    function_length::check,
    module_circles::check,
    translations::check,
    clocks::check,
    unfinished::check,
];

/// # Errors
/// A check that could not be made at all. The results of the checks are in the findings.
pub fn run(root: &Path) -> Result<Findings, String> {
    let mut findings = Findings::default();
    for check in CHECKS {
        check(root, &mut findings)?;
    }
    Ok(findings)
}
