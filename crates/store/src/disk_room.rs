//! Room on the disk: a reserve for the writes that make room, and who is admitted while there is little.
//!
//! A deletion needs disk before it gives any back: its record in the log, and the checkpoint that carries it out. So a
//! file of a fixed size, the reserve, keeps some disk from all other writes:
//!
//! ```text
//!          the log, or a checkpoint after deletions, finds no disk
//!   whole ────────────────────────────────────────────────────────► in use
//!     ▲                                                                │
//!     └──────── deletions gave so much back that it is whole again ────┘
//! ```
//! While the reserve is whole, a batch is admitted if the next checkpoint will find disk for all that waits and for the
//! batch. While the reserve is in use, only batches that make room are admitted ([`Batch::makes_room`]).
//!
//! [`Batch::makes_room`]: crate::Batch::makes_room

use crate::engines::Needs;
use crate::error::is_full;
use crate::{Added, Result, StorageError};
use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const FILE_NAME: &str = "disk.reserve";
/// What a checkpoint takes besides what engines ask for: the manifest, and blocks that a filesystem keeps for itself.
const MARGIN_BYTES: u64 = 1 << 20;
/// Disk that a byte in a memtable may cost at most: a short entry has the engine write a page of the kernel's anew.
const DISK_PER_MEMORY: u64 = 64;
/// Parts of the reserve that the log takes at a time.
const LOG_PARTS: u64 = 4;
/// A part is no longer than that: about 100,000 deletions.
const LOG_STEP_BYTES_MAX: u64 = 8 << 20;
/// Disk is taken in multiples of that.
const BLOCK_BYTES: u64 = 64 << 10;

/// Told that the reserve is in use, and that it is whole again.
pub type ReserveHook = Arc<dyn Fn(DiskReserve) + Send + Sync>;

/// Bytes that are free on the disk of a directory; `None` where the system does not say.
pub type FreeBytes = Arc<dyn Fn(&Path) -> Option<u64> + Send + Sync>;

/// How a store keeps disk for writes that make room.
#[derive(Clone)]
pub struct ReserveOptions {
    /// Size of the whole reserve in bytes; 0 for none. Without one all writes are admitted, until the disk is full.
    pub bytes: u64,
    /// Asked from time to time, more often the less is free.
    pub free_bytes: FreeBytes,
    /// Told about each change.
    pub on_change: ReserveHook,
}

impl ReserveOptions {
    /// No reserve.
    #[must_use]
    pub fn none() -> Self {
        Self { bytes: 0, free_bytes: Arc::new(|_| None), on_change: Arc::new(|_| ()) }
    }
}

/// The reserve as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskReserve {
    /// What is left of it, in bytes.
    pub bytes: u64,
    /// Its size when it is whole.
    pub whole_bytes: u64,
}

impl DiskReserve {
    /// Whether only writes that make room are taken.
    pub fn is_in_use(&self) -> bool {
        self.bytes < self.whole_bytes
    }
}

/// What a write may take of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Draw {
    /// Disk that is free.
    Free,
    /// Disk of the reserve too: the write makes room.
    Reserve,
    /// All of the reserve: the write drops what may be the cause of all, and takes little for it.
    Last,
}

/// The disk of one data directory.
pub(crate) struct DiskRoom {
    directory: PathBuf,
    options: ReserveOptions,
    /// Held while the reserve shrinks or grows; `None` without a reserve.
    file: Mutex<Option<File>>,
    bytes: AtomicU64,
    needs: Needs,
    /// Bytes that engines hold unflushed, as of the last commit.
    unflushed: AtomicU64,
    /// Up to so many unflushed bytes the next checkpoint has room for certain.
    limit: AtomicU64,
    /// Batches that made room.
    removals: AtomicU64,
    /// A batch that made room found less than its checkpoint may need.
    is_pressed: AtomicBool,
    /// As many of them were in the last checkpoint.
    checkpointed: AtomicU64,
    /// How often space was given back.
    reliefs: AtomicU64,
    /// As many of them had been checkpointed when space was last given back.
    relieved: AtomicU64,
}

impl DiskRoom {
    /// A disk that is never asked.
    pub fn unlimited() -> Arc<Self> {
        Arc::new(Self::new(PathBuf::new(), ReserveOptions::none(), Needs::default()))
    }

    /// Makes the reserve, or finds what is left of it. A disk that is full by now, or a filesystem that cannot
    /// preallocate, is no reason to refuse a start.
    pub fn open(directory: &Path, options: ReserveOptions, needs: Needs) -> Arc<Self> {
        let mut room = Self::new(directory.to_owned(), options, needs);
        if room.options.bytes == 0 {
            return Arc::new(room);
        }
        room.options.bytes = room.options.bytes.next_multiple_of(BLOCK_BYTES);
        let path = room.directory.join(FILE_NAME);
        match OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path) {
            Ok(file) => {
                let bytes = file.metadata().map_or(0, |metadata| metadata.len()).min(room.options.bytes);
                let has_room = room.free_bytes().is_none_or(|free| free >= room.options.bytes - bytes);
                let make =
                    || if has_room { allocate(&file, room.options.bytes) } else { Err(ErrorKind::StorageFull.into()) };
                let outcome = file.set_len(bytes).and_then(|()| make());
                let is_off = outcome.as_ref().is_err_and(|error| !is_full(error));
                room.bytes.store(if outcome.is_ok() { room.options.bytes } else { bytes }, Ordering::Relaxed);
                if outcome.is_err() {
                    // A filesystem may have allocated a part before it found that it has no more.
                    let _ = file.set_len(if is_off { 0 } else { bytes });
                }
                if is_off {
                    room.options.bytes = 0;
                }
                *room.file.lock() = Some(file);
            }
            Err(error) if is_full(&error) => {}
            Err(_) => room.options.bytes = 0,
        }
        room.limit.store(if room.is_off() { u64::MAX } else { 0 }, Ordering::Relaxed);
        if room.is_in_use() {
            (room.options.on_change)(room.reserve());
        }
        Arc::new(room)
    }

    fn new(directory: PathBuf, options: ReserveOptions, needs: Needs) -> Self {
        Self {
            directory,
            options,
            file: Mutex::default(),
            bytes: AtomicU64::new(0),
            needs,
            unflushed: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            removals: AtomicU64::new(0),
            is_pressed: AtomicBool::new(false),
            checkpointed: AtomicU64::new(0),
            reliefs: AtomicU64::new(0),
            relieved: AtomicU64::new(0),
        }
    }

    /// Whether there is no reserve: then all is admitted, and the log makes of the disk what it can.
    pub fn is_off(&self) -> bool {
        self.options.bytes == 0
    }

    /// The reserve as it is.
    pub fn reserve(&self) -> DiskReserve {
        DiskReserve { bytes: self.bytes.load(Ordering::Relaxed), whole_bytes: self.options.bytes }
    }

    /// Whether only batches that make room are admitted.
    pub fn is_in_use(&self) -> bool {
        self.reserve().is_in_use()
    }

    /// Whether the next checkpoint has room for certain, as far as that is known without asking the disk.
    pub fn expects(&self, added: Added) -> bool {
        self.unflushed.load(Ordering::Relaxed).saturating_add(added.bytes()) <= self.limit.load(Ordering::Relaxed)
    }

    /// Engines hold that much unflushed.
    pub fn note_unflushed(&self, bytes: u64) {
        self.unflushed.store(bytes, Ordering::Relaxed);
    }

    /// Asks the disk whether the next checkpoint has room for what waits and for a batch.
    pub fn admits(&self, draw: Draw, added: Added) -> bool {
        if draw == Draw::Free && !self.restore() {
            return false;
        }
        let Some(free_bytes) = self.free_bytes() else { return true };
        let needed_bytes = self.needs.bytes(added) + MARGIN_BYTES;
        let reserve = self.reserve();
        let is_admitted = match draw {
            Draw::Free => needed_bytes <= free_bytes,
            Draw::Reserve => needed_bytes <= free_bytes + reserve.bytes,
            Draw::Last => true,
        };
        if is_admitted && !reserve.is_in_use() {
            let more_bytes = free_bytes.saturating_sub(needed_bytes) / DISK_PER_MEMORY;
            let limit = self.unflushed.load(Ordering::Relaxed) + added.bytes() + more_bytes;
            self.limit.store(limit, Ordering::Relaxed);
        }
        is_admitted
    }

    /// Whether a batch that makes room is worth a try, where [`Self::admits`] finds too little for it: engines ask for more
    /// than they need as a rule. Where even the whole reserve would be too small, no checkpoint might come after the batch.
    pub fn risks(&self, added: Added) -> bool {
        self.needs.bytes(added) <= self.options.bytes
    }

    /// Whether so many bytes may be taken, with the next checkpoint's room left.
    pub fn spares(&self, bytes: u64) -> bool {
        if self.is_off() {
            return true;
        }
        // What was expected before does not hold any more.
        self.limit.store(0, Ordering::Relaxed);
        self.free_bytes().is_none_or(|free| free >= bytes + self.needs.bytes(Added::default()) + MARGIN_BYTES)
    }

    /// Whether disk is too scarce for files that are only kept for later.
    pub fn is_scarce(&self, bytes: u64) -> bool {
        !self.is_off() && (self.is_in_use() || self.free_bytes().is_some_and(|free| free < bytes))
    }

    /// Longest that a short segment is, so that the reserve has room for what is alive in it while it is moved elsewhere.
    pub fn short_segment_bytes(&self) -> u64 {
        (self.options.bytes / 2).next_multiple_of(BLOCK_BYTES)
    }

    /// Bytes that the log takes of the reserve at a time.
    pub fn log_step_bytes(&self) -> u64 {
        let part = (self.options.bytes / LOG_PARTS).min(LOG_STEP_BYTES_MAX);
        part.next_multiple_of(BLOCK_BYTES)
    }

    /// Gives so much of the reserve to the disk, for a record that makes room; false where less is left. The last block is
    /// for records that drop something.
    pub fn lend(&self, bytes: u64, draw: Draw) -> bool {
        let kept = match draw {
            Draw::Free => return false,
            Draw::Reserve => BLOCK_BYTES,
            Draw::Last => 0,
        };
        let file = self.file.lock();
        let left = self.bytes.load(Ordering::Relaxed).checked_sub(bytes.next_multiple_of(BLOCK_BYTES));
        left.is_some_and(|left| left >= kept && self.shrink(file.as_ref(), left))
    }

    /// Gives the reserve to the disk for a checkpoint that found no room, first all but what the log takes at a time, then
    /// all but the last block. False where the checkpoint carries out nothing that makes room, and where nothing is left.
    pub fn lend_to_checkpoint(&self) -> bool {
        let file = self.file.lock();
        let (bytes, kept) = (self.bytes.load(Ordering::Relaxed), self.log_step_bytes());
        let left = if bytes > kept { kept } else { BLOCK_BYTES };
        let is_due = self.removals() > self.checkpointed.load(Ordering::Relaxed);
        is_due && bytes > left && self.shrink(file.as_ref(), left)
    }

    fn shrink(&self, file: Option<&File>, left: u64) -> bool {
        let Some(file) = file else { return false };
        // Some filesystems give the blocks back only once the change is on disk.
        if file.set_len(left).and_then(|()| file.sync_all()).is_err() {
            return false;
        }
        let was_in_use = self.is_in_use();
        self.bytes.store(left, Ordering::Relaxed);
        self.limit.store(0, Ordering::Relaxed);
        if !was_in_use {
            (self.options.on_change)(self.reserve());
        }
        true
    }

    /// Makes the reserve whole if there is disk for it and for the next checkpoint; whether it is whole.
    pub fn restore(&self) -> bool {
        if !self.is_in_use() {
            return true;
        }
        let mut file = self.file.lock();
        let reserve = self.reserve();
        if !reserve.is_in_use() {
            return true;
        }
        let needed_bytes = self.needs.bytes(Added::default()) + 2 * MARGIN_BYTES;
        if self.free_bytes().is_some_and(|free| free < reserve.whole_bytes - reserve.bytes + needed_bytes) {
            return false;
        }
        if file.is_none() {
            let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).to_owned();
            *file = options.open(self.directory.join(FILE_NAME)).ok();
        }
        let Some(file) = file.as_ref() else { return false };
        if allocate(file, reserve.whole_bytes).is_err() {
            let _ = file.set_len(reserve.bytes);
            return false;
        }
        self.bytes.store(reserve.whole_bytes, Ordering::Relaxed);
        (self.options.on_change)(self.reserve());
        true
    }

    /// A batch made room.
    pub fn note_removal(&self) {
        self.removals.fetch_add(1, Ordering::Relaxed);
    }

    /// How many batches made room so far.
    pub fn removals(&self) -> u64 {
        self.removals.load(Ordering::Relaxed)
    }

    /// A checkpoint has carried out so many of the batches that made room.
    pub fn note_checkpoint(&self, removals: u64) {
        self.checkpointed.fetch_max(removals, Ordering::Relaxed);
    }

    /// Notes that a batch that makes room was admitted though its checkpoint may find too little; whether another one was since
    /// space was last given back.
    pub fn press(&self) -> bool {
        self.is_pressed.swap(true, Ordering::Relaxed)
    }

    /// Whether [`Self::press`] was called since space was last given back.
    pub fn is_pressed(&self) -> bool {
        self.is_pressed.load(Ordering::Relaxed)
    }

    /// How often space was given back.
    pub fn reliefs(&self) -> u64 {
        self.reliefs.load(Ordering::Relaxed)
    }

    /// Whether something was removed since space was last given back.
    pub fn is_relief_due(&self) -> bool {
        !self.is_off() && self.removals() > self.relieved.load(Ordering::Relaxed)
    }

    /// What so many batches removed has been given back to the disk, as far as it could be.
    pub fn note_relief(&self, removals: u64) {
        self.relieved.fetch_max(removals, Ordering::Relaxed);
        self.is_pressed.store(false, Ordering::Relaxed);
        self.reliefs.fetch_add(1, Ordering::Relaxed);
    }

    fn free_bytes(&self) -> Option<u64> {
        (self.options.free_bytes)(&self.directory)
    }

    /// What a write is refused with that found no room.
    pub fn full(&self) -> StorageError {
        StorageError::OutOfDiskSpace { path: self.directory.clone() }
    }
}

/// Lets a file be that long, with blocks on the disk for all of it.
fn allocate(file: &File, bytes: u64) -> std::io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    fallocate(file, FallocateFlags::empty(), 0, bytes)?;
    file.sync_all()
}

/// Nothing where it failed for want of disk.
pub(crate) fn unless_full<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(StorageError::OutOfDiskSpace { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    const WHOLE: u64 = 1 << 20;
    const PLENTY: u64 = 1 << 30;

    /// A disk that has as much free as the first number says, and what was told about its reserve.
    type Told = (Arc<AtomicU64>, Arc<Mutex<Vec<DiskReserve>>>);

    fn options() -> (ReserveOptions, Told) {
        let (free, told) = (Arc::new(AtomicU64::new(PLENTY)), Arc::new(Mutex::new(Vec::new())));
        let (asked, hears) = (Arc::clone(&free), Arc::clone(&told));
        let options = ReserveOptions {
            bytes: WHOLE,
            free_bytes: Arc::new(move |_| Some(asked.load(Ordering::Relaxed))),
            on_change: Arc::new(move |reserve| hears.lock().push(reserve)),
        };
        (options, (free, told))
    }

    #[test]
    fn the_reserve_shrinks_by_parts_and_is_whole_again_once_there_is_room() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (options, (free, told)) = options();
        let room = DiskRoom::open(directory.path(), options.clone(), Needs::default());
        let length = || std::fs::metadata(directory.path().join(FILE_NAME)).expect("there").len();
        assert_eq!((room.is_in_use(), length()), (false, WHOLE));
        free.store(0, Ordering::Relaxed);
        assert!(!room.lend(100_000, Draw::Free), "it makes no room");
        assert!(room.lend(100_000, Draw::Reserve) && room.is_in_use());
        let left = WHOLE - 2 * BLOCK_BYTES;
        assert_eq!((room.reserve().bytes, length()), (left, left));
        assert!(!room.lend(WHOLE, Draw::Last), "more than there is");
        assert!(!room.lend(left, Draw::Reserve), "the last block is for drops");
        assert!(!room.restore());
        // What is left is found by the next start.
        let again = DiskRoom::open(directory.path(), ReserveOptions { bytes: 0, ..options.clone() }, Needs::default());
        assert!(again.is_off() && length() == left);
        free.store(PLENTY, Ordering::Relaxed);
        assert!(room.restore() && !room.is_in_use());
        assert_eq!(length(), WHOLE);
        let whole_bytes = WHOLE;
        assert_eq!(*told.lock(), [left, WHOLE].map(|bytes| DiskReserve { bytes, whole_bytes }));
    }

    #[test]
    fn a_checkpoint_is_lent_the_reserve_only_for_what_makes_room_and_leaves_a_part_to_the_log() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let room = DiskRoom::open(directory.path(), options().0, Needs::default());
        assert!(!room.lend_to_checkpoint(), "it carries out nothing that makes room");
        room.note_removal();
        assert!(room.lend_to_checkpoint());
        assert_eq!(room.reserve().bytes, room.log_step_bytes());
        assert!(room.lend_to_checkpoint() && !room.lend_to_checkpoint());
        assert_eq!(room.reserve().bytes, BLOCK_BYTES);
        room.note_checkpoint(1);
        assert!(room.restore() && !room.lend_to_checkpoint(), "the last one carried it out");
        assert!(room.is_relief_due());
        room.note_relief(1);
        assert!(!room.is_relief_due());
    }

    #[test]
    fn who_is_admitted_depends_on_what_is_free_and_on_the_reserve() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (options, (free, _)) = options();
        let room = DiskRoom::open(directory.path(), options, Needs::default());
        let added = Added { changes: 10, logged_bytes: 1000 };
        let admitted = |bytes: u64| {
            free.store(bytes, Ordering::Relaxed);
            [Draw::Free, Draw::Reserve, Draw::Last].map(|draw| room.admits(draw, added))
        };
        assert!(!room.expects(added), "the disk was not asked yet");
        assert_eq!(admitted(2 * MARGIN_BYTES), [true, true, true]);
        assert!(room.expects(added));
        assert!(!room.expects(Added { logged_bytes: MARGIN_BYTES, ..added }), "so much may cost more than there is");
        assert_eq!(admitted(MARGIN_BYTES - 1), [false, true, true]);
        assert!(!room.spares(0) && !room.expects(added), "the log may take what was counted on");
        assert!(room.lend(BLOCK_BYTES, Draw::Reserve));
        assert_eq!(admitted(0), [false, false, true]);
        assert_eq!(admitted(MARGIN_BYTES / 2), [false, true, true]);
        assert_eq!(admitted(3 * MARGIN_BYTES), [true, true, true], "the reserve is whole again");
    }

    #[test]
    fn without_a_reserve_everything_is_admitted() {
        let room = DiskRoom::unlimited();
        assert!(room.is_off() && !room.is_in_use() && room.spares(u64::MAX / 2));
        assert!(room.expects(Added { changes: 1 << 40, logged_bytes: 1 << 50 }));
        assert!(!room.lend(1, Draw::Last) && !room.is_relief_due());
    }
}
