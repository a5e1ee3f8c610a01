//! `bunko check`: says before a move which features of a running server would not work here.

use super::refuse;
use super::report::{Finding, ReportArguments};
use crate::configuration::refusals_of_settings;
use crate::tools::InProcess;
use bunko_client::ReadPreference;
use bunko_inspection::check;
use bunko_inspection::check::{CheckOptions, Report};
use bunko_tools::Remote;
use clap::Args;
use std::io::BufRead;
use std::process::ExitCode;

/// Flags of `bunko check`.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct CheckArguments {
    #[command(flatten)]
    report: ReportArguments,
}

impl CheckArguments {
    /// Checks the server, and prints the report.
    /// # Errors
    /// A sentence that says which server did not answer.
    pub fn run(&self) -> Result<ExitCode, String> {
        let mut uri = match self.report.uri("check") {
            Ok(uri) => uri,
            Err(message) => return Ok(refuse(&message)),
        };
        // Profiles and counters are each member's own; the primary has those of the writes.
        uri.read_preference = ReadPreference::Primary;
        let log = self.report.open_log()?;
        let source = Remote::new(uri).map_err(|error| error.to_string())?;
        let report = rehearse(&source, log)?;
        let finding = if report.is_clear() { Finding::Clear } else { Finding::Found };
        self.report.print(&report, || report.to_json(), finding)
    }
}

/// Runs the check against a server in this process, which keeps its data in memory.
fn rehearse(source: &Remote, log: Option<Box<dyn BufRead>>) -> Result<Report, String> {
    // A new directory: another user of the machine cannot have put anything into it.
    let directory = tempfile::Builder::new().prefix("bunko-check-").tempdir();
    let directory =
        directory.map_err(|error| format!("no directory in {}: {error}", std::env::temp_dir().display()))?;
    let rehearsal = InProcess::open(directory.path(), Some("memory"))?;
    let options = CheckOptions { log, configuration: Some(&refusals_of_settings) };
    let checked = check(source, &rehearsal, options).map_err(|error| error.to_string());
    let closed = rehearsal.close();
    let report = checked?;
    closed.map(|()| report)
}
