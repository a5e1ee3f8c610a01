//! Whether what is written still fits into the map.
//!
//! A checkpoint that does not fit fails after its writes have been acknowledged, and so does every later one. So a write
//! is refused before anything is kept of it where its checkpoint may need more pages than there are.

use crate::committed::Committed;
use crate::free_pages;
use crate::writer::TRANSACTION_ENTRIES_MAX;
use bunko_store::Result;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs of free pages that are shorter may be too short for a document; in longer ones at least half can be used.
const RUN_PAGES_MIN: u64 = 64;
/// A batch of so many bytes may hold a document that no run is long enough for.
const LARGE_BYTES: u64 = RUN_PAGES_MIN / 2 * 4096;
/// The part of the map that is left to deletions, which are never refused, and to writers that ask at the same moment.
const RESERVE_PART: u64 = 8;

/// Pages that there are, as of the last commit; in bytes.
#[derive(Default)]
pub(crate) struct Room {
    /// Of the map, which no page was ever handed out from.
    untouched: AtomicU64,
    /// Free pages in long runs, which no view reads.
    free: AtomicU64,
    /// Pages that hold something.
    used: AtomicU64,
}

/// What waits for the next checkpoint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    pub bytes: u64,
    /// Records and keys that were put or deleted.
    pub changes: u64,
}

impl Room {
    /// Looks at a state that was just committed; `oldest` is the oldest commit that a view reads.
    pub fn look(&self, committed: &Committed, oldest: u64) -> Result<()> {
        let page_bytes = committed.file.page_bytes as u64;
        let handed_out = committed.meta.pages * page_bytes;
        let runs = free_pages::runs(committed, oldest)?;
        let long = runs.iter().map(|run| run.end - run.start).filter(|pages| *pages >= RUN_PAGES_MIN).sum::<u64>();
        let free = free_pages::count(committed)?;
        self.untouched.store(committed.file.map_bytes.saturating_sub(handed_out), Ordering::Relaxed);
        self.free.store(long * page_bytes, Ordering::Relaxed);
        self.used.store(handed_out.saturating_sub(free * page_bytes), Ordering::Relaxed);
        Ok(())
    }

    /// Whether the next checkpoint has room for what waits and for a batch of `growth_bytes`.
    pub fn admits(&self, map_bytes: u64, page_bytes: u64, waiting: Waiting, growth_bytes: u64) -> bool {
        let of = |part: &AtomicU64| part.load(Ordering::Relaxed);
        let free = if growth_bytes < LARGE_BYTES { of(&self.free) / 2 } else { 0 };
        // A page that is changed is written anew, once by each transaction that changes it.
        let transactions = 1 + waiting.changes / TRANSACTION_ENTRIES_MAX as u64;
        let rewritten = (waiting.changes * page_bytes).min(of(&self.used) * transactions);
        // Leaves are half full at worst.
        let needed = 2 * (waiting.bytes + 2 * growth_bytes) + rewritten;
        needed + map_bytes / RESERVE_PART <= of(&self.untouched) + free
    }
}
