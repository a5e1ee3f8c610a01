//! The command line.

use crate::bench::BenchCommand;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// A document database that MongoDB's drivers and tools work with, and the lab that measures it.
#[derive(Debug, Parser)]
#[command(name = "bunko", version, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a server
    Serve(ServeArguments),
    /// Measure this server, or any server of the MongoDB wire protocol
    #[command(subcommand)]
    Bench(BenchCommand),
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON document a line, with mongod's fields
    Json,
    /// For reading
    Text,
}

/// Flags go before the configuration file.
#[derive(Debug, Default, Args)]
pub struct ServeArguments {
    /// Data directory [default: ./bunko-data]
    #[arg(long, value_name = "DIRECTORY")]
    pub dbpath: Option<PathBuf>,
    /// Port to listen on; 0 takes a free one [default: 27017]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Addresses to listen on, comma-separated [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESSES", alias = "bind_ip")]
    pub bind_ip: Option<String>,
    /// A YAML file as mongod takes it
    #[arg(long, short = 'f', value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How log lines look [default: text on a terminal, json elsewhere]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Most connections at once [default: 65536]
    #[arg(long, value_name = "COUNT", alias = "maxConns")]
    pub max_connections: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
