//! The work of a query over all its batches, for its statistics.

use bunko_operation::BatchWork;

/// Sums up a query over its batches. The query has ended when it is dropped, which its cursor does however it ends.
pub trait QueryTally: Send + Sync {
    /// Adds a batch.
    fn add(&mut self, batch: &BatchWork);
}
