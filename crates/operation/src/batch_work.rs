//! The work that a command did for one batch of a query.

use crate::Examined;
use std::time::Duration;

/// The work for one batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchWork {
    /// Time from the begin of the command to its end.
    pub elapsed: Duration,
    /// Processor time of the command's thread; `None` if it was not measured.
    pub processor_time: Option<Duration>,
    /// Keys and documents examined.
    pub examined: Examined,
    /// Documents returned.
    pub returned: u64,
    /// Whether a stage spilled to disk.
    pub has_used_disk: bool,
    /// When the command ended, in milliseconds since 1970.
    pub ended_ms: i64,
}
