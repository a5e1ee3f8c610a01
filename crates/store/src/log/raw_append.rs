//! Appends raw bytes of another member's log, so that both logs are equal.
//!
//! The bytes are those of [`RawReader::read`](super::RawReader::read). All lengths and checksums are verified before
//! any record is appended. Each record gets the position that it had, segments end where they ended there, and only the
//! `synced` stamp is this member's own: recovery takes the stamp as evidence of what was on this disk.
//!
//! **Invariant:** the log's end is the only position at which a record is taken.

use super::append::{BUFFER_BYTES_MAX, Log, Tail};
use super::record::{HEADER_BYTES, Header, Kind};
use super::recovery::record_at;
use super::segment::{SEGMENT_BYTES, offset_in_segment};
use crate::disk_room::Draw;
use crate::planted::{self, Bug};
use crate::{Lsn, Result, StorageError};
use std::sync::atomic::Ordering;

/// A verified record, and its bytes as shipped.
pub(super) struct Shipped<'b> {
    pub header: Header,
    pub bytes: &'b [u8],
}

impl Log {
    /// Appends whole records of another member's log, which begin where this log ends. Returns the new end. The records
    /// are buffered as after [`Log::append`]: [`Log::write`] returns once they are in the kernel, and
    /// [`Log::on_durable`] calls back once they are on disk. Only one thread may append.
    ///
    /// # Errors
    /// [`StorageError::ForeignRecord`] if a record is cut, fails a checksum, does not stand at its position, begins a
    /// term that is not above the last one, or does not continue this log; then nothing is kept.
    /// [`StorageError::OutOfDiskSpace`] and [`StorageError::LogFailed`]; records before the one that found no room are
    /// kept, and the caller goes on from [`Log::next_lsn`].
    pub(crate) fn append_raw(&self, bytes: &[u8]) -> Result<Lsn> {
        let end = self.next_lsn();
        let records = verify(bytes, end)?;
        verify_terms(&records, self.terms().last())?;
        let mut records = records.iter().peekable();
        while records.peek().is_some() {
            let mut tail = self.tail.lock();
            if self.has_failed() {
                return Err(StorageError::LogFailed);
            }
            while let Some(record) = records.next_if(|_| tail.current.bytes.len() < BUFFER_BYTES_MAX) {
                self.put_raw(&mut tail, record)?;
            }
            let (last, is_full) = (Lsn(tail.next.0 - 1), tail.current.bytes.len() >= BUFFER_BYTES_MAX);
            drop(tail);
            if is_full {
                self.write_through(last)?;
            }
        }
        Ok(self.next_lsn())
    }

    fn put_raw(&self, tail: &mut Tail, Shipped { header, bytes }: &Shipped<'_>) -> Result<()> {
        if tail.next != header.lsn {
            return Err(foreign(header.lsn, "another record has been appended there meanwhile"));
        }
        match header.kind {
            Kind::Seal => return self.next_segment(tail, HEADER_BYTES as u64, Draw::Free),
            Kind::Batch | Kind::Term | Kind::Gap | Kind::Chained { .. } => {
                self.make_way_here(tail, u64::from(header.length), Draw::Free)?;
            }
        }
        if header.kind == Kind::Gap {
            self.put_gap(tail, header.behind());
            return Ok(());
        }
        let time_ms = header.time_ms + u64::from(planted::active(Bug::ShippedDiffers));
        let stamped = Header { synced: Lsn(self.synced.load(Ordering::Relaxed)), time_ms, ..*header };
        tail.current.bytes.extend_from_slice(&stamped.encode());
        tail.current.bytes.extend_from_slice(&bytes[HEADER_BYTES..]);
        tail.next = header.behind();
        if let Some(term) = term_of(header, bytes) {
            self.terms().begin(term, header.lsn);
        }
        if header.is_dated() {
            tail.time_ms = tail.time_ms.max(header.time_ms);
        }
        self.appended_records.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Finds the records in `bytes`, of which the first must stand at `from`, and checks every byte that a checksum covers.
pub(super) fn verify(bytes: &[u8], from: Lsn) -> Result<Vec<Shipped<'_>>> {
    let (mut records, mut rest, mut position) = (Vec::new(), bytes, from);
    while !rest.is_empty() {
        let refused = |found| Err(foreign(position, found));
        let Some(header) = Header::decode(rest, position) else {
            return refused("there is no valid header of a record with this position");
        };
        if !fits(&header) {
            return refused("the record is longer than its segment, or a seal or gap has contents");
        }
        let Some((record, behind)) = rest.split_at_checked(header.shipped_bytes()) else {
            return refused("the record is cut");
        };
        let is_whole = || record_at(record, 0, position).is_some_and(|(header, record)| header.has_clean_end(record));
        if !matches!(header.kind, Kind::Seal | Kind::Gap) && !is_whole() {
            return refused("the record's effects or documents fail their checksums");
        }
        if header.kind == Kind::Term && term_of(&header, record).is_none() {
            return refused("the record begins a term and names none");
        }
        records.push(Shipped { header, bytes: record });
        position = header.behind();
        rest = behind;
    }
    Ok(records)
}

/// Checks that the terms that begin in `records` ascend, from the log's last term on.
fn verify_terms(records: &[Shipped<'_>], mut last: u64) -> Result<()> {
    for Shipped { header, bytes } in records {
        if let Some(term) = term_of(header, bytes) {
            if term <= last {
                return Err(foreign(header.lsn, "the record begins a term that is not above the last one"));
            }
            last = term;
        }
    }
    Ok(())
}

/// Whether a record fits into its segment, with a seal after it, and has only fields that its kind uses.
fn fits(header: &Header) -> bool {
    let room = SEGMENT_BYTES - offset_in_segment(header.lsn.0);
    let is_bare = (header.time_ms, header.effects_length, header.effects_checksum) == (0, 0, 0);
    match header.kind {
        Kind::Seal => is_bare && header.length as usize == HEADER_BYTES && u64::from(header.length) <= room,
        Kind::Gap => is_bare && u64::from(header.length) + HEADER_BYTES as u64 <= room,
        Kind::Batch | Kind::Term | Kind::Chained { .. } => u64::from(header.length) + HEADER_BYTES as u64 <= room,
    }
}

/// The term that a record begins, if it begins one.
fn term_of(header: &Header, record: &[u8]) -> Option<u64> {
    (header.kind == Kind::Term).then(|| Header::term(&header.effects(record)))?
}

fn foreign(position: Lsn, found: &str) -> StorageError {
    StorageError::ForeignRecord { position: position.0, found: found.to_owned() }
}
