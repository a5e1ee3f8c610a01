//! The command line.

use bunko_bench::Compressible;
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
    Bench(BenchArguments),
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

#[derive(Debug, Args)]
pub struct BenchArguments {
    #[command(subcommand)]
    pub scenario: Scenario,
}

#[derive(Debug, Subcommand)]
pub enum Scenario {
    /// Single-document inserts by connections x requests in flight (experiment E1)
    ///
    /// Without --uri it starts a server of its own on a temporary directory.
    InsertMatrix(InsertMatrixArguments),
}

#[derive(Debug, Args)]
pub struct InsertMatrixArguments {
    /// The server to measure, as mongodb://host:port
    #[arg(long)]
    pub uri: Option<String>,
    /// Connections of each cell
    #[arg(long, value_delimiter = ',', default_value = "1,1,100,100")]
    pub connections: Vec<usize>,
    /// Requests in flight on each connection of each cell
    #[arg(long, value_delimiter = ',', default_value = "1,100,1,100")]
    pub in_flight: Vec<usize>,
    /// Documents of each cell
    #[arg(long, default_value_t = 200_000)]
    pub documents: u64,
    /// Encoded size of a document in bytes
    #[arg(long, default_value_t = 1_000)]
    pub document_bytes: usize,
    /// How far the documents compress, 1 = not at all; experiment E1's padding was about 6.8
    #[arg(long, value_name = "RATIO", default_value = "1")]
    pub compressible: Compressible,
    /// What is measured: insert, find (by _id) or inc ($inc by _id)
    #[arg(long, default_value = "insert", value_parser = operation_names())]
    pub operation: String,
    /// Documents per insert command
    #[arg(long, default_value_t = 1)]
    pub batch: usize,
    /// 0, 1, majority or j
    #[arg(long)]
    pub write_concern: Option<String>,
    /// Requests per second in an open loop; latency then counts from the intended start
    #[arg(long)]
    pub rate: Option<f64>,
    /// Threads of the load generator
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// How often the whole matrix is run
    #[arg(long, default_value_t = 1)]
    pub repetitions: usize,
    /// The same seed gives the same documents
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the report to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

fn operation_names() -> clap::builder::PossibleValuesParser {
    let names = bunko_bench::operation::OPERATIONS.iter().map(|operation| operation.name);
    clap::builder::PossibleValuesParser::new(names.collect::<Vec<_>>())
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
