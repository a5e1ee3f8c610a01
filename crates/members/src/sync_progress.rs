//! How far an initial sync is.

use std::time::Instant;

/// An initial sync, as `replSetGetStatus` shows it.
#[derive(Clone, Debug)]
pub struct SyncProgress {
    /// `host:port` of the member from which the data are copied.
    pub source: String,
    /// When the first attempt began.
    pub began: Instant,
    /// Number of attempts that have failed.
    pub failed_attempts: i64,
    /// Bytes of all files; 0 while they are not known.
    pub bytes: u64,
    /// Bytes that have arrived.
    pub arrived_bytes: u64,
    /// Why the last attempt failed.
    pub failure: Option<String>,
}
