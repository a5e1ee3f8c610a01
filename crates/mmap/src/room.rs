//! Whether what is written still fits into the map, and what it needs on the disk.
//!
//! A checkpoint that does not fit fails after its writes have been acknowledged, and so does every later one. So a write
//! is refused before anything is kept of it where its checkpoint may need more pages than there are.

use crate::committed::Committed;
use crate::free_pages;
use crate::writer::TRANSACTION_ENTRIES_MAX;
use bunko_store::{Added, Result};
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
    /// Blocks that the file has on the disk, and that the next checkpoint will find for entries of any length.
    spare: AtomicU64,
    /// As `spare`, where all entries are shorter than half a page.
    spare_for_short: AtomicU64,
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
        let lengths = runs.iter().map(|run| run.end - run.start);
        let long = lengths.clone().filter(|pages| *pages >= RUN_PAGES_MIN).sum::<u64>();
        let free = free_pages::count(committed)?;
        self.untouched.store(committed.file.map_bytes.saturating_sub(handed_out), Ordering::Relaxed);
        self.free.store(long * page_bytes, Ordering::Relaxed);
        let used = handed_out.saturating_sub(free * page_bytes);
        self.used.store(used, Ordering::Relaxed);
        let empty = free_pages::allocated_bytes(&committed.file)?.saturating_sub(used);
        let ahead = committed.file.length_bytes()?.saturating_sub(handed_out).min(empty);
        // LMDB may come to the holes first.
        let holes = (free * page_bytes).saturating_sub(empty - ahead);
        let spare = |free_bytes: u64| ahead + free_bytes.saturating_sub(holes);
        self.spare.store(spare(long * page_bytes / 2), Ordering::Relaxed);
        self.spare_for_short.store(spare(lengths.sum::<u64>() * page_bytes), Ordering::Relaxed);
        Ok(())
    }

    /// Bytes of disk that the next checkpoint may take, beyond what the file has.
    pub fn disk_bytes(&self, page_bytes: u64, waiting: Waiting, added: Added) -> u64 {
        let changes = waiting.changes + added.changes;
        if changes == 0 {
            return 0;
        }
        let bytes = waiting.bytes + 2 * added.bytes();
        // Leaves are half full at worst; what is longer than a page takes whole pages, and its place in a leaf.
        let filled = (2 * bytes).min(bytes + 2 * changes * page_bytes);
        let is_short = bytes / changes <= page_bytes / 2;
        let spare = if is_short { &self.spare_for_short } else { &self.spare };
        (filled + self.rewritten(page_bytes, changes)).saturating_sub(spare.load(Ordering::Relaxed))
    }

    /// Bytes of pages that are written anew: each that is changed, once by each transaction that changes it.
    fn rewritten(&self, page_bytes: u64, changes: u64) -> u64 {
        let transactions = 1 + changes / TRANSACTION_ENTRIES_MAX as u64;
        (changes * page_bytes).min(self.used.load(Ordering::Relaxed) * transactions)
    }

    /// Whether the next checkpoint has room for what waits and for a batch of `growth_bytes`.
    pub fn admits(&self, map_bytes: u64, page_bytes: u64, waiting: Waiting, growth_bytes: u64) -> bool {
        let of = |part: &AtomicU64| part.load(Ordering::Relaxed);
        let free = if growth_bytes < LARGE_BYTES { of(&self.free) / 2 } else { 0 };
        let rewritten = self.rewritten(page_bytes, waiting.changes);
        // Leaves are half full at worst.
        let needed = 2 * (waiting.bytes + 2 * growth_bytes) + rewritten;
        needed + map_bytes / RESERVE_PART <= of(&self.untouched) + free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    fn needed(room: &Room, bytes: u64, changes: u64) -> u64 {
        room.disk_bytes(PAGE, Waiting { bytes, changes }, Added::default())
    }

    #[test]
    fn a_checkpoint_needs_what_it_fills_and_what_it_writes_anew_without_what_the_file_has() {
        let room = Room::default();
        assert_eq!(needed(&room, 0, 0), 0);
        // Short entries fill leaves by half at worst, long ones have whole pages and a place in a leaf.
        assert_eq!(needed(&room, 100_000, 1000), 200_000);
        assert_eq!(needed(&room, 1 << 20, 1), (1 << 20) + 2 * PAGE);
        // Each change may be in a page of its own, but there are no more pages than are used.
        room.used.store(1 << 20, Ordering::Relaxed);
        assert_eq!(needed(&room, 100_000, 1000), 200_000 + (1 << 20));
        assert_eq!(needed(&room, 1000, 10), 2000 + 10 * PAGE);
        // A second transaction writes the pages once more.
        let many = TRANSACTION_ENTRIES_MAX as u64;
        assert_eq!(needed(&room, 100, many) - needed(&room, 100, many - 1), 1 << 20);
        room.spare.store(150_000, Ordering::Relaxed);
        assert_eq!(needed(&room, 1 << 20, 1), (1 << 20) + 3 * PAGE - 150_000);
        assert_eq!(needed(&room, 1000, 10), 2000 + 10 * PAGE);
        room.spare_for_short.store(150_000, Ordering::Relaxed);
        assert_eq!(needed(&room, 1000, 10), 0);
        // What another batch adds counts twice: another writer may ask at the same moment.
        let added = Added { changes: 1, logged_bytes: 1 << 20 };
        let needed = room.disk_bytes(PAGE, Waiting::default(), added);
        assert_eq!(needed, 2 * added.bytes() + 3 * PAGE - 150_000);
    }
}
