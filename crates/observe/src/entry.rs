//! A finished operation, with its outcome and its client, as the profiler and the log record it.

use crate::lock_modes::Locking;
use crate::observation::Observation;
use bunko_access::Name;
use bunko_bson::DocumentBuf;
use bunko_errors::Failure;
use std::fmt::Display;
use std::net::IpAddr;
use std::time::Duration;

/// A finished operation.
pub struct Entry<'e> {
    /// The value of `op` in `system.profile`.
    pub op: &'static str,
    /// The value of `type` in the log line.
    pub log_type: &'static str,
    /// The component of the log line.
    pub component: &'static str,
    /// The database whose settings apply.
    pub database: &'e str,
    /// The namespace that is shown.
    pub namespace: String,
    /// The command or the statement, without its secrets.
    pub command: DocumentBuf,
    /// Copies the command without its large fields, for log lines; `None` for a statement.
    pub small_fields: Option<&'e dyn Fn() -> DocumentBuf>,
    /// The client, and its request.
    pub sender: Sender<'e>,
    /// The effects of the operation.
    pub observation: &'e Observation,
    /// Duration, failure and reply of the operation.
    pub outcome: Outcome<'e>,
    /// The locks that mongod would hold.
    pub locking: Locking,
    /// Whether `system.profile` may record it: MongoDB leaves out operations without a collection.
    pub is_profiled: bool,
}

/// The outcome of an operation.
pub struct Outcome<'a> {
    /// How long the operation ran.
    pub elapsed: Duration,
    /// The operation's failure; `None` if it succeeded.
    pub failure: Option<&'a Failure>,
    /// Length of the reply in bytes; `None` for a statement, whose result is only a part of a reply.
    pub reply_bytes: Option<usize>,
}

/// The client of a finished operation, and its request.
pub struct Sender<'a> {
    /// The number of the connection.
    pub connection: i32,
    /// The client's end of the connection.
    pub peer: &'a dyn Display,
    /// The client's address, if it has one.
    pub ip: Option<IpAddr>,
    /// The name that the client's application gave itself.
    pub application: Option<&'a str>,
    /// The user who is logged in.
    pub user: Option<&'a Name>,
    /// The kind of message that the request came in.
    pub protocol: &'static str,
    /// Length of the request's body in bytes.
    pub request_bytes: usize,
    /// Time at which the operation ended, in milliseconds since 1970.
    pub ended_ms: i64,
    /// Processor time of the whole command; `None` if it was not measured.
    pub processor_time: Option<Duration>,
}
