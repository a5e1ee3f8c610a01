//! Writes groups of buffered records to the kernel, with one write for each segment.

use super::append::{BUFFER_BYTES_MAX, Group, Log, Tail};
use super::segment::{Segment, offset_in_segment};
use crate::failpoint::{self, Failpoint};
use crate::planted::{self, Bug};
use crate::{Lsn, Result, StorageError};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Size of the pages in which the kernel caches files.
const PAGE_BYTES: u64 = 4096;

impl Log {
    /// Returns once the record at `lsn` is in the kernel, where it survives a kill of the process: the default level of
    /// acknowledgement.
    pub fn write(&self, lsn: Lsn) -> Result<()> {
        if planted::active(Bug::AckBeforeAppend) { Ok(()) } else { self.write_through(lsn) }
    }

    /// Writes all records up to the one at `lsn` to the kernel.
    pub(super) fn write_through(&self, lsn: Lsn) -> Result<()> {
        if self.written.load(Ordering::Acquire) > lsn.0 {
            return Ok(());
        }
        let mut spare = self.writing.lock();
        if self.written.load(Ordering::Acquire) > lsn.0 {
            return Ok(());
        }
        let waiting = take_waiting(&mut self.tail.lock(), &mut spare);
        failpoint::pass(Failpoint::GroupTaken);
        self.write_waiting(waiting, &mut spare)
    }

    /// Writes the given groups to the kernel, and puts the last group's buffer into `spare`.
    pub(super) fn write_waiting(&self, (sealed, mut last): (Vec<Group>, Group), spare: &mut Vec<u8>) -> Result<()> {
        for mut group in sealed {
            let end = self.write_group(&group.segment, group.position, &mut group.bytes)?;
            self.written.store(end, Ordering::Release);
        }
        let end = self.write_group(&last.segment, last.position, &mut last.bytes)?;
        self.written.store(end, Ordering::Release);
        self.moved().ring();
        *spare = last.bytes;
        spare.clear();
        spare.shrink_to(4 * BUFFER_BYTES_MAX);
        Ok(())
    }

    /// Writes the bytes at a position, with zeros after them that fill the page if needed. Returns the end of the
    /// bytes.
    pub(super) fn write_group(&self, segment: &Segment, position: u64, bytes: &mut Vec<u8>) -> Result<u64> {
        if self.has_failed() {
            return Err(StorageError::LogFailed);
        }
        let end = position + bytes.len() as u64;
        bytes.resize(bytes.len() + padding(position, end), 0);
        if let Err(error) = segment.file.write_all_at(bytes, offset_in_segment(position))
            && !planted::active(Bug::FailedWriteIgnored)
        {
            return Err(self.fail(StorageError::io(&segment.path, error)));
        }
        self.written_groups.fetch_add(1, Ordering::Relaxed);
        Ok(end)
    }
}

/// Takes all groups that are not yet in the kernel; `spare` becomes the buffer of the next group.
pub(super) fn take_waiting(tail: &mut Tail, spare: &mut Vec<u8>) -> (Vec<Group>, Group) {
    let sealed = std::mem::take(&mut tail.sealed);
    let segment = Arc::clone(&tail.current.segment);
    let next = Group { segment, position: tail.next.0, bytes: std::mem::take(spare) };
    (sealed, std::mem::replace(&mut tail.current, next))
}

/// Number of zeros to write after a group that stands from `start` to `end`.
///
/// If a write covers only a part of a page that is not in the cache, the kernel first reads the page from disk. In a
/// recycled segment every new page would wait for the disk in this way. So the first write to a page fills all of it.
fn padding(start: u64, end: u64) -> usize {
    let is_on_known_page = !start.is_multiple_of(PAGE_BYTES) && end.div_ceil(PAGE_BYTES) == start.div_ceil(PAGE_BYTES);
    if is_on_known_page { 0 } else { (end.next_multiple_of(PAGE_BYTES) - end) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_writer_of_a_page_writes_all_of_it() {
        for (start, end, zeros) in [
            (0, 0, 0),
            (0, 10, 4086),
            (10, 20, 0),
            (10, 4096, 0),
            (10, 4097, 4095),
            (4096, 4097, 4095),
            (4096, 8192, 0),
        ] {
            assert_eq!(padding(start, end), zeros, "{start}..{end}");
        }
    }
}
