//! The limit on the work of rewriting one pipeline, with those of its `$facet` stages.

use bunko_errors::Result;
use bunko_operation::OperationContext;
use parking_lot::Mutex;

/// Maximum steps of all rules over one pipeline and its facets. A step maps 16 bytes of a condition, compares a path with
/// 16 paths of a stage, or tries a rule on a pair.
const STEPS_MAX: usize = 100_000;

/// Number of steps that are left; `None` once a request was larger than that. The facets of a pipeline are rewritten while
/// its stages are parsed, and take their steps from the same number.
#[derive(Debug)]
pub struct StepsLeft(Mutex<Option<usize>>);

impl StepsLeft {
    /// Number of steps taken so far.
    pub fn taken(&self) -> usize {
        STEPS_MAX - self.0.lock().unwrap_or(0)
    }
}

impl Default for StepsLeft {
    fn default() -> Self {
        Self(Mutex::new(Some(STEPS_MAX)))
    }
}

/// The steps that rules may still take. Each counts as work of the operation.
pub(super) struct Steps<'e> {
    left: &'e StepsLeft,
    operation: &'e OperationContext,
}

impl<'e> Steps<'e> {
    pub fn new(left: &'e StepsLeft, operation: &'e OperationContext) -> Self {
        Self { left, operation }
    }

    /// Takes steps; returns whether enough were left. After a request for too many there are none.
    /// # Errors
    /// Errors of the operation.
    pub fn takes(&mut self, steps: usize) -> Result<bool> {
        let mut all = self.left.0.lock();
        let Some(left) = *all else { return Ok(false) };
        self.operation.work(steps.min(left))?;
        *all = left.checked_sub(steps);
        Ok(all.is_some())
    }

    pub fn are_used_up(&self) -> bool {
        self.left.0.lock().is_none()
    }
}
