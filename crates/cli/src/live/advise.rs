//! `bunko advise`: says which indexes of a running server are missing or useless.

use super::refuse;
use super::report::{Finding, ReportArguments};
use bunko_host::Clock;
use bunko_inspection::advise;
use bunko_inspection::advise::AdviceOptions;
use bunko_tools::Remote;
use clap::Args;
use std::process::ExitCode;

/// Flags of `bunko advise`.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct AdviseArguments {
    #[command(flatten)]
    report: ReportArguments,
    /// Report an unused index only if its uses have been counted for this many days
    #[arg(long = "unused-days", value_name = "DAYS", default_value = "7", value_parser = clap::value_parser!(u64).range(0..=3650))]
    unused_days: u64,
}

impl AdviseArguments {
    /// Reads the server, and prints the report.
    /// # Errors
    /// A sentence that says why the server could not be read.
    pub fn run(&self) -> Result<ExitCode, String> {
        let uri = match self.report.uri("advise") {
            Ok(uri) => uri,
            Err(message) => return Ok(refuse(&message)),
        };
        let log = self.report.open_log()?;
        let server = Remote::new(uri).map_err(|error| error.to_string())?;
        let options = AdviceOptions { log, unused_days: self.unused_days, now_ms: Clock::machine().now_ms() };
        let report = advise(&server, options).map_err(|error| error.to_string())?;
        let is_clear = report.advice.is_empty() && report.skipped.is_empty();
        let finding = if is_clear { Finding::Clear } else { Finding::Found };
        self.report.print(&report, || report.to_json(), finding)
    }
}
