//! What `serverStatus` and `top` count.

use bunko_errors::ErrorCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters since the start.
#[derive(Debug, Default)]
pub struct Counters {
    inserted: AtomicU64,
    get_mores: AtomicU64,
}

impl Counters {
    /// Documents were inserted.
    pub fn note_inserted(&self, documents: u64) {
        self.inserted.fetch_add(documents, Ordering::Relaxed);
    }

    /// A `getMore` ran.
    pub fn note_get_more(&self) {
        self.get_mores.fetch_add(1, Ordering::Relaxed);
    }

    /// A command ended.
    pub(crate) fn note_command(&self, _name: &str, _namespace: Option<&str>, _elapsed: Duration) {}

    /// A command failed.
    pub(crate) fn note_failure(&self, _code: ErrorCode) {}
}
