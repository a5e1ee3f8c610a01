//! What a stage that keeps its input has gathered so far.

use crate::Environment;
use bunko_errors::{ErrorCode, Failure, Result};

/// Bytes gathered, within the limit of one stage.
pub(super) struct StageMemory {
    stage: &'static str,
    bytes: usize,
    bytes_max: usize,
}

impl StageMemory {
    pub(super) fn new(stage: &'static str, environment: &Environment) -> Self {
        Self { stage, bytes: 0, bytes_max: environment.stage_memory_bytes_max }
    }

    /// Counts what is kept from now on.
    /// # Errors
    /// `QueryExceededMemoryLimitNoDiskUseAllowed`.
    pub(super) fn keep(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.bytes <= self.bytes_max {
            return Ok(());
        }
        let message = format!(
            "Exceeded memory limit for {}, but didn't allow external sort. Pass allowDiskUse:true to opt in.",
            self.stage
        );
        Err(Failure::new(ErrorCode::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED, message))
    }

    /// Counts what is kept no longer.
    pub(super) fn release(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}
