//! Estimates whether waiting changes still fit into the map, and how much disk they need.
//!
//! A checkpoint that does not fit would fail after its writes have been acknowledged, and all later checkpoints would
//! fail too. So a write is refused, before any part of it is kept, if its checkpoint may need more pages than are
//! available.

use crate::committed::Committed;
use crate::free_pages;
use crate::writer::TRANSACTION_ENTRIES_MAX;
use bunko_store::{Added, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Free runs shorter than this may be too short for a document, so they do not count; of a longer run at least half can
/// be used.
const RUN_PAGES_MIN: u64 = 64;
/// A batch of at least this size may have a document for which no run is long enough.
const LARGE_BYTES: u64 = RUN_PAGES_MIN / 2 * 4096;
/// This fraction of the map is left to deletions, which are never refused, and to concurrent writers.
const RESERVE_PART: u64 = 8;

/// Available pages as of the last commit, in bytes.
#[derive(Default)]
pub(crate) struct Room {
    /// Bytes of the map that have never been used for a page.
    untouched: AtomicU64,
    /// Free pages in long runs that no view reads.
    free: AtomicU64,
    /// Pages in use.
    used: AtomicU64,
    /// Bytes that are allocated on disk and that the next checkpoint can use for entries of any length.
    spare: AtomicU64,
    /// As `spare`, if all entries are shorter than half a page.
    spare_for_short: AtomicU64,
}

/// Changes that wait for the next checkpoint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    pub bytes: u64,
    /// Number of records and keys that were put or deleted.
    pub changes: u64,
}

impl Room {
    /// Updates the figures for a state that was just committed. `oldest` is the oldest commit that has readers.
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
        // LMDB may use the holes first, which takes disk for their blocks again.
        let holes = (free * page_bytes).saturating_sub(empty - ahead);
        let spare = |free_bytes: u64| ahead + free_bytes.saturating_sub(holes);
        self.spare.store(spare(long * page_bytes / 2), Ordering::Relaxed);
        self.spare_for_short.store(spare(lengths.sum::<u64>() * page_bytes), Ordering::Relaxed);
        Ok(())
    }

    /// Upper bound of the disk bytes that the next checkpoint takes, beyond the file's present blocks.
    pub fn disk_bytes(&self, page_bytes: u64, waiting: Waiting, added: Added) -> u64 {
        let changes = waiting.changes + added.changes;
        if changes == 0 {
            return 0;
        }
        let bytes = waiting.bytes + 2 * added.bytes();
        // Leaves are half full at worst. A value longer than a page takes whole pages, and its entry in a leaf.
        let filled = (2 * bytes).min(bytes + 2 * changes * page_bytes);
        let is_short = bytes / changes <= page_bytes / 2;
        let spare = if is_short { &self.spare_for_short } else { &self.spare };
        (filled + self.rewritten(page_bytes, changes)).saturating_sub(spare.load(Ordering::Relaxed))
    }

    /// Bytes of rewritten pages: each changed page once for each transaction that changes it.
    fn rewritten(&self, page_bytes: u64, changes: u64) -> u64 {
        let transactions = 1 + changes / TRANSACTION_ENTRIES_MAX as u64;
        (changes * page_bytes).min(self.used.load(Ordering::Relaxed) * transactions)
    }

    /// Whether the next checkpoint has room for the waiting changes and for a batch of `growth_bytes`.
    pub fn admits(&self, map_bytes: u64, page_bytes: u64, waiting: Waiting, growth_bytes: u64) -> bool {
        let of = |part: &AtomicU64| part.load(Ordering::Relaxed);
        let free = if growth_bytes < LARGE_BYTES { of(&self.free) / 2 } else { 0 };
        let rewritten = self.rewritten(page_bytes, waiting.changes);
        // Leaves are half full at worst, and the batch counts twice, because another writer may ask at the same moment.
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
        // Short entries fill leaves by half at worst; long ones take whole pages and an entry in a leaf.
        assert_eq!(needed(&room, 100_000, 1000), 200_000);
        assert_eq!(needed(&room, 1 << 20, 1), (1 << 20) + 2 * PAGE);
        // Each change may be in a page of its own, but no more pages than those in use are rewritten.
        room.used.store(1 << 20, Ordering::Relaxed);
        assert_eq!(needed(&room, 100_000, 1000), 200_000 + (1 << 20));
        assert_eq!(needed(&room, 1000, 10), 2000 + 10 * PAGE);
        // A second transaction rewrites the pages once more.
        let many = TRANSACTION_ENTRIES_MAX as u64;
        assert_eq!(needed(&room, 100, many) - needed(&room, 100, many - 1), 1 << 20);
        room.spare.store(150_000, Ordering::Relaxed);
        assert_eq!(needed(&room, 1 << 20, 1), (1 << 20) + 3 * PAGE - 150_000);
        assert_eq!(needed(&room, 1000, 10), 2000 + 10 * PAGE);
        room.spare_for_short.store(150_000, Ordering::Relaxed);
        assert_eq!(needed(&room, 1000, 10), 0);
        // The batch counts twice, because another writer may ask at the same moment.
        let added = Added { changes: 1, logged_bytes: 1 << 20 };
        let needed = room.disk_bytes(PAGE, Waiting::default(), added);
        assert_eq!(needed, 2 * added.bytes() + 3 * PAGE - 150_000);
    }
}
