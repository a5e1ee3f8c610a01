//! `bunko upgrade`: says what a start of this version would do with a data directory.

use crate::printed::print_line;
use bunko_store::{DescribedDirectory, describe};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Flags of `bunko upgrade`.
#[derive(Args)]
pub struct UpgradeArguments {
    /// Only say what a start would do; nothing is changed. A start itself upgrades a directory
    #[arg(long, required = true)]
    check: bool,
    /// The data directory
    #[arg(long, value_name = "DIR")]
    dbpath: PathBuf,
}

impl UpgradeArguments {
    /// Prints the directory's format and what a start would do. Fails if a start would refuse the directory.
    /// # Errors
    /// One line for the user.
    pub fn run(&self) -> Result<ExitCode, String> {
        debug_assert!(self.check, "clap demands it");
        let (dbpath, read) = (self.dbpath.display(), DescribedDirectory::READ);
        if !self.dbpath.is_dir() {
            return Err(format!("{dbpath}: there is no such directory"));
        }
        let described = describe(&self.dbpath).map_err(|error| error.to_string())?;
        let Some(described) = described else {
            return Err(format!("{dbpath}: is not a data directory: it has no manifest"));
        };
        let format = described.format;
        print_line(format_args!("{dbpath}: format {format}; this version reads {} to {}", read.start(), read.end()))?;
        if !described.is_read() {
            let advice = if format > *read.end() {
                "a later version of Bunko wrote it: start that version"
            } else {
                "take a dump with the version that wrote it, and restore it into an empty directory"
            };
            print_line(format_args!("a start would refuse it: {advice}"))?;
            return Ok(ExitCode::FAILURE);
        }
        print_line(format_args!("storage engine: {}", described.engine.as_deref().unwrap_or("not named")))?;
        if described.is_current() {
            print_line(format_args!("a start would leave the format as it is"))?;
        } else {
            let newest = read.end();
            print_line(format_args!(
                "a start would make it format {newest}, and versions that read only format {format} refuse it from then on: \
                 copy the directory before, if you may want to go back"
            ))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
