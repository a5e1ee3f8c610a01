//! A full disk: admits batches, and gives removed data's space back before a batch is refused.
//!
//! [`Store::admit_to_disk`] asks each engine for the most that its next checkpoint may take
//! (`Engine::checkpoint_disk_bytes`), and refuses a batch if the disk has less. The number of bytes that may be written
//! before it asks again is kept, so that a commit on a disk with room compares two numbers. A write relieves before it
//! is refused, if anything was removed since; the thread `reclaim` relieves too ([`Store::relieve`]: a checkpoint,
//! reclaim with `Effort::Room`, two checkpoints).
//!
//! A deletion of many documents reads a snapshot, which keeps on the disk all that it deletes. So it ends its search,
//! relieves and searches again (`write/all.rs` of `query`). A drop is always admitted: its record takes the last block
//! of the reserve.

use crate::disk_room::{Draw, unless_full};
use crate::engines::Keeping;
use crate::planted::{self, Bug};
use crate::{Added, Batch, Effort, Reclaimed, Result, SEGMENT_BYTES, StorageError, Store};

/// A batch that finds no room causes a checkpoint if at least this much is unflushed; a smaller checkpoint would hardly
/// make room.
const WORTH_A_CHECKPOINT_BYTES: u64 = 1 << 20;
/// Maximum number of reclaim steps between two checkpoints. Each may take disk before it gives any back.
const STEPS_MAX: usize = 16;
/// Maximum number of rounds of such steps; then the write goes on, even if more space could be given back.
const ROUNDS_MAX: usize = 8;

impl Store {
    /// Admits batches if their next checkpoint has room on the disk.
    ///
    /// # Errors
    /// [`StorageError::OutOfDiskSpace`] before any part of them is kept.
    pub(crate) fn admit_to_disk(&self, parts: &[Batch<'_>], draw: Draw) -> Result<()> {
        let added: Added = parts.iter().map(Batch::added).sum();
        if self.disk.expects(added) || parts.iter().all(|part| self.keeping(part) == Keeping::Place) {
            return Ok(());
        }
        if self.disk.admits(draw, added) {
            return Ok(());
        }
        if draw == Draw::Free {
            self.free_disk()?;
            return if self.disk.admits(draw, added) { Ok(()) } else { Err(self.disk.full()) };
        }
        // Engines ask for more than they need. A deletion of many documents gives back space itself before its next
        // batch (see `is_relief_wanted`); for other callers the space is given back here.
        let was_pressed = self.disk.press();
        if was_pressed && self.unflushed_bytes() >= self.worth_a_relief_bytes() || !self.disk.risks(added) {
            unless_full(self.free_disk())?;
        }
        if self.disk.admits(draw, added) || self.disk.risks(added) { Ok(()) } else { Err(self.disk.full()) }
    }

    /// With fewer unflushed bytes, a checkpoint would hardly give room back.
    fn worth_a_relief_bytes(&self) -> u64 {
        WORTH_A_CHECKPOINT_BYTES.max(self.disk.log_step_bytes())
    }

    /// Number of times that space of removed data was given back.
    pub fn reliefs(&self) -> u64 {
        self.disk.reliefs()
    }

    /// Whether a deletion of many documents, which began after `since` reliefs, should close its view and call
    /// [`Store::relieve`] before it deletes more. If there was a relief meanwhile, the deletion's view has kept space
    /// from it.
    pub fn is_relief_wanted(&self, since: u64) -> bool {
        let is_due = self.disk.is_relief_due();
        let is_worth_while = || self.disk.is_pressed() && self.unflushed_bytes() >= self.worth_a_relief_bytes();
        is_due && (self.reliefs() != since || is_worth_while())
    }

    /// Gives unneeded space back to the disk; false if there was none.
    fn free_disk(&self) -> Result<bool> {
        let _waiting = self.commit_point.want_room();
        if self.relieve()? {
            return Ok(true);
        }
        // Even without deletions, a checkpoint lets the log keep less.
        let is_worth_while = self.unflushed_bytes() >= WORTH_A_CHECKPOINT_BYTES;
        if is_worth_while {
            self.checkpoint()?;
            self.note_unflushed();
        }
        Ok(is_worth_while)
    }

    /// Appends. If the log finds no disk, gives back unneeded space and tries once more.
    pub(crate) fn with_relief<T>(&self, draw: Draw, append: impl Fn() -> Result<T>) -> Result<T> {
        let outcome = match append() {
            Err(full @ StorageError::OutOfDiskSpace { .. }) if !self.disk.is_off() => match self.free_disk() {
                Ok(true) => append(),
                Ok(false) | Err(_) => Err(full),
            },
            outcome => outcome,
        };
        if outcome.is_ok() && draw != Draw::Free {
            self.disk.note_removal();
        }
        outcome
    }

    /// Gives back the space of data that was removed since the last time; false if none was. The caller must hold
    /// neither a view, which would keep its data, nor the gate.
    ///
    /// # Errors
    /// As [`Store::checkpoint`].
    pub fn relieve(&self) -> Result<bool> {
        let _one_at_a_time = self.relieving.lock();
        if !self.disk.is_relief_due() {
            return Ok(false);
        }
        let removals = self.disk.removals();
        self.checkpoint()?;
        for _ in 0..ROUNDS_MAX {
            let mut steps = 0;
            while steps < STEPS_MAX && unless_full(self.reclaim_step(Effort::Room))? == Some(Reclaimed::Some) {
                steps += 1;
            }
            // The first checkpoint releases what the engines have left, the second what only the first one's manifest
            // still names.
            self.checkpoint()?;
            self.checkpoint()?;
            if steps == 0 || self.disk.restore() && !self.disk.is_scarce(SEGMENT_BYTES) {
                break;
            }
        }
        self.disk.note_relief(removals);
        self.merger.ask();
        self.disk.restore();
        self.note_unflushed();
        Ok(true)
    }

    /// As [`Store::relieve`], if the reserve is in use: perhaps no write comes that would cause it.
    pub(crate) fn relieve_in_background(&self) -> Result<()> {
        if self.disk.is_in_use() && !self.disk.restore() {
            self.relieve()?;
        }
        Ok(())
    }

    /// The part of the disk that batches with that growth may use together. Batches without growth make room.
    pub(crate) fn draw(parts: &[Batch<'_>], growth_bytes: usize) -> Draw {
        if growth_bytes > 0 && !planted::active(Bug::ReserveForAll) {
            Draw::Free
        } else if parts.iter().any(Batch::drops) {
            Draw::Last
        } else {
            Draw::Reserve
        }
    }

    /// Notes a change in the bytes that engines hold unflushed, and returns their number.
    pub(crate) fn note_unflushed(&self) -> u64 {
        let bytes = self.unflushed_bytes();
        self.disk.note_unflushed(bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::fake::fake;
    use crate::{EngineTable, KeyspaceId, Location, RecordId, ReserveOptions, StoreOptions, Survival};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    const RECORDS: KeyspaceId = KeyspaceId(7);
    /// A batch of this size makes the store ask the disk for room, and a few of them fill a short segment.
    const BATCH_BYTES: usize = 100_000;

    fn insertion(record: u64, bytes: usize) -> Batch<'static> {
        let mut batch = Batch::new();
        batch.insert_record(RECORDS, RecordId(record), vec![7; bytes]);
        batch
    }

    fn removal(record: u64) -> Batch<'static> {
        let mut batch = Batch::new();
        batch.delete_record(RECORDS, RecordId(record), Location { position: 1, length: 1, checksum: 1 });
        batch.delete_key(KeyspaceId(8), &vec![7; BATCH_BYTES]);
        batch
    }

    /// A store whose disk has as many free bytes as `free` says.
    fn store(directory: &std::path::Path, free: &Arc<AtomicU64>) -> Arc<Store> {
        let (own, _) = fake("own", Survival::Durable);
        let asked = Arc::clone(free);
        let reserve = ReserveOptions {
            bytes: 1 << 20,
            free_bytes: Arc::new(move |_| Some(asked.load(Ordering::Relaxed))),
            ..ReserveOptions::none()
        };
        let options = StoreOptions { reserve, ..StoreOptions::at_rest() };
        Store::open(directory, options, EngineTable::only(own)).expect("opens")
    }

    #[test]
    fn a_full_disk_accepts_removals_and_other_writes_once_there_is_room() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let free = Arc::new(AtomicU64::new(3 << 20));
        let opened = store(directory.path(), &free);
        let mut removed = 0;
        opened.commit(&insertion(1, BATCH_BYTES)).expect("there is room");
        free.store(0, Ordering::Relaxed);
        let refused = |store: &Store| {
            matches!(store.commit(&insertion(2, 3 * BATCH_BYTES)), Err(StorageError::OutOfDiskSpace { .. }))
        };
        assert!(refused(&opened) && !opened.disk.is_in_use(), "a write that is refused takes nothing of the reserve");
        while opened.commit(&removal(removed)).is_ok() {
            removed += 1;
            assert!(removed < 100, "a reserve of a megabyte has no end");
        }
        // The first short segment, and all of the reserve except the last block.
        assert!((6..=12).contains(&removed), "{removed}");
        assert!(opened.disk.is_in_use() && refused(&opened));
        let mut drop = Batch::new();
        drop.drop_keyspace(RECORDS);
        opened.commit(&drop).expect("a drop has what is left");
        // A start finds the rest of the reserve, and everything that was acknowledged.
        let end = opened.journal.statistics().next_lsn;
        opened.write(crate::Lsn(end - 1)).expect("written");
        let copy = bunko_testkit::directory::crash_copy(directory.path());
        let again = store(copy.path(), &free);
        assert_eq!(again.journal.statistics().next_lsn, end);
        assert!(refused(&again) && again.disk.is_in_use());
        again.close().expect("closes");

        free.store(1 << 30, Ordering::Relaxed);
        opened.commit(&insertion(2, BATCH_BYTES)).expect("there is room");
        assert!(!opened.disk.is_in_use());
        opened.close().expect("closes");
    }

    #[test]
    fn a_write_after_a_removal_finds_the_room_that_it_made() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let free = Arc::new(AtomicU64::new(3 << 20));
        let (own, told) = fake("own", Survival::Durable);
        // The disk has room as soon as an engine was asked to reclaim.
        let (asked, reclaimed) = (Arc::clone(&free), Arc::clone(&told));
        let free_bytes = move |_: &std::path::Path| {
            let gained = if reclaimed.reclaimed.lock().is_empty() { 0 } else { 1 << 30 };
            Some(asked.load(Ordering::Relaxed) + gained)
        };
        let reserve = ReserveOptions { bytes: 1 << 20, free_bytes: Arc::new(free_bytes), ..ReserveOptions::none() };
        let options = StoreOptions { reserve, ..StoreOptions::at_rest() };
        let store = Store::open(directory.path(), options, EngineTable::only(own)).expect("opens");
        free.store(0, Ordering::Relaxed);
        assert!(store.commit(&insertion(1, BATCH_BYTES)).is_err());
        assert!(told.reclaimed.lock().is_empty(), "nothing was removed");
        *told.steps_left.lock() = 2;
        store.commit(&removal(1)).expect("it makes room");
        store.commit(&insertion(1, BATCH_BYTES)).expect("there is room");
        assert_eq!(*told.steps_left.lock(), 0);
        store.close().expect("closes");
    }
}
