//! What a stage that keeps its input has gathered so far.

use crate::Environment;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::Gatherer;

/// Bytes gathered, within the limit of one stage.
pub(super) struct StageMemory {
    stage: &'static str,
    bytes: usize,
    bytes_max: usize,
}

impl StageMemory {
    pub(super) fn new(stage: &'static str, gatherer: Gatherer, environment: &Environment) -> Self {
        Self { stage, bytes: 0, bytes_max: environment.operation().stage_bytes_max(gatherer) }
    }

    /// Counts what is kept from now on.
    /// # Errors
    /// `QueryExceededMemoryLimitNoDiskUseAllowed`.
    pub(super) fn keep(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.bytes <= self.bytes_max {
            return Ok(());
        }
        Err(too_large(self.stage))
    }

    /// Counts what is kept no longer.
    pub(super) fn release(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// What MongoDB says of a stage that may not use the disk.
pub(super) fn too_large(stage: &str) -> Failure {
    let message =
        format!("Exceeded memory limit for {stage}, but didn't allow external sort. Pass allowDiskUse:true to opt in.");
    Failure::new(ErrorCode::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED, message)
}
