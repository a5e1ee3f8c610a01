//! The command line of `bunko bench`.
//!
//! Built-in scenarios are subcommands, made from the lab's table: a new scenario file appears here by itself.

use crate::embedded::ServerOption;
use bunko_bench::WorkerPosition;
use bunko_bench::scenario::{BUILTIN, Override, Span};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use std::path::PathBuf;

/// Command of `bunko bench`.
#[derive(Debug)]
pub enum BenchCommand {
    /// Run a built-in scenario.
    Builtin(&'static str, RunArguments),
    /// Any other command.
    Verb(Verb),
}

/// The commands that are not scenarios.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the built-in scenarios, operations and document shapes
    List,
    /// Print the file of a built-in scenario, as an example for your own
    Show {
        /// The scenario's name
        scenario: String,
    },
    /// Run a scenario file
    Run {
        /// A TOML file
        file: PathBuf,
        #[command(flatten)]
        run: RunArguments,
    },
    /// Compare two reports: which is faster, by how much, and whether that is more than chance
    Compare {
        /// The report.json of the first run
        a: PathBuf,
        /// The report.json of the second run
        b: PathBuf,
        /// Print the comparison as JSON
        #[arg(long)]
        json: bool,
        /// Write the comparison as one HTML file
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Show a scenario's figures over time, and where they changed
    ///
    /// Exits with 2 if the newest change is for the worse.
    History {
        /// Files report.json, and folders whose files report.json are all read
        #[arg(required = true, num_args = 1.., value_name = "FOLDER|FILE")]
        paths: Vec<PathBuf>,
        /// Print the history as JSON
        #[arg(long)]
        json: bool,
        /// Write the history as one HTML file
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Compare two servers in one run that goes back and forth between them: A B B A A B
    ///
    /// Changes of the machine during the run affect both alike, so this finds smaller differences than 'compare'.
    Ab {
        /// Connection string of the first server
        #[arg(long, value_name = "URI")]
        a: String,
        /// Connection string of the second server
        #[arg(long, value_name = "URI")]
        b: String,
        /// A built-in scenario or a TOML file
        scenario: String,
        #[command(flatten)]
        run: CommonArguments,
    },
    /// Search the highest rate that keeps a latency objective
    FindMax {
        /// A built-in scenario or a TOML file
        scenario: String,
        #[command(flatten)]
        search: SearchArguments,
        /// The server to measure, as mongodb://host:port; without it the lab starts one
        #[arg(long)]
        uri: Option<String>,
        #[command(flatten)]
        embedded: EmbeddedArguments,
        #[command(flatten)]
        run: CommonArguments,
    },
    /// Draw a phase, second by second, as an SVG file: throughput, latency, disk and memory
    Chart {
        /// A report.json
        report: PathBuf,
        /// The phase [default: the longest one]
        #[arg(long)]
        phase: Option<String>,
        /// Which of several targets, by its label [default: the first]
        #[arg(long)]
        target: Option<String>,
        /// The SVG file to write
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Add up the reports of several generators (--worker) into one, exactly
    Merge {
        /// The report.json of every worker
        #[arg(required = true, num_args = 1..)]
        reports: Vec<PathBuf>,
        /// Folder for the merged report
        #[arg(long, value_name = "FOLDER")]
        output: Option<PathBuf>,
    },
}

/// How a scenario is run.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// A server to measure, as mongodb://user:password@host:port/?options; several are measured in turn. Without it
    /// the lab starts a server of its own on a temporary directory
    #[arg(long = "uri", value_name = "URI")]
    pub uris: Vec<String>,
    /// Be one of several generators that share the load: INDEX/COUNT, with INDEX from 0
    #[arg(long, value_name = "INDEX/COUNT", requires = "uris")]
    pub worker: Option<WorkerPosition>,
    /// Where a server of the lab's own keeps its data, and where files are allocated [default: the temporary directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,
    /// Where dumps are made and removed again, perhaps on another device [default: as --directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub archive_directory: Option<PathBuf>,
    /// Make filesystems of these types in image files and measure on each (needs root): ext3,ext4,xfs
    #[arg(long, value_name = "TYPES", value_delimiter = ',', conflicts_with = "uris")]
    pub loop_filesystems: Vec<String>,
    #[command(flatten)]
    pub embedded: EmbeddedArguments,
    #[command(flatten)]
    pub common: CommonArguments,
}

/// How the servers are started that the lab starts itself.
#[derive(Debug, Default, Args)]
pub struct EmbeddedArguments {
    /// Storage engine of a server that the lab starts; several are measured in turn: lsm,memory
    #[arg(long = "engine", value_name = "NAME", value_delimiter = ',')]
    pub engines: Vec<String>,
    /// A flag of 'bunko serve' for servers that the lab starts, such as cacheSizeGB=1; can be repeated
    #[arg(long = "server-option", value_name = "NAME=VALUE")]
    pub options: Vec<ServerOption>,
}

/// Arguments of every run.
#[derive(Debug, Args)]
pub struct CommonArguments {
    /// Change a setting of the scenario; settings that it sweeps take lists: --set load.connections=1,10,100
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// Bytes of all documents together: --set dataset.total-bytes=SIZE
    #[arg(long, value_name = "SIZE")]
    pub scale: Option<String>,
    /// Number of times that everything is run: --set repetitions=N
    #[arg(long, value_name = "N")]
    pub repetitions: Option<u32>,
    /// Drop the run's database if it exists; without this flag such a run is refused
    #[arg(long, value_name = "DATABASE")]
    pub drop: Option<String>,
    /// Folder for the report [default: bunko-bench/SCENARIO-TIME]
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
    /// Seconds without an answer after which a server given by --uri is given up [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub server_timeout: Option<u32>,
}

/// Arguments of the search that `find-max` makes.
#[derive(Debug, Args)]
pub struct SearchArguments {
    /// Latency that 99 of 100 requests must keep
    #[arg(long, value_name = "TIME", group = "objective")]
    pub p99: Option<Span>,
    /// Latency that 999 of 1,000 requests must keep
    #[arg(long, value_name = "TIME", group = "objective")]
    pub p999: Option<Span>,
    /// The phase whose rate is varied [default: the last]
    #[arg(long)]
    pub phase: Option<String>,
    /// The first rate tried, in requests per second
    #[arg(long, value_name = "RATE", default_value_t = 1_000.0)]
    pub start: f64,
    /// Stop when the highest rate is known this closely
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    pub resolution: f64,
    /// Largest number of rates to try
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub trials: u32,
}

impl Subcommand for BenchCommand {
    fn augment_subcommands(command: Command) -> Command {
        let command = BUILTIN.iter().fold(command, |command, builtin| {
            command.subcommand(RunArguments::augment_args(Command::new(builtin.name)).about(builtin.about()))
        });
        Verb::augment_subcommands(command).subcommand_required(true).arg_required_else_help(true)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        BUILTIN.iter().any(|builtin| builtin.name == name) || Verb::has_subcommand(name)
    }
}

impl FromArgMatches for BenchCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut names = BUILTIN.iter().map(|builtin| builtin.name);
        let scenario =
            matches.subcommand().and_then(|(name, matches)| Some((names.find(|known| *known == name)?, matches)));
        match scenario {
            Some((name, matches)) => Ok(Self::Builtin(name, RunArguments::from_arg_matches(matches)?)),
            None => Verb::from_arg_matches(matches).map(Self::Verb),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
