//! The command line.

use crate::bench::BenchCommand;
use crate::configuration::{ServeArguments, refusal_of_flag};
use crate::exit_status;
use crate::live::{AdviseArguments, CheckArguments, SampleArguments, StatArguments, TopArguments};
use crate::ping::PingArguments;
use crate::shell::ShellArguments;
use crate::tools::{
    BackupArguments, CopyArguments, DumpArguments, ExportArguments, ImportArguments, RestoreArguments, UpgradeArguments,
};
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
    /// Copy a server's files and its log, to restore them as of any moment
    #[command(after_help = exit_status::help(exit_status::OF_BACKUP))]
    Backup(Box<BackupArguments>),
    /// Say what a start of this version would do with a data directory
    #[command(after_help = exit_status::help(exit_status::OF_UPGRADE))]
    Upgrade(UpgradeArguments),
    /// Restore a dump, ours or mongodump's, or a backup
    #[command(after_help = exit_status::help(exit_status::OF_TOOLS))]
    Restore(Box<RestoreArguments>),
    /// Copy a running server to another one, and follow its changes
    #[command(after_help = exit_status::help(exit_status::OF_COPY))]
    Copy(Box<CopyArguments>),
    /// Read documents from JSON, CSV, TSV or BSON into a collection
    #[command(after_help = exit_status::help(exit_status::OF_TEXT_TOOLS))]
    Import(Box<ImportArguments>),
    /// Write the documents of a collection as JSON, CSV, TSV, BSON or Parquet
    #[command(after_help = exit_status::help(exit_status::OF_TEXT_TOOLS))]
    Export(Box<ExportArguments>),
    /// Ask a server whether it answers, for health checks
    #[command(after_help = exit_status::help(exit_status::OF_PING))]
    Ping(PingArguments),
    /// Say which indexes of a running server are missing or useless, by its operations
    #[command(after_help = exit_status::help(exit_status::OF_ADVISE))]
    Advise(Box<AdviseArguments>),
    /// Say which features of a running server, such as mongod, would not work here
    #[command(after_help = exit_status::help(exit_status::OF_CHECK))]
    Check(Box<CheckArguments>),
    /// Run scripts on a server, from files or typed in: mongosh's commands, without Node
    #[command(after_help = exit_status::help(exit_status::OF_SHELL))]
    Shell(Box<ShellArguments>),
    /// Show what servers do, a row for each second: mongostat's columns
    Stat(Box<StatArguments>),
    /// Show the time that each collection takes: mongotop's table
    Top(Box<TopArguments>),
    /// Load a small data set to try things with
    Sample(Box<SampleArguments>),
    /// Print the completions of a shell for this command line
    Completions { shell: Shell },
    /// Write the manual pages of all commands into a directory
    Man {
        #[arg(value_name = "DIRECTORY")]
        directory: PathBuf,
    },
}

/// Names of programs that stand for a command: those of MongoDB, and `bunkodump` and the like.
const PROGRAMS: [(&str, &str); 17] = [
    ("mongod", "serve"),
    ("bunkod", "serve"),
    ("mongosh", "shell"),
    // The name of the older shell, in health checks that were written for it.
    ("mongo", "shell"),
    ("bunkosh", "shell"),
    ("mongodump", "dump"),
    ("bunkodump", "dump"),
    ("mongorestore", "restore"),
    ("bunkorestore", "restore"),
    ("mongoimport", "import"),
    ("bunkoimport", "import"),
    ("mongoexport", "export"),
    ("bunkoexport", "export"),
    ("mongostat", "stat"),
    ("bunkostat", "stat"),
    ("mongotop", "top"),
    ("bunkotop", "top"),
];

impl Arguments {
    /// The process's own command line. A program called `mongosh` or `bunkodump` needs no command.
    pub fn of_process() -> Self {
        let arguments = with_run(of_image(with_command(std::env::args_os().collect())));
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

/// The refusal of the first flag of `serve` that only mongod supports; `None` if there is no such flag.
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

/// The image's entry point is `serve --config FILE`. As in MongoDB's images, the name of a program after it stands for
/// that program.
fn of_image(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let is_entry_point = |[command, flag]: [&OsString; 2]| command == "serve" && flag == "--config";
    let (Some(command), Some(flag), Some(name)) = (arguments.get(1), arguments.get(2), arguments.get(4)) else {
        return arguments;
    };
    let program = PROGRAMS.iter().find(|(program, _)| name == program);
    match program.filter(|_| is_entry_point([command, flag])) {
        Some((_, "serve")) => drop(arguments.remove(4)),
        Some((_, command)) => drop(arguments.splice(1..=4, [(*command).into()])),
        None => {}
    }
    arguments
}

fn with_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().and_then(|program| Path::new(program).file_name()?.to_str());
    if let Some((_, command)) = PROGRAMS.iter().find(|(program, _)| name == Some(program)) {
        arguments.insert(1, (*command).into());
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
        assert_eq!(line(&["/bin/mongoimport", "f.json"]), ["/bin/mongoimport", "import", "f.json"]);
        assert_eq!(line(&["mongoexport", "--pretty"]), ["mongoexport", "export", "--pretty"]);
        assert_eq!(line(&["bunko", "dump"]), ["bunko", "dump"]);
        assert_eq!(line(&["/bin/mongod", "--dbpath", "d"]), ["/bin/mongod", "serve", "--dbpath", "d"]);
        assert_eq!(line(&["mongosh", "--quiet"]), ["mongosh", "shell", "--quiet"]);
        assert_eq!(line(&["mongostat", "-n", "1"]), ["mongostat", "stat", "-n", "1"]);
        assert_eq!(line(&["/bin/mongotop"]), ["/bin/mongotop", "top"]);
        assert_eq!(line(&["/usr/bin/mongo", "--quiet"]), ["/usr/bin/mongo", "shell", "--quiet"]);
        assert_eq!(line(&["mongos"]), ["mongos"]);
    }

    #[test]
    fn a_program_named_behind_the_images_entry_point_is_that_program() {
        let line = |words: &[&str]| of_image(words.iter().map(OsString::from).collect());
        let served = ["bunko", "serve", "--config", "c", "--replSet", "rs0"];
        assert_eq!(line(&["bunko", "serve", "--config", "c", "mongod", "--replSet", "rs0"]), served);
        assert_eq!(line(&served), served);
        assert_eq!(line(&["bunko", "serve", "--config", "c", "mongosh", "--quiet"]), ["bunko", "shell", "--quiet"]);
        assert_eq!(line(&["bunko", "serve", "--dbpath", "d", "mongod"]), ["bunko", "serve", "--dbpath", "d", "mongod"]);
    }
}
