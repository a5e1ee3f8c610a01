//! Parts that the command lines of `bunko dump` and `bunko restore` share.

mod compression;
mod connection;
mod dump;
mod in_process;
mod restore;
mod tls_arguments;

pub use dump::DumpArguments;
pub use restore::RestoreArguments;
