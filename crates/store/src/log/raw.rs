//! Reads the log as raw bytes, to ship them to another member of a replica set.
//!
//! The bytes are whole records, one after the other. After a seal comes the first record of the next segment. Only the
//! header of a gap is read, because the bytes after it are meaningless: they may be remains of a recycled segment.
//! [`super::raw_append`] takes the same bytes.
//!
//! Headers are checked, because they tell where records end. Effects and documents are checked where they arrive.

use super::append::Log;
use super::raw_places::RawPlace;
use super::record::{HEADER_BYTES, Header, Kind};
use super::segment::{SEGMENT_BYTES, Segment, offset_in_segment, segment_of};
use crate::{Lsn, Result, StorageError};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Reads the log from a position on. While it exists, the log keeps the segments that it still has to read, up to a
/// limit.
pub struct RawReader {
    log: Arc<Log>,
    place: Arc<RawPlace>,
    /// Number of truncations of the log when the reader began.
    truncations: u64,
}

impl Log {
    /// Reads raw bytes from `from` on, the position of a record or the end of the log. At most about `kept_bytes_max`
    /// bytes of the log are kept for the reader.
    ///
    /// # Errors
    /// [`StorageError::HistoryLost`] if the log at `from` has been given up.
    pub(crate) fn read_raw_from(self: &Arc<Self>, from: Lsn, kept_bytes_max: u64) -> Result<RawReader> {
        // The place is added before the segment is looked up, so that the log does not give the segment up in between.
        let place = self.raw_places.add(from, kept_bytes_max);
        self.shared_segment(segment_of(from.0)).map_err(|_| StorageError::HistoryLost)?;
        // A truncation holds this lock until it has ended.
        let tail = self.tail.lock();
        let truncations = self.truncations.load(Ordering::SeqCst);
        drop(tail);
        Ok(RawReader { log: Arc::clone(self), place, truncations })
    }
}

impl RawReader {
    /// Position of the next record to be read.
    pub fn position(&self) -> Lsn {
        self.place.next()
    }

    /// Appends the next records that are in the kernel to `into`: as many as fit into `bytes_max`, and one at least.
    /// Appends nothing if there are none yet. Returns the position after them.
    ///
    /// # Errors
    /// [`StorageError::HistoryLost`] if the log has been given up before it was read, or truncated since the reader
    /// began; [`StorageError::Corrupt`] if there is no record at the reader's position. Nothing is appended then.
    pub fn read(&mut self, bytes_max: usize, into: &mut Vec<u8>) -> Result<Lsn> {
        self.read_until(Lsn(u64::MAX), bytes_max, into)
    }

    /// As [`Self::read`], with records below `until` only, where a record begins or the log ends.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_until(&mut self, until: Lsn, bytes_max: usize, into: &mut Vec<u8>) -> Result<Lsn> {
        let begin = into.len();
        let outcome = self.read_records(until, bytes_max, into);
        // The number of truncations is read after the bytes: if it is unchanged, no truncation has changed them.
        let is_truncated = self.log.truncations.load(Ordering::SeqCst) != self.truncations;
        match if is_truncated { Err(StorageError::HistoryLost) } else { outcome } {
            Ok(next) => {
                self.place.move_to(next);
                Ok(next)
            }
            Err(error) => {
                into.truncate(begin);
                Err(error)
            }
        }
    }

    fn read_records(&self, until: Lsn, bytes_max: usize, into: &mut Vec<u8>) -> Result<Lsn> {
        let written = self.log.written.load(Ordering::Acquire).min(until.0);
        let (begin, mut next) = (into.len(), self.position());
        while next.0 < written {
            let room = bytes_max.saturating_sub(into.len() - begin);
            let is_first = into.len() == begin;
            if room < HEADER_BYTES && !is_first {
                break;
            }
            let segment = self.log.shared_segment(segment_of(next.0)).map_err(|_| StorageError::HistoryLost)?;
            // A segment that was made on a full disk is shorter than others.
            let end = written.min(segment.number * SEGMENT_BYTES + segment.length_bytes());
            let behind = take_records(&segment, (next, end), room, into)?;
            if behind == next && is_first {
                next = take_long_record(&segment, next, into)?;
                break;
            }
            if behind == next {
                break;
            }
            next = behind;
        }
        Ok(next)
    }
}

/// Appends the records from `from` on that fit into `room` bytes and end before `end`, up to a seal or a gap. Returns
/// the position after them.
fn take_records(segment: &Segment, (from, end): (Lsn, u64), room: usize, into: &mut Vec<u8>) -> Result<Lsn> {
    let begin = into.len();
    let wanted = (end - from.0).min(room.max(HEADER_BYTES) as u64) as usize;
    read_exactly(segment, from, wanted, into)?;
    let mut taken = begin;
    let mut next = from;
    while into.len() - taken >= HEADER_BYTES {
        let header = header_at(segment, next, &into[taken..])?;
        let shipped = header.shipped_bytes();
        if shipped > into.len() - taken {
            break;
        }
        taken += shipped;
        next = header.behind();
        if matches!(header.kind, Kind::Seal | Kind::Gap) {
            break;
        }
    }
    into.truncate(taken);
    Ok(next)
}

/// Appends a record that is longer than the caller's room.
fn take_long_record(segment: &Segment, at: Lsn, into: &mut Vec<u8>) -> Result<Lsn> {
    let begin = into.len();
    read_exactly(segment, at, HEADER_BYTES, into)?;
    let header = header_at(segment, at, &into[begin..])?;
    into.truncate(begin);
    read_exactly(segment, at, header.shipped_bytes(), into)?;
    Ok(header.behind())
}

fn read_exactly(segment: &Segment, at: Lsn, length: usize, into: &mut Vec<u8>) -> Result<()> {
    let begin = into.len();
    into.resize(begin + length, 0);
    let read = segment.file.read_exact_at(&mut into[begin..], offset_in_segment(at.0));
    read.map_err(|error| StorageError::io(&segment.path, error))
}

fn header_at(segment: &Segment, at: Lsn, bytes: &[u8]) -> Result<Header> {
    Header::decode(bytes, at).ok_or_else(|| segment.corrupt(at.0, "no valid record, where the log is read to ship it"))
}
