//! The work of a query over all its batches, for its statistics.

use bunko_operation::BatchWork;

/// Sums up a query over its batches. The cursor drops it when the query ends, in whatever way.
pub trait QueryTally: Send + Sync {
    /// Adds a batch.
    fn add(&mut self, batch: &BatchWork);
}
