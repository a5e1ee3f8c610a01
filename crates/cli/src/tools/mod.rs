//! `bunko dump` and `bunko restore`: what their command lines have in common.

mod compression;
mod connection;
mod dump;
mod in_process;
mod restore;
mod tls_arguments;

pub use dump::DumpArguments;
pub use restore::RestoreArguments;
