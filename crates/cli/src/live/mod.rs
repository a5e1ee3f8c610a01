//! The command lines of `bunko advise`, `bunko check`, `bunko stat`, `bunko top` and `bunko sample`, which work with
//! servers that run.

mod address;
mod advise;
mod check;
mod report;
mod sample;
mod stat;
mod terminal;
mod top;

pub use advise::AdviseArguments;
pub use check::CheckArguments;
pub use sample::SampleArguments;
pub use stat::StatArguments;
pub use top::TopArguments;

use crate::exit_status;
use std::process::ExitCode;

/// Reports a wrong command line.
fn refuse(message: &str) -> ExitCode {
    eprintln!("bunko: {message}");
    ExitCode::from(exit_status::WRONG_CONFIGURATION.number)
}
