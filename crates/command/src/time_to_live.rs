//! The thread that deletes expired documents, by TTL indexes, clustered collections and time series.
//!
//! It makes a pass every `ttlMonitorSleepSecs` (`deletion.rs`), and only where the server may write: a secondary gets
//! the deletions with its primary's log. Documents are found by a plan over the index (`expire.rs` of `query`) and
//! deleted as a client's delete would.

mod deletion;

pub use deletion::{delete_expired, delete_expired_until_stopped};

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counters of the thread.
#[derive(Debug, Default)]
pub struct TimeToLive {
    is_deleting: AtomicBool,
    deleted_documents: AtomicU64,
    passes: AtomicU64,
    sub_passes: AtomicU64,
}

/// Counters that `serverStatus` shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeToLiveCounts {
    pub deleted_documents: u64,
    pub passes: u64,
    pub sub_passes: u64,
}

impl TimeToLive {
    /// Whether a batch is being deleted.
    pub(crate) fn is_deleting(&self) -> bool {
        self.is_deleting.load(Ordering::SeqCst)
    }

    pub(crate) fn counts(&self) -> TimeToLiveCounts {
        TimeToLiveCounts {
            deleted_documents: self.deleted_documents.load(Ordering::Relaxed),
            passes: self.passes.load(Ordering::Relaxed),
            sub_passes: self.sub_passes.load(Ordering::Relaxed),
        }
    }
}
