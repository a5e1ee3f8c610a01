//! `bunko top`: mongotop's flags.

use super::address::{AddressArguments, PositionalArguments};
use super::refuse;
use super::terminal::{Terminal, end_on_signal};
use crate::exit_status;
use bunko_host::Clock;
use bunko_live_tables::{Format, TopOptions, top};
use clap::Args;
use std::process::ExitCode;
use std::time::Duration;

/// Flags as mongotop's.
#[derive(Args)]
#[command(disable_help_flag = true, after_help = exit_status::help(exit_status::OF_TABLES))]
pub struct TopArguments {
    #[command(flatten)]
    positional: PositionalArguments,
    /// End after that many tables; 0 for no end
    #[arg(long, short = 'n', value_name = "N", default_value = "0")]
    rowcount: u64,
    /// Show one JSON object for each interval, with all collections
    #[arg(long)]
    json: bool,
    /// mongotop's times of locks
    #[arg(long, hide = true)]
    locks: bool,
    /// Print this help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    #[command(flatten)]
    address: AddressArguments,
}

impl TopArguments {
    /// Shows the tables.
    /// # Errors
    /// A sentence, if the server cannot be read, or a table cannot be written.
    pub fn run(&self) -> Result<ExitCode, String> {
        let options = match self.options() {
            Ok(options) => options,
            Err(message) => return Ok(refuse(&message)),
        };
        end_on_signal()?;
        top(&options, &Clock::machine(), &mut Terminal).map_err(|error| error.to_string())?;
        Ok(ExitCode::SUCCESS)
    }

    fn options(&self) -> Result<TopOptions, String> {
        if self.locks {
            return Err("--locks is not supported: servers since MongoDB 3.0, and Bunko, have no locks of databases \
                        whose times could be shown"
                .to_owned());
        }
        let (seconds, uri) = self.positional.parse()?;
        Ok(TopOptions {
            uri: self.address.uri("top", uri)?,
            interval: Duration::from_secs(seconds),
            rows: Some(self.rowcount).filter(|rows| *rows > 0),
            format: if self.json { Format::Json } else { Format::Text },
        })
    }
}
