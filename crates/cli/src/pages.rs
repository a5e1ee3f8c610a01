//! Completions and manual pages, made from the tables of commands and settings that the command line is parsed by.

use crate::arguments::Arguments;
use crate::printed::print;
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;
use std::process::ExitCode;

/// Prints the completions of a shell.
/// # Errors
/// One line, if they cannot be written.
pub fn print_completions(shell: Shell) -> Result<ExitCode, String> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "bunko", &mut text);
    print(format_args!("{}", String::from_utf8_lossy(&text)))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes one page for each command, such as `bunko-serve.1`.
/// # Errors
/// A sentence that names the directory.
pub fn write_man_pages(directory: &Path) -> Result<ExitCode, String> {
    clap_mangen::generate_to(Arguments::command(), directory)
        .map_err(|error| format!("cannot write manual pages into {}: {error}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}
