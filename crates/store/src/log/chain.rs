//! Chains: records that count together or not at all. They are used for commits that do not fit into one record, and
//! for commits that take so long to apply that other writers would wait for them.
//!
//! ```text
//! first ─ [others] ─ middle ─ [others] ─ middle ─ [others] ─ gap ─ last
//!                                                                  ▲ reserved before engines apply the chain, placed after
//! ```
//! The records of a chain are appended one by one, with records of other writers between them. Then the position of the
//! last one is reserved some way ahead of the log's end. Engines apply the whole chain at that position, which no view
//! sees yet, while other writers append before it. At the end the last record is put there. A writer that reaches the
//! reserved position earlier puts the last record itself, and then waits for the chain as for any record before its
//! own.
//!
//! The last record makes the chain complete. If the log stops before it, by a kill or on a full disk, the chain's
//! records count for nothing.
//!
//! **Invariant:** one chain at a time is open, from its first record to its last; the store ensures that.
//! **Invariant:** no view is taken of a state with a part of a chain, and no checkpoint is marked at one.

use super::append::{BUFFER_BYTES_MAX, Log, Tail, record_length};
use super::group_write::take_waiting;
use super::history::Moment;
use super::record::{CHAIN_SEGMENTS_MAX, HEADER_BYTES, Header, Kind, Link};
use super::segment::{SEGMENT_BYTES, Segment, segment_of};
use crate::disk_room::Draw;
use crate::journal::AppendedRecord;
use crate::{Batch, Lsn, Result, StorageError};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A reserved position begins a page of the kernel's cache, so that the page is not written before the record.
const PAGE_BYTES: u64 = 4096;
/// Maximum distance in bytes of a reserved position from the log's end.
const AHEAD_BYTES_MAX: u64 = SEGMENT_BYTES / 4;
/// Maximum padding of a chain's last record in bytes: one byte for each operation.
const OPERATIONS_MAX: u64 = SEGMENT_BYTES / 16;

/// The last record of a chain, and its reserved position.
pub(super) struct Reserved {
    at: Lsn,
    length: u64,
    last: Batch<'static>,
    kind: Kind,
}

impl Reserved {
    /// End of the record.
    pub fn end(&self) -> Lsn {
        Lsn(self.at.0 + self.length)
    }

    /// Whether a record of that length fits before the reserved position, with a gap record after it.
    pub fn leaves_room_for(&self, next: Lsn, length: u64) -> bool {
        next.0 + length + HEADER_BYTES as u64 <= self.at.0
    }
}

impl Log {
    /// Appends all records of a chain except the last one, and writes them to the kernel.
    ///
    /// # Errors
    /// As [`Log::append`]; the chain then counts for nothing.
    pub(crate) fn append_links(&self, parts: &[&Batch<'_>], draw: Draw) -> Result<Vec<AppendedRecord>> {
        let all: u64 = parts.iter().map(|part| part.operations()).sum();
        let mut links: Vec<AppendedRecord> = Vec::with_capacity(parts.len());
        let mut before = 0;
        for part in parts {
            let first = links.first().map(|first| first.lsn);
            let header = self.append_link(part, draw, scaled(before, all), first)?;
            links.push(AppendedRecord { lsn: header.lsn, documents_position: header.documents_position() });
            before += part.operations();
        }
        Ok(links)
    }

    /// Appends one record. It goes from the batch to the kernel without the buffer of other writers, who can append
    /// meanwhile.
    fn append_link(&self, part: &Batch<'_>, draw: Draw, operations_before: u64, first: Option<Lsn>) -> Result<Header> {
        let length = record_length(part)?;
        let effects_checksum = bunko_checksum::crc32c(part.encoded_effects());
        let mut spare = self.writing.lock();
        let (header, segment, waiting) = {
            let mut tail = self.tail.lock();
            if self.has_failed() {
                return Err(StorageError::LogFailed);
            }
            self.make_way(&mut tail, length, draw)?;
            let link = if first.is_none() { Link::First } else { Link::Middle };
            let header = Header {
                length: length as u32,
                lsn: tail.next,
                synced: Lsn(self.synced.load(Ordering::Relaxed)),
                time_ms: operations_before,
                effects_length: part.encoded_effects().len() as u32,
                effects_checksum,
                kind: chained(link, first.unwrap_or(tail.next), tail.next)?,
            };
            let waiting = take_waiting(&mut tail, &mut spare);
            tail.next = Lsn(header.lsn.0 + length);
            tail.current.position = tail.next.0;
            self.appended_records.fetch_add(1, Ordering::Relaxed);
            (header, Arc::clone(&tail.current.segment), waiting)
        };
        self.write_waiting(waiting, &mut spare)?;
        self.write_link(&segment, &header, part, &mut spare)?;
        self.written.store(header.lsn.0 + length, Ordering::Release);
        Ok(header)
    }

    /// Writes a record to the kernel in pieces that pass through `buffer`.
    fn write_link(&self, segment: &Segment, header: &Header, part: &Batch<'_>, buffer: &mut Vec<u8>) -> Result<()> {
        let encoded = header.encode();
        let documents = part.documents().iter().map(AsRef::as_ref);
        let mut position = header.lsn.0;
        buffer.clear();
        for mut rest in [encoded.as_slice(), part.encoded_effects()].into_iter().chain(documents) {
            while !rest.is_empty() {
                let (piece, later) = rest.split_at(rest.len().min(BUFFER_BYTES_MAX - buffer.len()));
                buffer.extend_from_slice(piece);
                rest = later;
                if buffer.len() == BUFFER_BYTES_MAX {
                    position = self.write_group(segment, position, buffer)?;
                    buffer.clear();
                }
            }
        }
        self.write_group(segment, position, buffer)?;
        buffer.clear();
        Ok(())
    }

    /// Reserves a position for the last record of a chain that began at `first`, about `ahead_bytes` bytes ahead of the
    /// log's end. [`Log::place`] must follow.
    ///
    /// # Errors
    /// As [`Log::append`]; the chain then counts for nothing.
    pub(crate) fn reserve(&self, operations: u64, first: Lsn, ahead_bytes: u64, draw: Draw) -> Result<Lsn> {
        let mut last = Batch::new();
        // Each operation of the chain has its own time, and a record has as many times as bytes.
        last.pad(operations.min(OPERATIONS_MAX) as usize);
        let length = record_length(&last)?;
        let ahead_bytes = ahead_bytes.min(AHEAD_BYTES_MAX);
        let place = |next: Lsn| (next.0 + ahead_bytes).next_multiple_of(PAGE_BYTES);
        let mut tail = self.tail.lock();
        if self.has_failed() {
            return Err(StorageError::LogFailed);
        }
        let ahead = place(tail.next) - tail.next.0;
        self.make_way(&mut tail, ahead + length, draw)?;
        let at = Lsn(place(tail.next));
        let kind = chained(Link::Last, first, at)?;
        tail.reserved = Some(Reserved { at, length, last, kind });
        Ok(at)
    }

    /// Puts the last record of a chain, unless another writer has put it; `in_order` as for [`Log::append`]. Returns
    /// whether it has been put; false if the log failed before.
    pub(crate) fn place(&self, time_ms: u64, mut in_order: impl FnMut(Moment)) -> bool {
        let mut tail = self.tail.lock();
        if self.has_failed() {
            return tail.reserved.take().is_none();
        }
        tail.time_ms = tail.time_ms.max(time_ms);
        self.place_reserved(&mut tail, &mut in_order);
        true
    }

    /// Puts a gap record at the end of the log. The log goes on at `behind`, in the same segment.
    pub(super) fn put_gap(&self, tail: &mut Tail, behind: Lsn) {
        let gap = Header {
            length: (behind.0 - tail.next.0) as u32,
            lsn: tail.next,
            synced: Lsn(self.synced.load(Ordering::Relaxed)),
            time_ms: 0,
            effects_length: 0,
            effects_checksum: 0,
            kind: Kind::Gap,
        };
        tail.current.bytes.extend_from_slice(&gap.encode());
        tail.next = behind;
        let (sealed, before) = take_waiting(tail, &mut Vec::new());
        tail.sealed = sealed;
        tail.sealed.push(before);
    }

    /// Puts the record with the reserved position, if there is one, and a gap record before it.
    pub(super) fn place_reserved(&self, tail: &mut Tail, in_order: &mut impl FnMut(Moment)) {
        let Some(Reserved { at, last, kind, .. }) = tail.reserved.take() else { return };
        if tail.next < at {
            self.put_gap(tail, at);
        }
        let header = self.put(tail, &last, bunko_checksum::crc32c(&[]), kind);
        in_order(Moment { lsn: header.lsn, end: tail.next, time_ms: tail.time_ms });
    }
}

fn chained(link: Link, first: Lsn, own: Lsn) -> Result<Kind> {
    let segments_back = segment_of(own.0) - segment_of(first.0);
    if segments_back >= CHAIN_SEGMENTS_MAX {
        return Err(StorageError::RecordTooLarge { length_bytes: own.0 - first.0 });
    }
    Ok(Kind::Chained { link, segments_back: segments_back as u32 })
}

/// The byte of the last record that belongs to an operation. Several operations share a byte if there are too many. A
/// chain has few records, so each record still has bytes of its own.
fn scaled(number: u64, all: u64) -> u64 {
    if all <= OPERATIONS_MAX {
        number
    } else {
        (u128::from(number) * u128::from(OPERATIONS_MAX) / u128::from(all)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk_room::DiskRoom;
    use crate::log::{LogOptions, recover};
    use crate::{KeyspaceId, RecordId};
    use bunko_host::Clock;

    fn batch(record: u64, bytes: usize) -> Batch<'static> {
        let mut batch = Batch::new();
        batch.insert_record(KeyspaceId(1), RecordId(record), vec![record as u8; bytes]);
        batch
    }

    fn start(directory: &std::path::Path) -> (Arc<Log>, Vec<(u64, u64)>) {
        let mut replayed = Vec::new();
        let found = recover(directory, Lsn(0), &mut |lsn, effects| {
            for effect in effects {
                if let crate::Effect::PutRecord { record, .. } = effect {
                    replayed.push((record.0, lsn.0));
                }
            }
            Ok(())
        });
        (
            Log::start(found.expect("there"), LogOptions::default(), Clock::machine(), 5500, &DiskRoom::unlimited())
                .expect("starts"),
            replayed,
        )
    }

    /// Batches of other writers between the records of a chain count by themselves. A chain counts only with its last
    /// record, and from that record's position on.
    #[test]
    fn others_append_within_a_chain() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (log, _) = start(directory.path());
        let append = |record| log.append(&batch(record, 100), Draw::Free, 5500, |_| ()).expect("placed").lsn;
        let (one, two) = (batch(10, 3 << 20), batch(11, 1 << 10));
        let first = log.append_links(&[&one], Draw::Free).expect("placed")[0].lsn;
        let between = append(1);
        // The chain goes on after another writer's record; the link is the same as in one call.
        let second = log.append_link(&two, Draw::Free, 1, Some(first)).expect("placed").lsn;
        let at = log.reserve(2, first, 100_000, Draw::Free).expect("reserved");
        let before = append(2);
        assert!(first < between && between < second && second < before && before < at);
        assert!(log.next_lsn() < at && at < log.applied_before());
        let copied = |log: &Log| {
            log.write(Lsn(log.next_lsn().0 - 1)).expect("written");
            bunko_testkit::directory::crash_copy(directory.path())
        };
        let cut = copied(&log);
        let mut placed = Vec::new();
        assert!(log.place(6000, |moment| placed.push(moment.lsn)));
        let behind = append(3);
        assert_eq!(placed, [at]);
        assert!(behind > at && log.applied_before() == log.next_lsn());
        let whole = copied(&log);
        let (_log, replayed) = start(cut.path());
        assert_eq!(replayed, [(1, between.0), (2, before.0)], "the last record was not there");
        let (_log, replayed) = start(whole.path());
        assert_eq!(replayed, [(1, between.0), (2, before.0), (10, at.0), (11, at.0), (3, behind.0)]);
        log.close().expect("closes");
    }

    #[test]
    fn the_appender_at_a_reserved_place_puts_its_record_there() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (log, _) = start(directory.path());
        let first = log.append_links(&[&batch(10, 100)], Draw::Free).expect("placed")[0].lsn;
        let at = log.reserve(1, first, 20_000, Draw::Free).expect("reserved");
        let mut order = Vec::new();
        for record in 0..5 {
            log.append(&batch(record, 6000), Draw::Free, 5500, |moment| order.push(moment.lsn)).expect("placed");
        }
        assert_eq!(order.iter().position(|lsn| *lsn == at), Some(3), "{order:?}");
        assert!(order.is_sorted());
        assert!(log.place(6000, |_| panic!("it stands there")));
        log.write(order[5]).expect("written");
        let copied = bunko_testkit::directory::crash_copy(directory.path());
        let (_log, replayed) = start(copied.path());
        assert_eq!(replayed.iter().map(|(record, _)| *record).collect::<Vec<_>>(), [0, 1, 2, 10, 3, 4]);
        // A reserved position that no longer fits into its segment is in the next one. A record that does not fit
        // before the reserved position is placed after it.
        let first = log.append_links(&[&batch(11, SEGMENT_BYTES as usize / 2)], Draw::Free).expect("placed")[0].lsn;
        log.append(&batch(12, SEGMENT_BYTES as usize / 2 - 100_000), Draw::Free, 5500, |_| ()).expect("placed");
        let at = log.reserve(1, first, AHEAD_BYTES_MAX, Draw::Free).expect("reserved");
        assert_eq!(segment_of(at.0), segment_of(first.0) + 1);
        let large = log.append(&batch(13, SEGMENT_BYTES as usize - 1000), Draw::Free, 5500, |_| ()).expect("placed");
        assert_eq!(segment_of(large.lsn.0), segment_of(at.0) + 1);
        log.close().expect("closes");
    }
}
