//! A transaction in progress.

use bunko_catalog::Transaction;
use std::sync::Arc;
use std::time::Duration;

/// A transaction in progress, owned by its session.
pub struct Open {
    /// The transaction's effect on data.
    pub unit: Arc<Transaction>,
    /// Total run time of the transaction's commands.
    pub active: Duration,
}
