//! What a dump or a restore says of itself.

use serde::{Deserialize, Serialize};

/// A dump's or a restore's own account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferRecord {
    /// Bytes that the dump takes on its filesystem.
    pub archive_bytes: u64,
    /// The time of all the tool's threads, by what they did or waited for.
    pub spent: Vec<ActivityTime>,
}

/// How long a tool's threads did one thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityTime {
    /// In the tool's words: `server`, `decompression`, ...
    pub activity: String,
    /// Of all threads together.
    pub seconds: f64,
}
