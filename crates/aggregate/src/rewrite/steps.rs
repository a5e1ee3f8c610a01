//! The limit on the work of rewriting one pipeline.

use bunko_errors::Result;
use bunko_operation::OperationContext;

/// Maximum steps of all rules over one pipeline. A step maps 16 bytes of a condition, compares a path with 16 paths of a
/// stage, or tries a rule on a pair.
const STEPS_MAX: usize = 100_000;

/// The steps that rules may still take. Each counts as work of the operation.
pub(super) struct Steps<'e> {
    /// Number of steps that are left; `None` once a request was larger than that.
    left: Option<usize>,
    operation: &'e OperationContext,
}

impl<'e> Steps<'e> {
    pub fn new(operation: &'e OperationContext) -> Self {
        Self { left: Some(STEPS_MAX), operation }
    }

    /// Takes steps; returns whether enough were left. After a request for too many there are none.
    /// # Errors
    /// Errors of the operation.
    pub fn takes(&mut self, steps: usize) -> Result<bool> {
        let Some(left) = self.left else { return Ok(false) };
        self.operation.work(steps.min(left))?;
        self.left = left.checked_sub(steps);
        Ok(self.left.is_some())
    }

    pub fn are_used_up(&self) -> bool {
        self.left.is_none()
    }
}
