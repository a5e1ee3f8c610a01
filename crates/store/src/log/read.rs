//! Reads documents from the log.

use super::append::Log;
use super::segment::{Segment, offset_in_segment, segment_of};
use crate::failpoint::{self, Failpoint};
use crate::{Location, Lsn, Result, StorageError};
use rustc_hash::FxHashMap;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Log {
    /// Reads a document into `into` (cleared first) and verifies its checksum.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] with file and offset if the document fails its checksum.
    pub fn read(&self, location: Location, into: &mut Vec<u8>) -> Result<()> {
        into.clear();
        into.resize(location.length as usize, 0);
        self.read_raw(location.position, into)?;
        self.verify(location, into)
    }

    /// Reads bytes without a check; the caller must verify them. Bytes that are not in the kernel yet are written
    /// first.
    pub fn read_raw(&self, position: u64, into: &mut [u8]) -> Result<()> {
        let end = position + into.len() as u64;
        if self.written.load(Ordering::Acquire) < end {
            self.write_through(Lsn(end - 1))?;
        }
        let segments = self.segments.load();
        let segment = self.segment_in(&segments, position)?;
        failpoint::pass(Failpoint::SegmentFound);
        segment
            .file
            .read_exact_at(into, offset_in_segment(position))
            .map_err(|error| StorageError::io(&segment.path, error))
    }

    /// Number of bytes that a read from `position` on may take: up to the end of the log in the kernel, or of the
    /// segment.
    pub fn readable_bytes(&self, position: u64) -> u64 {
        let number = segment_of(position);
        let length_bytes = self.segments.load().get(&number).map_or(0, |segment| segment.length_bytes());
        let segment_end = number * super::segment::SEGMENT_BYTES + length_bytes;
        self.written.load(Ordering::Acquire).min(segment_end).saturating_sub(position)
    }

    /// Checks bytes against the checksum of their location.
    pub fn verify(&self, location: Location, bytes: &[u8]) -> Result<()> {
        if bunko_checksum::crc32c(bytes) == location.checksum {
            return Ok(());
        }
        Err(self
            .segment_in(&self.segments.load(), location.position)?
            .corrupt(location.position, "a document that fails its checksum"))
    }

    /// The error for a bad record at a log position.
    pub(crate) fn corrupt_at(&self, position: Lsn, found: &str) -> StorageError {
        match self.shared_segment(segment_of(position.0)) {
            Ok(segment) => segment.corrupt(position.0, found),
            Err(missing) => missing,
        }
    }

    fn segment_in<'s>(&self, segments: &'s FxHashMap<u64, Arc<Segment>>, position: u64) -> Result<&'s Segment> {
        let number = segment_of(position);
        segments.get(&number).map(Arc::as_ref).ok_or_else(|| Segment::missing(&self.directory, number, position))
    }

    pub(super) fn shared_segment(&self, number: u64) -> Result<Arc<Segment>> {
        let found = self.segments.load().get(&number).cloned();
        found.ok_or_else(|| Segment::missing(&self.directory, number, super::segment::first_record(number)))
    }

    /// Whether the log has the segment.
    pub fn has_segment(&self, number: u64) -> bool {
        self.segments.load().contains_key(&number)
    }
}
