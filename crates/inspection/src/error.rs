//! Errors of an inspection.

use bunko_client::{ClientError, CommandError};
use std::fmt;

/// Why an inspection ended early.
#[derive(Debug)]
pub enum InspectionError {
    /// A server did not answer.
    Connection {
        /// Name of the server.
        server: String,
        /// The error of the connection.
        error: Box<ClientError>,
    },
    /// A server's reply to a command is not what the protocol says.
    Reply {
        /// Name of the server.
        server: String,
        /// The part of the reply that is missing or wrong.
        detail: String,
    },
    /// The server refused a command without which nothing can be inspected.
    Refused {
        /// Name of the server.
        server: String,
        /// The command that was refused.
        command: &'static str,
        /// The server's refusal.
        refusal: CommandError,
    },
    /// The log could not be read.
    Log(std::io::Error),
}

impl fmt::Display for InspectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection { server, error } => write!(f, "{server}: {error}"),
            Self::Reply { server, detail } => write!(f, "{server}: {detail}"),
            Self::Refused { server, command, refusal } => write!(f, "{server}: {command}: {refusal}"),
            Self::Log(error) => write!(f, "the log: {error}"),
        }
    }
}

impl std::error::Error for InspectionError {}
