//! The own record of a dump or a restore.

use serde::{Deserialize, Serialize};

/// The record that a dump or a restore tool writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferRecord {
    /// Size of the dump on its filesystem, in bytes.
    pub archive_bytes: u64,
    /// Time of the tool's threads, by activity or wait.
    pub spent: Vec<ActivityTime>,
}

/// Time of one activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityTime {
    /// The tool's name for it: `server`, `decompression`, ...
    pub activity: String,
    /// Sum over all threads.
    pub seconds: f64,
}
