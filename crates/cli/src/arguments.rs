//! The command line.

use crate::bench::BenchCommand;
use crate::configuration::{ServeArguments, refusal_of_flag};
use crate::exit_status;
use crate::ping::PingArguments;
use crate::tools::{DumpArguments, RestoreArguments};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A document database that MongoDB's drivers and tools work with, and the lab that measures it.
#[derive(Parser)]
#[command(name = "bunko", version, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Start a server
    #[command(after_help = exit_status::help(exit_status::OF_SERVE))]
    Serve(ServeArguments),
    /// Measure this server, or any server of the MongoDB wire protocol
    #[command(subcommand, after_help = exit_status::help(exit_status::OF_BENCH))]
    Bench(Box<BenchCommand>),
    /// Write a database, or a whole server, to files or an archive
    #[command(after_help = exit_status::help(exit_status::OF_TOOLS))]
    Dump(Box<DumpArguments>),
    /// Read a dump back, ours or mongodump's
    #[command(after_help = exit_status::help(exit_status::OF_TOOLS))]
    Restore(Box<RestoreArguments>),
    /// Ask a server whether it answers, for health checks
    #[command(after_help = exit_status::help(exit_status::OF_PING))]
    Ping(PingArguments),
    /// Print the completions of a shell for this command line
    Completions { shell: Shell },
    /// Write the manual pages of all commands into a directory
    Man {
        #[arg(value_name = "DIRECTORY")]
        directory: PathBuf,
    },
}

/// Ends of program names that stand for a command. A prefix such as `bunko` or `mongo` may precede them.
const TOOLS: [&str; 2] = ["dump", "restore"];

impl Arguments {
    /// The process's own command line. A program called `bunkodump` or `mongorestore` needs no command.
    pub fn of_process() -> Self {
        let arguments = with_run(with_command(std::env::args_os().collect()));
        let error = match Self::try_parse_from(&arguments) {
            Ok(parsed) => return parsed,
            Err(error) => error,
        };
        match missing_flag(&arguments) {
            // The flag is not misspelt: mongod has it.
            Some(refusal) if error.use_stderr() => Self::command().error(ErrorKind::UnknownArgument, refusal).exit(),
            _ => error.exit(),
        }
    }
}

/// The refusal of the first flag of `serve` that only mongod supports.
fn missing_flag(arguments: &[OsString]) -> Option<String> {
    let (command, flags) = arguments.get(1..)?.split_first()?;
    (command == "serve").then(|| flags.iter().find_map(|flag| refusal_of_flag(flag.to_str()?)))?
}

/// Rewrites `bunko bench FILE` to `bunko bench run FILE`.
fn with_run(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let is_bench = arguments.get(1).is_some_and(|command| command == "bench");
    let is_file = arguments.get(2).is_some_and(|file| Path::new(file).extension().is_some_and(|end| end == "toml"));
    if is_bench && is_file {
        arguments.insert(2, "run".into());
    }
    arguments
}

fn with_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().and_then(|program| Path::new(program).file_name()?.to_str());
    let tool = name.and_then(|name| name.strip_prefix("bunko").or_else(|| name.strip_prefix("mongo")));
    if let Some(tool) = TOOLS.into_iter().find(|command| tool == Some(command)) {
        arguments.insert(1, tool.into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_scenario_file_is_run_without_the_word() {
        let line = |words: &[&str]| with_run(words.iter().map(OsString::from).collect());
        assert_eq!(line(&["bunko", "bench", "my.toml", "--json"]), ["bunko", "bench", "run", "my.toml", "--json"]);
        assert_eq!(line(&["bunko", "bench", "run", "my.toml"]), ["bunko", "bench", "run", "my.toml"]);
        assert_eq!(line(&["bunko", "bench", "toml"]), ["bunko", "bench", "toml"]);
        assert_eq!(line(&["bunko", "dump", "my.toml"]), ["bunko", "dump", "my.toml"]);
    }

    #[test]
    fn a_link_with_a_tools_name_is_the_tool() {
        let line = |words: &[&str]| with_command(words.iter().map(OsString::from).collect());
        assert_eq!(line(&["/bin/mongodump", "--gzip"]), ["/bin/mongodump", "dump", "--gzip"]);
        assert_eq!(line(&["bunkorestore"]), ["bunkorestore", "restore"]);
        assert_eq!(line(&["bunko", "dump"]), ["bunko", "dump"]);
        assert_eq!(line(&["mongod"]), ["mongod"]);
    }
}
