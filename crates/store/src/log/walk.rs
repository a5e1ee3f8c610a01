//! Walks a whole segment, for moving its documents elsewhere.

use super::append::Log;
use super::record::{HEADER_BYTES, Header, Kind};
use super::recovery::record_at;
use super::segment::{SEGMENT_BYTES, Segment, first_record, offset_in_segment, segment_of};
use crate::{Effects, Lsn, Result, StorageError};
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

/// Bytes that are read at a time, unless a record is longer or the reader wants less.
const WINDOW_BYTES: usize = 1 << 20;

impl Log {
    /// Numbers of the segments that take no more records, ascending.
    pub fn sealed_segments(&self) -> Vec<u64> {
        let current = segment_of(self.next_lsn().0);
        let mut numbers = self.segment_numbers();
        numbers.retain(|number| *number < current);
        numbers
    }

    /// Shows every record of a sealed segment, verified.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] with file and offset for a bad record; errors of `visit`.
    pub fn walk_segment(&self, number: u64, visit: &mut dyn FnMut(Lsn, Effects<'_>) -> Result<()>) -> Result<()> {
        let end = first_record(number + 1);
        if self.written.load(Ordering::Acquire) < end {
            self.write_through(Lsn(end))?;
        }
        let segment = self.shared_segment(number)?;
        let mut window = Window::default();
        let mut position = first_record(number);
        loop {
            let corrupt = || segment.corrupt(position, "no valid record, in a sealed segment");
            let header = window.at(&segment, position, HEADER_BYTES, end)?;
            let header = Header::decode(header, Lsn(position)).ok_or_else(corrupt)?;
            match header.kind {
                Kind::Seal => return Ok(()),
                Kind::Gap => {
                    position += u64::from(header.length);
                    continue;
                }
                Kind::Batch | Kind::Term | Kind::Chained { .. } => {}
            }
            let record = window.at(&segment, position, header.length as usize, end)?;
            let (header, record) = record_at(record, 0, Lsn(position)).ok_or_else(corrupt)?;
            visit(Lsn(position), header.effects(record))?;
            position += u64::from(header.length);
        }
    }
}

/// Some bytes of a segment in memory.
#[derive(Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    /// Offset in the file of the first byte.
    start: usize,
}

impl Window {
    /// The bytes at a position; fewer if the segment ends before. Reads ahead up to the position `until`, because a
    /// reader that follows the log's end wants little at a time.
    pub fn at(&mut self, segment: &Segment, position: u64, length: usize, until: u64) -> Result<&[u8]> {
        let offset = offset_in_segment(position) as usize;
        let end = (offset + length).min(SEGMENT_BYTES as usize);
        if offset < self.start || end > self.start + self.bytes.len() {
            let ahead = until.saturating_sub(position).min(WINDOW_BYTES as u64) as usize;
            let wanted = (end - offset).max(ahead).min(SEGMENT_BYTES as usize - offset);
            self.bytes.clear();
            self.bytes.resize(wanted, 0);
            self.start = offset;
            // A segment that was made on a full disk is shorter than others.
            let there = (segment.length_bytes() as usize).saturating_sub(offset).max(end - offset);
            self.bytes.truncate(there);
            let read = segment.file.read_exact_at(&mut self.bytes, offset as u64);
            read.map_err(|error| StorageError::io(&segment.path, error))?;
        }
        Ok(&self.bytes[offset - self.start..end - self.start])
    }
}
