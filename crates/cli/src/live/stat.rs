//! `bunko stat`: mongostat's flags.

use super::address::{AddressArguments, PositionalArguments};
use super::refuse;
use super::terminal::{Terminal, end_on_signal};
use crate::exit_status;
use bunko_host::Clock;
use bunko_live_tables::{Choice, Field, Format, Headers, Members, StatOptions, Units, columns, stat};
use clap::Args;
use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

/// Flags as mongostat's.
#[derive(Args)]
#[command(disable_help_flag = true, after_help = after_help())]
pub struct StatArguments {
    #[command(flatten)]
    positional: PositionalArguments,
    /// End after that many rows of each server; 0 for no end
    #[arg(long, short = 'n', value_name = "N", default_value = "0")]
    rowcount: u64,
    /// Show all members of the servers' sets
    #[arg(long)]
    discover: bool,
    /// Show no headers
    #[arg(long, conflicts_with = "json")]
    noheaders: bool,
    /// Show one JSON object for each interval
    #[arg(long)]
    json: bool,
    /// Show these fields only: columns, or paths in serverStatus, as PATH.diff() or PATH.rate() too; =HEADER names one
    #[arg(short = 'o', value_name = "FIELDS", conflicts_with = "also")]
    only: Option<String>,
    /// Show these fields after the usual columns
    #[arg(short = 'O', value_name = "FIELDS")]
    also: Option<String>,
    /// Show all columns
    #[arg(long, conflicts_with_all = ["only", "also"])]
    all: bool,
    /// Show sizes with three digits and a unit; false shows bytes
    #[arg(
        long = "humanReadable",
        value_name = "BOOL",
        default_value = "true",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    human_readable: bool,
    /// mongostat's screen of its own
    #[arg(long, short = 'i', hide = true)]
    interactive: bool,
    /// Print this help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    #[command(flatten)]
    address: AddressArguments,
}

fn after_help() -> String {
    let names = columns().fold("Columns:".to_owned(), |mut text, (name, meaning)| {
        let _ = write!(text, "\n  {name:<8} {meaning}");
        text
    });
    format!("{names}\n\n{}", exit_status::help(exit_status::OF_TABLES))
}

impl StatArguments {
    /// Shows the table.
    /// # Errors
    /// A sentence, if no server can be read, or the table cannot be written.
    pub fn run(&self) -> Result<ExitCode, String> {
        let options = match self.options() {
            Ok(options) => options,
            Err(message) => return Ok(refuse(&message)),
        };
        end_on_signal()?;
        stat(&options, &Clock::machine(), &mut Terminal).map_err(|error| error.to_string())?;
        Ok(ExitCode::SUCCESS)
    }

    fn options(&self) -> Result<StatOptions, String> {
        if self.interactive {
            return Err("--interactive is not supported yet".to_owned());
        }
        let (seconds, uri) = self.positional.parse()?;
        let choice = match (&self.only, &self.also) {
            (Some(only), _) => Choice::Only(Field::parse_list(only).map_err(|error| format!("-o: {error}"))?),
            (None, Some(also)) => Choice::Also(Field::parse_list(also).map_err(|error| format!("-O: {error}"))?),
            (None, None) if self.all => Choice::All,
            (None, None) => Choice::Usual,
        };
        Ok(StatOptions {
            uri: self.address.uri("stat", uri)?,
            members: if self.discover { Members::Discovered } else { Members::Named },
            interval: Duration::from_secs(seconds),
            rows: Some(self.rowcount).filter(|rows| *rows > 0),
            choice,
            format: if self.json { Format::Json } else { Format::Text },
            headers: if self.noheaders { Headers::Hidden } else { Headers::Shown },
            units: if self.human_readable { Units::Readable } else { Units::Bytes },
        })
    }
}
