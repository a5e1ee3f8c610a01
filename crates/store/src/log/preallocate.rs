//! Keeps the next segment ready, so that no writer waits for the filesystem to find room.
//!
//! A segment is made under a temporary name, allocated (by recycling, fallocate, or zero fill if the filesystem has
//! neither), given its header, synced and renamed. So a file with a segment's name is always complete.
//!
//! If the disk is too full, no segment is made ahead. The log then goes on in short segments, which it extends step by
//! step.

#[cfg(all(test, feature = "models"))]
mod model;

use super::segment::{SEGMENT_BYTES, Segment, allocate};
use crate::disk_room::DiskRoom;
use crate::panics::caught;
use crate::planted::{self, Bug};
use crate::{Result, StorageError, files};
use bunko_sync::{Condvar, Mutex, MutexGuard, thread};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of retired segments that wait for reuse; more are deleted. All are deleted while the disk has less
/// free than [`PLENTY_BYTES`].
const RECYCLED_MAX: usize = 4;

/// A whole segment is made only if the disk has this much free beside the needs of the next checkpoint. A short segment
/// can be deleted sooner, because it holds less.
pub(super) const PLENTY_BYTES: u64 = 16 * SEGMENT_BYTES;

/// Hands out segments in order; a thread of its own makes them ahead.
pub(super) struct Preallocator {
    state: Mutex<Preallocation>,
    changed: Condvar,
    directory: PathBuf,
    disk: Arc<DiskRoom>,
}

struct Preallocation {
    /// The segment to make next.
    number: u64,
    next: Next,
    recycled: Vec<PathBuf>,
    is_closing: bool,
}

enum Next {
    Wanted,
    Made(Result<Segment>),
    /// The attempt failed, and the caller of [`Preallocator::take`] has got the error.
    Refused,
}

impl Preallocator {
    /// Starts making segment `number`.
    pub fn start(directory: &Path, number: u64, disk: &Arc<DiskRoom>) -> (Arc<Self>, thread::JoinHandle<()>) {
        let preallocator = Arc::new(Self {
            state: Mutex::new(Preallocation { number, next: Next::Wanted, recycled: Vec::new(), is_closing: false }),
            changed: Condvar::new(),
            directory: directory.to_owned(),
            disk: Arc::clone(disk),
        });
        let thread = {
            let preallocator = Arc::clone(&preallocator);
            thread::Builder::new()
                .name("log-allocate".into())
                .spawn(move || preallocator.run())
                .expect("a thread can be started")
        };
        (preallocator, thread)
    }

    fn run(&self) {
        let mut state = self.state.lock();
        while !state.is_closing {
            if !matches!(state.next, Next::Wanted) {
                self.changed.wait(&mut state);
                continue;
            }
            let (number, recycled) = (state.number, state.recycled.pop());
            // Writers wait for the segment, so a panic must not end this thread.
            let made = MutexGuard::unlocked(&mut state, || caught(|| self.make(number, recycled)).unwrap_or_else(Err));
            state.next = Next::Made(made);
            self.changed.notify_all();
        }
    }

    /// Makes the next segment. Refuses if the disk has so little room that a short one should be made instead.
    fn make(&self, number: u64, recycled: Option<PathBuf>) -> Result<Segment> {
        if recycled.is_none() && !self.disk.spares(PLENTY_BYTES) {
            return Err(StorageError::OutOfDiskSpace { path: self.directory.clone() });
        }
        make(&self.directory, number, recycled, SEGMENT_BYTES)
    }

    /// The next segment as a short one; `None` if a whole one may be ready by now.
    ///
    /// # Errors
    /// [`StorageError::OutOfDiskSpace`] if the disk has no room for that either.
    pub fn take_short(&self, length_bytes: u64) -> Result<Option<Segment>> {
        let mut state = self.state.lock();
        if !matches!(state.next, Next::Refused) {
            return Ok(None);
        }
        let segment = make(&self.directory, state.number, None, length_bytes)?;
        state.number += 1;
        Ok(Some(segment))
    }

    /// Whether the next segment can be taken without waiting for it.
    pub fn is_ready(&self) -> bool {
        matches!(self.state.lock().next, Next::Made(Ok(_)))
    }

    /// The next segment; waits until it is ready.
    ///
    /// # Errors
    /// The error of an attempt that ended during this call. Errors of earlier attempts lead to another attempt, because
    /// the disk may have got room since.
    pub fn take(&self) -> Result<Segment> {
        let mut state = self.state.lock();
        let mut has_waited = false;
        loop {
            match std::mem::replace(&mut state.next, Next::Wanted) {
                Next::Made(Ok(segment)) => {
                    state.number = segment.number + 1;
                    self.changed.notify_all();
                    return Ok(segment);
                }
                Next::Made(Err(error)) if has_waited => {
                    state.next = Next::Refused;
                    return Err(error);
                }
                Next::Made(Err(_)) | Next::Refused => {
                    self.changed.notify_all();
                }
                Next::Wanted => {}
            }
            self.changed.wait(&mut state);
            has_waited = true;
        }
    }

    /// Makes segment `number` next, once `remove` has removed the segments from there on, with the one that was made
    /// ahead. None is made meanwhile.
    ///
    /// # Errors
    /// As `remove`.
    pub fn begin_again(&self, number: u64, remove: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut state = self.state.lock();
        // The thread makes a segment without the lock, and puts it here afterwards.
        self.changed.wait_while(&mut state, |state| matches!(state.next, Next::Wanted) && !state.is_closing);
        remove()?;
        state.number = number;
        state.next = Next::Wanted;
        self.changed.notify_all();
        Ok(())
    }

    /// Takes a segment file that no reader needs any more.
    pub fn recycle(&self, segment: &Segment) -> Result<()> {
        let mut state = self.state.lock();
        if files::is_shared(&segment.path, &segment.file)? {
            // An image has the file too, and must not see another segment's bytes in it.
            return files::remove(&segment.path);
        }
        if self.disk.is_scarce(PLENTY_BYTES) {
            for path in state.recycled.drain(..) {
                files::remove(&path)?;
            }
            return files::remove(&segment.path);
        }
        if state.recycled.len() >= RECYCLED_MAX {
            return files::remove(&segment.path);
        }
        let path = segment.path.with_extension("recycled");
        if planted::active(Bug::OfferedBeforeRename) {
            state.recycled.push(path.clone());
            drop(state);
            // Without this yield the model would run no other thread in between.
            thread::yield_now();
            return files::rename(&segment.path, &path);
        }
        files::rename(&segment.path, &path)?;
        state.recycled.push(path);
        Ok(())
    }

    pub fn close(&self) {
        self.state.lock().is_closing = true;
        self.changed.notify_all();
    }
}

/// Makes one segment of that length, durable under its name.
pub(super) fn make(directory: &Path, number: u64, recycled: Option<PathBuf>, length_bytes: u64) -> Result<Segment> {
    let path = Segment::path(directory, number);
    let temporary = directory.join(format!("{number:012}.tmp"));
    let io = |error| StorageError::io(&temporary, error);
    if let Some(recycled) = recycled {
        files::rename(&recycled, &temporary)?;
        // A crash must not bring back the file's old segment name once it has another segment's header.
        files::sync_directory(directory)?;
    }
    let file = files::open_or_create(&temporary)?;
    allocate(&file, length_bytes).map_err(|error| {
        // A checkpoint may need the blocks that the unfinished file took from a full disk.
        let _ = files::remove(&temporary);
        io(error)
    })?;
    Segment::initialise(&file, number).map_err(io)?;
    file.sync_all().map_err(io)?;
    files::rename(&temporary, &path)?;
    if !planted::active(Bug::NoDirectorySync) {
        files::sync_directory(directory)?;
    }
    Segment::new(number, file, path.clone()).map_err(|error| StorageError::io(&path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_come_in_order_and_recycled_files_return() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (preallocator, thread) = Preallocator::start(directory.path(), 3, &DiskRoom::unlimited());
        let third = preallocator.take().expect("room");
        let fourth = preallocator.take().expect("room");
        assert_eq!((third.number, fourth.number), (3, 4));
        assert_eq!(third.file.metadata().expect("file").len(), SEGMENT_BYTES);
        preallocator.recycle(&third).expect("renamed");
        let fifth = preallocator.take().expect("room");
        let sixth = preallocator.take().expect("room");
        assert_eq!((fifth.number, sixth.number), (5, 6));
        Segment::open(directory.path(), 6).expect("a whole segment");
        assert!(!third.path.exists());
        preallocator.close();
        thread.join().expect("no panic");
    }

    #[test]
    fn a_file_that_an_image_has_too_is_not_used_again() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (preallocator, thread) = Preallocator::start(directory.path(), 0, &DiskRoom::unlimited());
        let (shared, own) = (preallocator.take().expect("room"), preallocator.take().expect("room"));
        files::hard_link(&shared.path, &directory.path().join("image")).expect("linked");
        preallocator.recycle(&shared).expect("removed");
        assert!(preallocator.state.lock().recycled.is_empty() && !shared.path.exists());
        preallocator.recycle(&own).expect("kept");
        assert_eq!(preallocator.state.lock().recycled.len(), 1);
        preallocator.close();
        thread.join().expect("no panic");
    }

    #[test]
    fn a_failure_is_not_reported_to_later_callers() {
        for is_asked_for in [false, true] {
            let parent = tempfile::tempdir().expect("temporary directory");
            let directory = parent.path().join("log");
            let (preallocator, thread) = Preallocator::start(&directory, 0, &DiskRoom::unlimited());
            if is_asked_for {
                assert!(preallocator.take().is_err());
                assert!(preallocator.take().is_err());
            } else {
                let mut state = preallocator.state.lock();
                preallocator.changed.wait_while(&mut state, |state| matches!(state.next, Next::Wanted));
            }
            std::fs::create_dir(&directory).expect("a directory");
            assert_eq!(preallocator.take().expect("room").number, 0);
            assert_eq!(preallocator.take().expect("room").number, 1);
            preallocator.close();
            thread.join().expect("no panic");
        }
    }
}
