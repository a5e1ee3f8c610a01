//! The one binary: picks engine, clock and disk, parses flags and mongod-style YAML.

mod arguments;
mod bench;
mod config_file;
mod embedded;
mod log_format;
mod serve;
mod settings;

use arguments::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Bench(arguments) => bench::run(arguments),
    };
    match outcome {
        Ok(code) => code,
        Err(message) => {
            eprintln!("bunko: {message}");
            ExitCode::FAILURE
        }
    }
}
