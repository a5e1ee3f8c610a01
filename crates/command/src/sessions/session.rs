//! One session.

use super::SessionId;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A session that is in use, shared by the table and by connections that have it at hand.
#[derive(Debug)]
pub(crate) struct Session {
    pub id: SessionId,
    last_use_ms: AtomicU64,
    is_over: AtomicBool,
}

impl Session {
    pub(super) fn new(id: SessionId, now_ms: u64) -> Self {
        Self { id, last_use_ms: AtomicU64::new(now_ms), is_over: AtomicBool::new(false) }
    }

    pub(super) fn note_use(&self, now_ms: u64) {
        self.last_use_ms.fetch_max(now_ms, Ordering::Relaxed);
    }

    pub(super) fn last_use_ms(&self) -> u64 {
        self.last_use_ms.load(Ordering::Relaxed)
    }

    /// Whether it has left the table: whoever has it at hand asks for another one.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(super) fn note_end(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}
