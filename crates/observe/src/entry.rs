//! A finished operation, with its outcome and its client, as the profiler and the log record it.

use crate::lock_modes::Locking;
use crate::observation::Observation;
use bunko_access::Name;
use bunko_bson::{DocumentBuf, Value};
use bunko_errors::Failure;
use bunko_traces::OperationTrace;
use std::cell::OnceCell;
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
    /// The name of the command; of a statement, the name of its command.
    pub operation: &'static str,
    /// The database whose settings apply.
    pub database: &'e str,
    /// The namespace that is shown.
    pub namespace: String,
    /// The collection that the operation works on, of that database.
    pub collection: Option<&'e str>,
    /// The command or the statement, without its secrets.
    pub command: DocumentBuf,
    /// Copies the command without its large fields, for log lines; `None` for a statement.
    pub small_fields: Option<&'e dyn Fn() -> DocumentBuf>,
    /// Computes the hash of the query's shape, if the command has one; `None` for a statement.
    pub shape_hash: Option<&'e dyn Fn() -> Option<String>>,
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
    /// The value of `comment`.
    pub comment: Option<&'a Value>,
    /// Ids of the command's trace. The first span of the command, or of one of its statements, chooses them.
    pub trace: &'a OnceCell<OperationTrace>,
    /// Time at which the operation ended, in milliseconds since 1970.
    pub ended_ms: i64,
    /// Processor time of the whole command; `None` if it was not measured.
    pub processor_time: Option<Duration>,
}
