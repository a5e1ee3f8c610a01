//! Memory of a stage that keeps its input.

use crate::Environment;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::Gatherer;

/// Counts the bytes that a stage keeps, up to the stage's limit.
pub(super) struct StageMemory {
    stage: &'static str,
    bytes: usize,
    bytes_max: usize,
}

impl StageMemory {
    pub(super) fn new(stage: &'static str, gatherer: Gatherer, environment: &Environment) -> Self {
        Self { stage, bytes: 0, bytes_max: environment.operation().stage_bytes_max(gatherer) }
    }

    /// Adds bytes that are kept from now on.
    /// # Errors
    /// `QueryExceededMemoryLimitNoDiskUseAllowed`.
    pub(super) fn keep(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.bytes <= self.bytes_max {
            return Ok(());
        }
        Err(too_large(self.stage))
    }

    /// Subtracts bytes that are no longer kept.
    pub(super) fn release(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// MongoDB's error for a stage that needs the disk and may not use it.
pub(super) fn too_large(stage: &str) -> Failure {
    let message =
        format!("Exceeded memory limit for {stage}, but didn't allow external sort. Pass allowDiskUse:true to opt in.");
    Failure::new(ErrorCode::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED, message)
}
