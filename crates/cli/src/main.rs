//! The one binary: picks engine, clock and disk, parses flags and mongod-style YAML.
//!
//! Time, disk and network are handed down from here. `serve` opens the store, then the catalog, then the sockets, and
//! closes them in the opposite order.
//!
//! **Invariant:** a setting without effect is refused by name.
//! **Invariant:** no thread that serves clients waits for a reader of standard error or standard output (`console`).

mod abandonment;
mod access;
mod allocator;
mod arguments;
mod audit_log;
mod bench;
mod configuration;
mod console;
mod disk_reserve;
mod embedded;
mod exit_status;
mod file_modes;
mod first_user;
mod http_ports;
mod init_scripts;
mod init_stop;
mod key_file;
mod live;
mod local_server;
mod log_file;
mod log_format;
mod managed_service;
mod member_connections;
mod member_file;
mod memory_budget;
mod memory_pressure;
mod open_files;
mod own_threads;
mod pages;
mod panics;
mod passwords;
mod pid_file;
mod ping;
mod printed;
mod restart;
mod script_workers;
mod secret_arguments;
mod serve;
mod shell;
mod signals;
mod span_export;
mod start_report;
mod stop;
mod tools;
mod watch;

use arguments::{Arguments, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    if script_workers::is_one() {
        allocator::use_small_pages();
        // The server waits for a worker's replies.
        bunko_host::use_short_slices();
        return bunko_javascript::work_for_server();
    }
    file_modes::keep_new_files_private();
    let command = Arguments::of_process().command;
    // `serve` and `bench` read their arguments again: a server to start itself anew, the lab to report its command
    // line.
    if !matches!(command, Command::Serve(_) | Command::Bench(_)) {
        secret_arguments::hide();
    }
    let outcome = match command {
        Command::Serve(arguments) => {
            allocator::use_small_pages();
            bunko_host::use_short_slices();
            serve::run(&arguments)
        }
        Command::Bench(arguments) => {
            allocator::use_small_pages();
            bench::run(*arguments)
        }
        Command::Backup(arguments) => arguments.run(),
        Command::Upgrade(arguments) => arguments.run(),
        Command::Dump(arguments) => arguments.run(),
        Command::Restore(arguments) => arguments.run(),
        Command::Copy(arguments) => arguments.run(),
        Command::Import(arguments) => arguments.run(),
        Command::Export(arguments) => arguments.run(),
        Command::Ping(arguments) => arguments.run(),
        Command::Advise(arguments) => arguments.run(),
        Command::Check(arguments) => arguments.run(),
        Command::Shell(arguments) => arguments.run(),
        Command::Stat(arguments) => arguments.run(),
        Command::Top(arguments) => arguments.run(),
        Command::Sample(arguments) => arguments.run(),
        Command::Completions { shell } => pages::print_completions(shell),
        Command::Man { directory } => pages::write_man_pages(&directory),
    };
    match outcome {
        Ok(code) => code,
        Err(message) => {
            eprintln!("bunko: {message}");
            ExitCode::FAILURE
        }
    }
}
