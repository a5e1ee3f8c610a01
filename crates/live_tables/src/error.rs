//! Reasons why a table ends.

use bunko_client::ClientError;
use std::{fmt, io};

/// Reason why a table ended before its last row.
#[derive(Debug)]
pub enum TableError {
    /// No server could be read at the start.
    Server(ClientError),
    /// The output could not be written.
    Output(io::Error),
    /// No thread could be started.
    Thread(io::Error),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(error) => error.fmt(f),
            Self::Output(error) => write!(f, "standard output: {error}"),
            Self::Thread(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for TableError {}
