//! The parts that the reports of `bunko advise` and `bunko check` share: the server, its log, and how they are printed.

use super::address::AddressArguments;
use crate::printed::print_line;
use bunko_client::Uri;
use clap::Args;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::ExitCode;

/// The status if something was found.
const FOUND: u8 = 3;

/// Flags of a report on a running server.
#[derive(Args)]
pub struct ReportArguments {
    /// The server, as a connection string
    #[arg(value_name = "URI")]
    target: Option<String>,
    /// The log of that server, whose slow operations count as those of the profiler do
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    /// Print this help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    #[command(flatten)]
    address: AddressArguments,
}

/// Whether a report has something to tell.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Nothing was found.
    Clear,
    /// Something was found, or could not be looked at.
    Found,
}

impl ReportArguments {
    /// The connection string of `program`.
    /// # Errors
    /// Names the flag and what is wrong with it.
    pub fn uri(&self, program: &str) -> Result<Uri, String> {
        self.address.uri(program, self.target.as_deref())
    }

    /// Opens the server's log, if one is named.
    /// # Errors
    /// Names the file.
    pub fn open_log(&self) -> Result<Option<Box<dyn BufRead>>, String> {
        let Some(path) = &self.log else { return Ok(None) };
        let file = File::open(path).map_err(|error| format!("--log {}: {error}", path.display()))?;
        Ok(Some(Box::new(BufReader::new(file))))
    }

    /// Prints the report, as text or by `to_json`; returns the exit status.
    /// # Errors
    /// One line, if it cannot be written.
    pub fn print(
        &self,
        report: &dyn Display,
        to_json: impl FnOnce() -> String,
        finding: Finding,
    ) -> Result<ExitCode, String> {
        let text = if self.json { to_json() } else { report.to_string() };
        print_line(format_args!("{}", text.trim_end()))?;
        Ok(match finding {
            Finding::Clear => ExitCode::SUCCESS,
            Finding::Found => ExitCode::from(FOUND),
        })
    }
}
