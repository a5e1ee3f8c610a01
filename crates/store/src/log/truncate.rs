//! Truncates the log, because another member's log goes on differently.
//!
//! ```text
//! sync ──► intent is durable ──► zero behind the end, delete later segments ──► delete the intent ──► append again
//! ```
//! The intent names the new end. From the moment that it is durable, the records behind that end never count again: a
//! start that finds the intent reads the log only up to there, and carries the rest out before it appends.
//!
//! The later segments are deleted and never recycled. Their bytes have positions that the log will reach again, so in a
//! recycled file they could be taken for its records.
//!
//! **Invariant:** no record is appended before the intent is gone, or a start would truncate that record too.

use super::append::{Group, Log};
use super::raw::position_behind;
use super::record::{HEADER_BYTES, Header};
use super::segment::{SEGMENT_BYTES, Segment, first_record, offset_in_segment, segment_of};
use super::walk::Window;
use crate::{Lsn, Result, StorageError, files};
use rustc_hash::FxHashMap;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

const FILE_NAME: &str = "truncation.intent";
const INTENT_BYTES: usize = 12;
/// Bytes of zeros that are written at a time.
const ZEROS_BYTES: usize = 1 << 20;

impl Log {
    /// Removes all records from `end` on, the position of a record or of a segment's first one. No engine may have
    /// applied any of them, and no other thread may append.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] if no record begins at `end`; nothing is changed then. After another error the log has
    /// failed, and the next start goes on.
    pub(crate) fn truncate_to(&self, end: Lsn) -> Result<()> {
        if end == self.next_lsn() {
            return Ok(());
        }
        let segment = self.shared_segment(segment_of(end.0))?;
        self.sync_blocking(self.next_lsn())?;
        Self::check_boundary(&segment, end)?;
        let _syncing = self.syncing.lock();
        let _writing = self.writing.lock();
        let mut tail = self.tail.lock();
        let truncated = (|| {
            write_intent(&self.directory, end)?;
            self.segments.rcu(|segments| {
                let mut segments = FxHashMap::clone(segments);
                segments.retain(|number, _| *number <= segment.number);
                segments
            });
            let remove = || carry_out(&self.directory, Some(&segment), end);
            self.preallocator.begin_again(segment.number + 1, remove)
        })();
        truncated.map_err(|error| self.fail(error))?;
        self.terms().truncate(end);
        tail.next = end;
        tail.sealed.clear();
        tail.current = Group { segment, position: end.0, bytes: Vec::new() };
        self.written.store(end.0, Ordering::Release);
        self.synced.store(end.0, Ordering::Release);
        Ok(())
    }

    /// # Errors
    /// [`StorageError::Corrupt`] unless a record begins or the log ends at `end`.
    fn check_boundary(segment: &Segment, end: Lsn) -> Result<()> {
        let (mut position, mut window) = (Lsn(first_record(segment.number)), Window::default());
        while position < end {
            let header = Header::decode(window.at(segment, position.0, HEADER_BYTES, end.0)?, position);
            let Some(header) = header else { break };
            position = position_behind(&header);
        }
        let is_boundary = position == end;
        is_boundary.then_some(()).ok_or_else(|| segment.corrupt(end.0, "no record begins where the log is truncated"))
    }
}

/// The position to which an unfinished truncation leads.
///
/// # Errors
/// [`StorageError::Corrupt`] for a damaged intent.
pub(super) fn intent(directory: &Path) -> Result<Option<Lsn>> {
    let path = path(directory);
    let Some(bytes) = files::read(&path)? else { return Ok(None) };
    let intended = <&[u8; INTENT_BYTES]>::try_from(bytes.as_slice()).ok().and_then(|bytes| {
        let (position, checksum) = bytes.split_at(8);
        (bunko_checksum::crc32c(position).to_le_bytes() == *checksum).then_some(position)
    });
    let position = intended.and_then(|position| position.try_into().ok()).map(u64::from_le_bytes);
    let corrupt = || StorageError::Corrupt { file: path.clone(), offset_bytes: 0, found: "a damaged intent".into() };
    position.map(|position| Some(Lsn(position))).ok_or_else(corrupt)
}

fn path(directory: &Path) -> PathBuf {
    directory.join(FILE_NAME)
}

fn write_intent(directory: &Path, end: Lsn) -> Result<()> {
    let temporary = directory.join("truncation.tmp");
    let position = end.0.to_le_bytes();
    let io = |error| StorageError::io(&temporary, error);
    let mut file = files::create(&temporary)?;
    file.write_all(&position).map_err(io)?;
    file.write_all(&bunko_checksum::crc32c(&position).to_le_bytes()).map_err(io)?;
    file.sync_all().map_err(io)?;
    files::rename(&temporary, &path(directory))?;
    files::sync_directory(directory)
}

/// Carries out a truncation whose intent is durable, and removes the intent. `segment` is the one with the new end; a
/// start that finds it missing makes it anew.
pub(super) fn carry_out(directory: &Path, segment: Option<&Segment>, end: Lsn) -> Result<()> {
    for number in Segment::list(directory)?.into_iter().rev().filter(|number| *number > segment_of(end.0)) {
        files::remove(&Segment::path(directory, number))?;
    }
    if let Some(segment) = segment {
        zero_from(segment, end)?;
    }
    // The segments must be gone before the intent that says so.
    files::sync_directory(directory)?;
    files::remove(&path(directory))?;
    files::sync_directory(directory)
}

fn zero_from(segment: &Segment, end: Lsn) -> Result<()> {
    let io = |error| StorageError::io(&segment.path, error);
    let zeros = vec![0; ZEROS_BYTES.min(SEGMENT_BYTES as usize)];
    let (mut offset, length) = (offset_in_segment(end.0), segment.length_bytes());
    while offset < length {
        let part = &zeros[..zeros.len().min((length - offset) as usize)];
        segment.file.write_all_at(part, offset).map_err(io)?;
        offset += part.len() as u64;
    }
    segment.file.sync_data().map_err(io)
}
