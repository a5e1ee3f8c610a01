//! A transaction in progress.

use bunko_catalog::Transaction;
use std::sync::Arc;
use std::time::Duration;

/// A transaction in progress, owned by its session.
pub struct Open {
    /// Its effect on data.
    pub unit: Arc<Transaction>,
    /// Total run time of its commands.
    pub active: Duration,
}
