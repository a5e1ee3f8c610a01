//! Room on the disk: a reserve for writes that make room, and the admission of writes while disk is scarce.
//!
//! A deletion needs disk before it gives any back: for its record in the log, and for the checkpoint that carries it
//! out. So a file of fixed size, the reserve, keeps some disk away from all other writes:
//!
//! ```text
//!          the log, or a checkpoint after deletions, finds no disk
//!   whole ────────────────────────────────────────────────────────► in use
//!     ▲                                                                │
//!     └──────── deletions gave so much back that it is whole again ────┘
//! ```
//! While the reserve is whole, a batch is admitted if the next checkpoint has disk for all waiting changes and for the
//! batch. While the reserve is in use, only batches that make room are admitted ([`Batch::makes_room`]).
//!
//! [`Batch::makes_room`]: crate::Batch::makes_room

use crate::engines::Needs;
use crate::error::is_full;
use crate::{Added, Result, StorageError, files};
use parking_lot::Mutex;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const FILE_NAME: &str = "disk.reserve";
/// Disk that a checkpoint takes besides the engines' needs: the manifest, and blocks that the filesystem keeps for
/// itself.
const MARGIN_BYTES: u64 = 1 << 20;
/// Upper bound of the disk bytes per byte in a memtable: a short entry can make the engine rewrite a whole page.
const DISK_PER_MEMORY: u64 = 64;
/// The log takes the reserve in this many parts.
const LOG_PARTS: u64 = 4;
/// Maximum size of a part: about 100,000 deletions.
const LOG_STEP_BYTES_MAX: u64 = 8 << 20;
/// Disk is taken in multiples of this.
const BLOCK_BYTES: u64 = 64 << 10;

/// Called when the reserve comes into use, and when it is whole again.
pub type ReserveHook = Arc<dyn Fn(DiskReserve) + Send + Sync>;

/// Free bytes on the disk of a directory; `None` if the system does not say.
pub type FreeBytes = Arc<dyn Fn(&Path) -> Option<u64> + Send + Sync>;

/// Options of the disk reserve.
#[derive(Clone)]
pub struct ReserveOptions {
    /// Size of the whole reserve in bytes; 0 for none. Without a reserve all writes are admitted until the disk is
    /// full.
    pub bytes: u64,
    /// Called from time to time, more often when less disk is free.
    pub free_bytes: FreeBytes,
    /// Called at each change.
    pub on_change: ReserveHook,
}

impl ReserveOptions {
    /// No reserve.
    #[must_use]
    pub fn none() -> Self {
        Self { bytes: 0, free_bytes: Arc::new(|_| None), on_change: Arc::new(|_| ()) }
    }
}

/// Present state of the reserve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskReserve {
    /// Bytes left in the reserve.
    pub bytes: u64,
    /// Size of the whole reserve in bytes.
    pub whole_bytes: u64,
}

impl DiskReserve {
    /// Whether only writes that make room are admitted.
    pub fn is_in_use(&self) -> bool {
        self.bytes < self.whole_bytes
    }
}

/// Part of the disk that a write may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Draw {
    /// Free disk only.
    Free,
    /// The reserve too, because the write makes room.
    Reserve,
    /// All of the reserve, because the write drops keyspaces: it may free most of the disk, and takes little.
    Last,
}

/// The disk of one data directory.
pub(crate) struct DiskRoom {
    directory: PathBuf,
    options: ReserveOptions,
    /// Locked while the reserve shrinks or grows; `None` without a reserve.
    file: Mutex<Option<File>>,
    bytes: AtomicU64,
    needs: Needs,
    /// Bytes that engines held unflushed at the last commit.
    unflushed: AtomicU64,
    /// The next checkpoint certainly has room while engines hold no more unflushed bytes than this.
    limit: AtomicU64,
    /// Number of batches that made room.
    removals: AtomicU64,
    /// Whether a batch that makes room was admitted although its checkpoint may find too little disk.
    is_pressed: AtomicBool,
    /// Number of batches that made room and are in the last checkpoint.
    checkpointed: AtomicU64,
    /// Number of times that space was given back.
    reliefs: AtomicU64,
    /// Number of batches that had made room when space was last given back.
    relieved: AtomicU64,
}

impl DiskRoom {
    /// A disk whose free space is never checked.
    pub fn unlimited() -> Arc<Self> {
        Arc::new(Self::new(PathBuf::new(), ReserveOptions::none(), Needs::default()))
    }

    /// Creates the reserve, or finds what is left of it. The start goes on if the disk is already full, or if the
    /// filesystem cannot preallocate; in the second case there is no reserve.
    pub fn open(directory: &Path, options: ReserveOptions, needs: Needs) -> Arc<Self> {
        let mut room = Self::new(directory.to_owned(), options, needs);
        if room.options.bytes == 0 {
            return Arc::new(room);
        }
        room.options.bytes = room.options.bytes.next_multiple_of(BLOCK_BYTES);
        let path = room.directory.join(FILE_NAME);
        match files::open_or_create(&path) {
            Ok(file) => {
                let bytes = file.metadata().map_or(0, |metadata| metadata.len()).min(room.options.bytes);
                let has_room = room.free_bytes().is_none_or(|free| free >= room.options.bytes - bytes);
                let make =
                    || if has_room { allocate(&file, room.options.bytes) } else { Err(ErrorKind::StorageFull.into()) };
                let outcome = file.set_len(bytes).and_then(|()| make());
                let is_off = outcome.as_ref().is_err_and(|error| !is_full(error));
                room.bytes.store(if outcome.is_ok() { room.options.bytes } else { bytes }, Ordering::Relaxed);
                if outcome.is_err() {
                    // The filesystem may have allocated a part before it ran out of room.
                    let _ = file.set_len(if is_off { 0 } else { bytes });
                }
                if is_off {
                    room.options.bytes = 0;
                }
                *room.file.lock() = Some(file);
            }
            Err(StorageError::OutOfDiskSpace { .. }) => {}
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

    /// Whether there is no reserve. Then all writes are admitted until the disk is full.
    pub fn is_off(&self) -> bool {
        self.options.bytes == 0
    }

    /// Present state of the reserve.
    pub fn reserve(&self) -> DiskReserve {
        DiskReserve { bytes: self.bytes.load(Ordering::Relaxed), whole_bytes: self.options.bytes }
    }

    /// Whether only batches that make room are admitted.
    pub fn is_in_use(&self) -> bool {
        self.reserve().is_in_use()
    }

    /// Whether the next checkpoint certainly has room, judged without asking the disk.
    pub fn expects(&self, added: Added) -> bool {
        self.unflushed.load(Ordering::Relaxed).saturating_add(added.bytes()) <= self.limit.load(Ordering::Relaxed)
    }

    /// Notes the bytes that engines hold unflushed.
    pub fn note_unflushed(&self, bytes: u64) {
        self.unflushed.store(bytes, Ordering::Relaxed);
    }

    /// Asks the disk whether the next checkpoint has room for the waiting changes and for a batch.
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

    /// Whether to try a batch that makes room although [`Self::admits`] finds too little disk: engines usually ask for
    /// more than they need. False if the needs exceed the whole reserve, because then perhaps no checkpoint could
    /// follow the batch.
    pub fn risks(&self, added: Added) -> bool {
        self.needs.bytes(added) <= self.options.bytes
    }

    /// Whether the log may take this many bytes and still leave room for the next checkpoint.
    pub fn spares(&self, bytes: u64) -> bool {
        if self.is_off() {
            return true;
        }
        // The log may take the disk that the limit counted on.
        self.limit.store(0, Ordering::Relaxed);
        self.free_bytes().is_none_or(|free| free >= bytes + self.needs.bytes(Added::default()) + MARGIN_BYTES)
    }

    /// Whether less than `bytes` is free, or the reserve is in use. Then no disk is spent on files that are only kept
    /// for later use.
    pub fn is_scarce(&self, bytes: u64) -> bool {
        !self.is_off() && (self.is_in_use() || self.free_bytes().is_some_and(|free| free < bytes))
    }

    /// Maximum length of a short segment: the reserve has room for its live documents while they are moved elsewhere.
    pub fn short_segment_bytes(&self) -> u64 {
        (self.options.bytes / 2).next_multiple_of(BLOCK_BYTES)
    }

    /// Bytes of the reserve that the log takes at a time.
    pub fn log_step_bytes(&self) -> u64 {
        let part = (self.options.bytes / LOG_PARTS).min(LOG_STEP_BYTES_MAX);
        part.next_multiple_of(BLOCK_BYTES)
    }

    /// Frees this many bytes of the reserve for a record that makes room; false if less is left. The last block is kept
    /// for records that drop keyspaces.
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

    /// Frees reserve for a checkpoint that found no room: at first all but one step of the log, then all but the last
    /// block. False if the checkpoint would carry out no batch that makes room, and if nothing is left to free.
    pub fn lend_to_checkpoint(&self) -> bool {
        let file = self.file.lock();
        let (bytes, kept) = (self.bytes.load(Ordering::Relaxed), self.log_step_bytes());
        let left = if bytes > kept { kept } else { BLOCK_BYTES };
        let is_due = self.removals() > self.checkpointed.load(Ordering::Relaxed);
        is_due && bytes > left && self.shrink(file.as_ref(), left)
    }

    fn shrink(&self, file: Option<&File>, left: u64) -> bool {
        let Some(file) = file else { return false };
        // Some filesystems free the blocks only once the change is on disk.
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

    /// Makes the reserve whole if there is disk for it and for the next checkpoint. Returns whether it is whole.
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
            *file = files::open_or_create(&self.directory.join(FILE_NAME)).ok();
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

    /// Notes that a batch made room.
    pub fn note_removal(&self) {
        self.removals.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of batches that made room so far.
    pub fn removals(&self) -> u64 {
        self.removals.load(Ordering::Relaxed)
    }

    /// Notes that a checkpoint has carried out the first `removals` batches that made room.
    pub fn note_checkpoint(&self, removals: u64) {
        self.checkpointed.fetch_max(removals, Ordering::Relaxed);
    }

    /// Notes that a batch that makes room was admitted although its checkpoint may find too little disk. Returns
    /// whether that had already happened since space was last given back.
    pub fn press(&self) -> bool {
        self.is_pressed.swap(true, Ordering::Relaxed)
    }

    /// Whether [`Self::press`] was called since space was last given back.
    pub fn is_pressed(&self) -> bool {
        self.is_pressed.load(Ordering::Relaxed)
    }

    /// Number of times that space was given back.
    pub fn reliefs(&self) -> u64 {
        self.reliefs.load(Ordering::Relaxed)
    }

    /// Whether a batch made room since space was last given back.
    pub fn is_relief_due(&self) -> bool {
        !self.is_off() && self.removals() > self.relieved.load(Ordering::Relaxed)
    }

    /// Notes that the space of the first `removals` batches that made room has been given back as far as possible.
    pub fn note_relief(&self, removals: u64) {
        self.relieved.fetch_max(removals, Ordering::Relaxed);
        self.is_pressed.store(false, Ordering::Relaxed);
        self.reliefs.fetch_add(1, Ordering::Relaxed);
    }

    fn free_bytes(&self) -> Option<u64> {
        (self.options.free_bytes)(&self.directory)
    }

    /// The error of a write that found no room.
    pub fn full(&self) -> StorageError {
        StorageError::OutOfDiskSpace { path: self.directory.clone() }
    }
}

/// Makes a file that long, with disk blocks allocated for all of it.
fn allocate(file: &File, bytes: u64) -> std::io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    fallocate(file, FallocateFlags::empty(), 0, bytes)?;
    file.sync_all()
}

/// `None` if the outcome is a full disk.
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

    /// The free bytes of a test disk, and the changes of its reserve.
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
        // The next start finds what is left of the reserve.
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
    fn admission_depends_on_the_free_disk_and_the_reserve() {
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
