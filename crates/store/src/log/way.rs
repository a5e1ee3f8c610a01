//! Makes room for the next record: in its segment, in a short segment that is extended, or in the next segment.

use super::append::{Group, Log, Tail, begins_anew, next_second};
use super::record::{HEADER_BYTES, Header, Kind};
use super::segment::{SEGMENT_BYTES, SEGMENT_HEADER_BYTES, Segment, first_record, offset_in_segment};
use crate::disk_room::Draw;
use crate::{Lsn, Result, StorageError};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Short segments are extended to multiples of this, because readers read as much at a time.
const STEP_BYTES: u64 = 64 << 10;

impl Log {
    /// Makes room for `length` bytes and a seal at the end of the log: in its segment, or in the next one.
    pub(super) fn make_way(&self, tail: &mut Tail, length: u64, draw: Draw) -> Result<()> {
        if offset_in_segment(tail.next.0) + length + HEADER_BYTES as u64 > self.most_bytes(&tail.current.segment) {
            self.next_segment(tail, length, draw)?;
        }
        let end = offset_in_segment(tail.next.0) + length + HEADER_BYTES as u64;
        let segment = &tail.current.segment;
        if end <= segment.length_bytes() {
            return Ok(());
        }
        self.extend(segment, (end, self.most_bytes(segment)), draw)
    }

    /// Makes room for `length` bytes and a seal in the present segment, however short it was made: the log of another
    /// member says that they stand there.
    pub(super) fn make_way_here(&self, tail: &Tail, length: u64, draw: Draw) -> Result<()> {
        let (end, segment) = (offset_in_segment(tail.next.0) + length + HEADER_BYTES as u64, &tail.current.segment);
        if end > segment.length_bytes() { self.extend(segment, (end, SEGMENT_BYTES), draw) } else { Ok(()) }
    }

    /// Maximum length of a segment.
    fn most_bytes(&self, segment: &Segment) -> u64 {
        match segment.length_bytes() {
            SEGMENT_BYTES => SEGMENT_BYTES,
            short => short.max(self.disk.short_segment_bytes()),
        }
    }

    /// Extends a short segment to at least `end`, and to `most_bytes` at most.
    fn extend(&self, segment: &Segment, (end, most_bytes): (u64, u64), draw: Draw) -> Result<()> {
        let length_bytes = segment.length_bytes();
        let least = end.next_multiple_of(STEP_BYTES).min(most_bytes);
        let usual = (length_bytes + self.disk.log_step_bytes()).next_multiple_of(STEP_BYTES).min(most_bytes);
        let found = self.find_disk(least - length_bytes, usual.max(least) - length_bytes, draw)?;
        segment.extend(length_bytes + found).map_err(|error| StorageError::io(&segment.path, error))
    }

    /// Finds disk for more of the log, free or from the reserve. Returns the number of bytes found: `usual`, or at
    /// least `least`.
    fn find_disk(&self, least: u64, usual: u64, draw: Draw) -> Result<u64> {
        let found = [usual, least].into_iter().find(|bytes| self.disk.spares(*bytes) || self.disk.lend(*bytes, draw));
        found.ok_or_else(|| StorageError::OutOfDiskSpace { path: self.directory.clone() })
    }

    /// The next segment; a short one if the disk has little room.
    fn take_segment(&self, length: u64, draw: Draw) -> Result<Segment> {
        loop {
            match self.preallocator.take() {
                Err(StorageError::OutOfDiskSpace { .. }) if !self.disk.is_off() => {}
                outcome => return outcome,
            }
            let least = (SEGMENT_HEADER_BYTES + length + HEADER_BYTES as u64).next_multiple_of(STEP_BYTES);
            let least = least.min(SEGMENT_BYTES);
            let found = self.find_disk(least, self.disk.log_step_bytes().max(least), draw)?;
            if let Some(segment) = self.preallocator.take_short(found)? {
                return Ok(segment);
            }
        }
    }

    /// Seals the current segment and goes on in the next one. If it fails, nothing is sealed.
    pub(super) fn next_segment(&self, tail: &mut Tail, length: u64, draw: Draw) -> Result<()> {
        if !self.preallocator.is_ready() {
            self.segment_waits.fetch_add(1, Ordering::Relaxed);
        }
        let segment = self.take_segment(length, draw)?;
        let seal = Header {
            length: HEADER_BYTES as u32,
            lsn: tail.next,
            synced: Lsn(self.synced.load(Ordering::Relaxed)),
            time_ms: 0,
            effects_length: 0,
            effects_checksum: 0,
            kind: Kind::Seal,
        };
        let segment = Arc::new(segment);
        self.segments.rcu(|segments| {
            let mut segments = FxHashMap::clone(segments);
            segments.insert(segment.number, Arc::clone(&segment));
            segments
        });
        tail.next = Lsn(first_record(segment.number));
        if begins_anew(tail.next) {
            tail.time_ms = next_second(tail.time_ms);
        }
        let next = Group { segment, position: tail.next.0, bytes: Vec::new() };
        let mut full = std::mem::replace(&mut tail.current, next);
        full.bytes.extend_from_slice(&seal.encode());
        tail.sealed.push(full);
        Ok(())
    }
}
