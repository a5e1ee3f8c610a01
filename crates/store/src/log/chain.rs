//! Chains: records that count together or not at all, for what is more than one record holds.
//!
//! All records of a chain are appended under one hold of the log's tail, so that none of another comes between them, and go
//! to the kernel before anybody else's. The last one says that the chain is whole. Whatever stops the log before it, a kill,
//! a full disk, leaves records that nobody counts: what follows them is no part of their chain.
//!
//! **Invariant:** neither what is written nor what is synced ever ends within a chain that goes on.

use super::append::{BUFFER_BYTES_MAX, Log, SEGMENTS_PER_SECOND_MAX, Tail, record_length};
use super::history::Moment;
use super::record::{CHAIN_SEGMENTS_MAX, HEADER_BYTES, Header, Kind, Link};
use super::segment::{SEGMENT_BYTES, first_record, offset_in_segment, segment_of};
use crate::journal::Appended;
use crate::{Batch, Lsn, Result, StorageError};
use std::sync::atomic::Ordering;

impl Log {
    /// Gives the batches of a chain, two or more, their places. `in_order` is called once for all of them, as in
    /// [`Log::append`]; its moment goes from the first to the end of the last,
    /// which is named besides.
    ///
    /// # Errors
    /// As [`Log::append`], before anything counts; also what the kernel says, after which the log has failed.
    pub(crate) fn append_chain(
        &self,
        parts: &[&Batch<'_>],
        time_ms: u64,
        in_order: impl FnOnce(Moment, Lsn),
    ) -> Result<Vec<Appended>> {
        let lengths = parts.iter().map(|part| record_length(part)).collect::<Result<Vec<_>>>()?;
        let checksums: Vec<u32> = parts.iter().map(|part| bunko_checksum::crc32c(part.encoded_effects())).collect();
        // In this order, as everywhere.
        let mut spare = self.writing.lock();
        let mut tail = self.tail.lock();
        if self.has_failed() {
            return Err(StorageError::LogFailed);
        }
        // Its times are those of one second: it does not stand where the lower half of places begins anew.
        while begins_anew_within(tail.next, &lengths)? {
            self.next_segment(&mut tail)?;
        }
        tail.time_ms = tail.time_ms.max(time_ms);
        let mut headers: Vec<Header> = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            if offset_in_segment(tail.next.0) + lengths[index] + HEADER_BYTES as u64 > SEGMENT_BYTES
                && let Err(error) = self.next_segment(&mut tail)
            {
                // What is there of the chain goes to the kernel with whatever comes next, and counts for nothing.
                return Err(error);
            }
            let first = headers.first().map_or(tail.next, |first| first.lsn);
            let link = match index {
                0 => Link::First,
                _ if index + 1 == parts.len() => Link::Last,
                _ => Link::Middle,
            };
            let segments_back = (segment_of(tail.next.0) - segment_of(first.0)) as u32;
            headers.push(self.put(&mut tail, part, checksums[index], Kind::Chained { link, segments_back }));
            if tail.current.bytes.len() >= BUFFER_BYTES_MAX {
                self.write_tail(&mut tail, &mut spare)?;
            }
        }
        self.write_tail(&mut tail, &mut spare)?;
        self.written.store(tail.next.0, Ordering::Release);
        let last = headers[headers.len() - 1].lsn;
        in_order(Moment { lsn: headers[0].lsn, end: tail.next, time_ms: tail.time_ms }, last);
        Ok(headers
            .iter()
            .map(|header| Appended { lsn: header.lsn, documents_position: header.documents_position() })
            .collect())
    }

    /// Hands all that waits to the kernel, without saying so to anybody.
    fn write_tail(&self, tail: &mut Tail, spare: &mut Vec<u8>) -> Result<()> {
        for mut group in std::mem::take(&mut tail.sealed) {
            self.write_group(&group.segment, group.position, &mut group.bytes)?;
        }
        std::mem::swap(&mut tail.current.bytes, spare);
        let position = std::mem::replace(&mut tail.current.position, tail.next.0);
        self.write_group(&tail.current.segment, position, spare)?;
        spare.clear();
        spare.shrink_to(4 * BUFFER_BYTES_MAX);
        Ok(())
    }
}

/// Whether the lower half of places begins anew within a chain of records of those lengths that begins behind `next`.
fn begins_anew_within(next: Lsn, lengths: &[u64]) -> Result<bool> {
    let (mut position, mut first) = (next.0, None);
    for length in lengths {
        if offset_in_segment(position) + length + HEADER_BYTES as u64 > SEGMENT_BYTES {
            position = first_record(segment_of(position) + 1);
        }
        first.get_or_insert(segment_of(position));
        position += length;
    }
    let (first, last) = (first.unwrap_or(0), segment_of(position - 1));
    if last - first >= SEGMENTS_PER_SECOND_MAX.min(CHAIN_SEGMENTS_MAX) {
        return Err(StorageError::RecordTooLarge { length_bytes: lengths.iter().sum() });
    }
    Ok(first / SEGMENTS_PER_SECOND_MAX != last / SEGMENTS_PER_SECOND_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_does_not_stand_where_places_begin_anew() {
        let half = SEGMENT_BYTES / 2;
        let next = |segment: u64| Lsn(first_record(segment) + 100);
        let begins = |segment, lengths: &[u64]| begins_anew_within(next(segment), lengths).expect("short enough");
        assert!(!begins(3, &[half, half, half]));
        assert!(!begins(SEGMENTS_PER_SECOND_MAX - 2, &[half, half, half - 1000]));
        assert!(begins(SEGMENTS_PER_SECOND_MAX - 2, &[half, half, half, half]));
        // It begins in the next segment itself.
        assert!(!begins(SEGMENTS_PER_SECOND_MAX - 1, &[SEGMENT_BYTES - 150, half]));
        let long = vec![SEGMENT_BYTES - 200; SEGMENTS_PER_SECOND_MAX as usize + 1];
        assert!(begins_anew_within(next(0), &long).is_err());
    }
}
