//! Records in memory, and their order.

use bunko_errors::Result;
use bunko_heap::prefetch;
use bunko_operation::OperationContext;
use std::cmp::Ordering;

/// Size of the chunks that hold records. A full chunk is never moved.
const CHUNK_BYTES: usize = 1 << 20;
const HEADER_BYTES: usize = 8;
/// Initial size of a chunk, so that few records take little memory.
const FIRST_BYTES: usize = 4096;
/// Records sorted between two checks whether the operation must stop: some 200 microseconds of work.
const RUN: usize = 4096;
/// Records that are prefetched ahead of an ordered read: about as far as a fetch takes.
const FETCHED_AHEAD: usize = 8;
/// Maximum number of bytes prefetched of each record.
const FETCHED_BYTES: usize = 128;

/// A record in an arena. The first bytes of its key decide most comparisons. Places ascend in order of arrival, so
/// comparing them keeps equal keys in that order.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    prefix: u64,
    /// Number of the chunk (upper 32 bits) and offset in it.
    place: u64,
}

/// The first eight bytes of a key as a number that sorts as they do.
pub(crate) fn prefix(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            first[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(first)
        }
    }
}

/// Records of keys and values, and their entries.
#[derive(Default)]
pub(crate) struct Arena {
    chunks: Vec<Vec<u8>>,
    /// The chunk that is being filled; later chunks are empty.
    filling: usize,
    filled_bytes: usize,
    pub entries: Vec<Entry>,
}

impl Arena {
    /// Memory of the records in bytes, including room for sorting them.
    pub fn held_bytes(&self) -> usize {
        self.filled_bytes + self.entries.len() * 2 * size_of::<Entry>()
    }

    /// Adds a record. Its value is given in parts.
    pub fn add(&mut self, key: &[u8], value: &[&[u8]]) {
        let value_bytes: usize = value.iter().map(|part| part.len()).sum();
        let bytes = HEADER_BYTES + key.len() + value_bytes;
        if self.chunks.get(self.filling).is_some_and(|chunk| chunk.len() + bytes > CHUNK_BYTES && !chunk.is_empty()) {
            self.filling += 1;
        }
        if self.filling == self.chunks.len() {
            let first = if self.chunks.is_empty() { FIRST_BYTES } else { CHUNK_BYTES };
            self.chunks.push(Vec::with_capacity(first));
        }
        let chunk = &mut self.chunks[self.filling];
        self.entries.push(Entry { prefix: prefix(key), place: ((self.filling as u64) << 32) | chunk.len() as u64 });
        chunk.extend_from_slice(&(key.len() as u32).to_le_bytes());
        chunk.extend_from_slice(&(value_bytes as u32).to_le_bytes());
        chunk.extend_from_slice(key);
        for part in value {
            chunk.extend_from_slice(part);
        }
        self.filled_bytes += bytes;
    }

    /// The key and the value of an entry of this arena.
    pub fn record(&self, entry: Entry) -> (&[u8], &[u8]) {
        let record = self.bytes_from(entry);
        let length = |at: usize| record[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
        let (key, rest) = record[HEADER_BYTES..].split_at(length(0));
        (key, &rest[..length(4)])
    }

    /// The record at a position of the order, `None` after the last, for readers that go through all: sorted records
    /// are scattered over the chunks, so later ones are prefetched.
    #[inline]
    pub fn in_order(&self, position: usize) -> Option<(&[u8], &[u8])> {
        if let Some(soon) = self.entries.get(position + FETCHED_AHEAD) {
            let bytes = self.bytes_from(*soon);
            prefetch(&bytes[..bytes.len().min(FETCHED_BYTES)]);
        }
        self.entries.get(position).map(|entry| self.record(*entry))
    }

    /// The bytes of a chunk from a record on.
    #[inline]
    fn bytes_from(&self, entry: Entry) -> &[u8] {
        &self.chunks[(entry.place >> 32) as usize][entry.place as u32 as usize..]
    }

    fn compare(&self, one: Entry, other: Entry) -> Ordering {
        one.prefix.cmp(&other.prefix).then_with(|| {
            let keys = self.record(one).0.cmp(self.record(other).0);
            keys.then(one.place.cmp(&other.place))
        })
    }

    /// Sorts the entries. The standard library sorts short runs, because it cannot be interrupted; the runs are merged
    /// here.
    pub fn sort(&mut self, operation: &OperationContext) -> Result<()> {
        let mut entries = std::mem::take(&mut self.entries);
        for run in entries.chunks_mut(RUN) {
            operation.work(run.len())?;
            run.sort_unstable_by(|one, other| self.compare(*one, *other));
        }
        let mut merged = Vec::with_capacity(if entries.len() > RUN { entries.len() } else { 0 });
        let mut width = RUN;
        while width < entries.len() {
            merged.clear();
            for pair in entries.chunks(2 * width) {
                let (left, right) = pair.split_at(width.min(pair.len()));
                self.merge(left, right, &mut merged, operation)?;
            }
            std::mem::swap(&mut entries, &mut merged);
            width *= 2;
        }
        self.entries = entries;
        Ok(())
    }

    fn merge(
        &self,
        left: &[Entry],
        right: &[Entry],
        merged: &mut Vec<Entry>,
        operation: &OperationContext,
    ) -> Result<()> {
        let (mut left, mut right) = (left, right);
        // Runs that are already in order are only joined.
        let is_ordered = match (left.last(), right.first()) {
            (Some(last), Some(first)) => self.compare(*last, *first).is_lt(),
            _ => true,
        };
        while let (Some((a, left_rest)), Some((b, right_rest)), false) =
            (left.split_first(), right.split_first(), is_ordered)
        {
            if self.compare(*a, *b).is_lt() {
                merged.push(*a);
                left = left_rest;
            } else {
                merged.push(*b);
                right = right_rest;
            }
            if merged.len().is_multiple_of(RUN) {
                operation.work(RUN)?;
            }
        }
        merged.extend_from_slice(left);
        merged.extend_from_slice(right);
        Ok(())
    }

    /// Keeps only the first `count` entries in order, and frees the other records.
    pub fn keep_first(&mut self, count: usize) {
        self.entries.truncate(count);
        let mut kept = Self::default();
        for entry in &self.entries {
            let (key, value) = self.record(*entry);
            kept.add(key, &[value]);
        }
        *self = kept;
    }

    /// Drops all records, but keeps the memory for the next ones.
    pub fn clear(&mut self) {
        self.chunks.iter_mut().for_each(Vec::clear);
        (self.filling, self.filled_bytes) = (0, 0);
        self.entries.clear();
    }
}
