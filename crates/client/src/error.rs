//! Errors between a caller and a server.

use crate::uri::Mechanism;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use std::time::Duration;
use std::{fmt, io};

/// A command that could not be run or was refused.
#[derive(Debug)]
pub enum ClientError {
    /// No connection could be made.
    Unreachable {
        /// `host:port` as the caller gave it.
        address: String,
        /// How long the client tried.
        timeout: Duration,
        /// The last attempt's error.
        cause: io::Error,
    },
    /// Servers answered, but none has the role that the URI asks for.
    NoSuitableServer {
        /// All hosts as the caller gave them.
        address: String,
        /// How long the client searched.
        timeout: Duration,
        /// The wanted role, as its read preference.
        wanted: &'static str,
        /// The roles found instead, host by host.
        found: String,
    },
    /// A server that answers does not belong to the replica set that the URI names.
    WrongReplicaSet {
        /// `host:port` of the server.
        address: String,
        /// The set that it should belong to.
        expected: String,
        /// The server's set; `None` where it belongs to none.
        found: Option<String>,
    },
    /// TLS could not be set up.
    Tls {
        /// `host:port` as the caller gave it.
        address: String,
        /// The reason, with the file's name where a file is at fault.
        detail: String,
    },
    /// The server did not accept the credential, or could not prove that it knows the password.
    Authentication {
        /// `host:port` of the server.
        address: String,
        /// The user's name.
        user: String,
        /// The database that should know the user.
        source: String,
        /// The mechanism that was used.
        mechanism: Mechanism,
        /// The server's message, or what is wrong with it; never the password.
        detail: String,
    },
    /// An established connection broke.
    Disconnected {
        /// `host:port` as the caller gave it.
        address: String,
        /// The socket's error.
        cause: io::Error,
    },
    /// The server sent something that is not a valid reply.
    Protocol {
        /// `host:port` as the caller gave it.
        address: String,
        /// A description of the violation.
        detail: String,
    },
    /// The server answered with an error.
    Command(CommandError),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { address, timeout, cause } => {
                write!(f, "no MongoDB server reached at {address} within {} s: {cause}", timeout.as_secs_f64())
            }
            Self::NoSuitableServer { address, timeout, wanted, found } => {
                write!(f, "no {wanted} found at {address} within {} s: {found}", timeout.as_secs_f64())
            }
            Self::WrongReplicaSet { address, expected, found: Some(found) } => {
                write!(f, "{address} belongs to the replica set '{found}', not to '{expected}'")
            }
            Self::WrongReplicaSet { address, expected, found: None } => {
                write!(f, "{address} does not belong to a replica set, and '{expected}' was asked for")
            }
            Self::Tls { address, detail } => write!(f, "TLS with {address} failed: {detail}"),
            Self::Authentication { address, user, source, mechanism, detail } => {
                write!(f, "authentication of '{user}' on '{source}' by {mechanism} at {address} failed: {detail}")
            }
            Self::Disconnected { address, cause } if is_timeout(cause) => {
                write!(f, "{address} did not answer in time")
            }
            Self::Disconnected { address, cause } => write!(f, "connection to {address} lost: {cause}"),
            Self::Protocol { address, detail } => write!(f, "{address} broke the wire protocol: {detail}"),
            Self::Command(error) => error.fmt(f),
        }
    }
}

/// Whether a blocking socket timed out. The system reports that as a socket that would block.
pub(crate) fn is_timeout(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl std::error::Error for ClientError {}

impl ClientError {
    /// The error for a host to which no connection is tried.
    pub fn unreachable(address: &str, reason: &str) -> Self {
        let cause = io::Error::other(reason.to_owned());
        Self::Unreachable { address: address.to_owned(), timeout: Duration::ZERO, cause }
    }
}

impl From<CommandError> for ClientError {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

/// A server's error for a command that it refused, or for one of the command's writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// The server's error code; 0 where it gave none.
    pub code: i32,
    /// The code's name; empty where the server gave none.
    pub code_name: String,
    /// The server's message.
    pub message: String,
}

impl CommandError {
    /// MongoDB's `DuplicateKey`.
    pub const DUPLICATE_KEY: i32 = 11000;
    /// MongoDB's `NamespaceExists`.
    pub const NAMESPACE_EXISTS: i32 = 48;
    /// MongoDB's `NamespaceNotFound`.
    pub const NAMESPACE_NOT_FOUND: i32 = 26;

    /// Reads `code`, `codeName` and `errmsg` of a reply, a write error or a write concern error.
    pub fn read(document: DocumentRef<'_>) -> Self {
        let text = |name| document.get(name).and_then(ValueRef::as_str).unwrap_or_default().to_owned();
        let code = match document.get("code") {
            Some(ValueRef::Int32(code)) => code,
            Some(ValueRef::Int64(code)) => code as i32,
            Some(ValueRef::Double(code)) => code as i32,
            _ => 0,
        };
        Self { code, code_name: text("codeName"), message: text("errmsg") }
    }

    /// A reply that is neither a success nor a well-formed refusal.
    pub(crate) fn unreadable(reply: DocumentRef<'_>) -> Self {
        let shown = DocumentBuf::parse(reply.as_bytes().to_vec()).map_or_else(
            |error| format!("malformed ({error})"),
            |document| format!("{document:?}").chars().take(200).collect(),
        );
        Self { code: 0, code_name: String::new(), message: format!("the reply has no ok field: {shown}") }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code_name.as_str(), self.code) {
            ("", 0) => f.write_str(&self.message),
            ("", code) => write!(f, "{} (code {code})", self.message),
            (name, code) => write!(f, "{} (code {code}, {name})", self.message),
        }
    }
}

impl std::error::Error for CommandError {}
