//! Records in memory, and their order.

use bunko_errors::Result;
use bunko_heap::prefetch;
use bunko_operation::OperationContext;
use std::cmp::Ordering;

/// Records stand in chunks of about that size, which are never moved once they are full.
const CHUNK_BYTES: usize = 1 << 20;
const HEADER_BYTES: usize = 8;
/// What a chunk begins with, so that few records take little.
const FIRST_BYTES: usize = 4096;
/// So many records are sorted between two questions whether the operation has to stop: some 200 microseconds' work.
const RUN: usize = 4096;
/// How many records ahead those are fetched from memory that are read in order: about as far as that takes.
const FETCHED_AHEAD: usize = 8;
/// Of each so many bytes at most.
const FETCHED_BYTES: usize = 128;

/// A record in an arena: the first bytes of its key decide most comparisons. Places ascend as records are added, so that
/// they keep equal keys in the order of the input.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    prefix: u64,
    /// Chunk and offset.
    place: u64,
}

/// The first eight bytes of a key as a number in the key's order.
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

/// Records of keys and values, and what leads to them.
#[derive(Default)]
pub(crate) struct Arena {
    chunks: Vec<Vec<u8>>,
    /// The chunk that records are added to; those behind it are empty.
    filling: usize,
    filled_bytes: usize,
    pub entries: Vec<Entry>,
}

impl Arena {
    /// What the records take, in bytes, with room for sorting them.
    pub fn held_bytes(&self) -> usize {
        self.filled_bytes + self.entries.len() * 2 * size_of::<Entry>()
    }

    /// Adds a record, whose value comes in parts.
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

    /// Key and value of an entry of this arena.
    pub fn record(&self, entry: Entry) -> (&[u8], &[u8]) {
        let record = self.bytes_from(entry);
        let length = |at: usize| record[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
        let (key, rest) = record[HEADER_BYTES..].split_at(length(0));
        (key, &rest[..length(4)])
    }

    /// The record at a position of the order, for those who read one after the other: sorted records stand anywhere, so
    /// that the next ones are fetched meanwhile.
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

    /// Puts the entries in order: short runs by the standard library, which cannot be stopped, and merged here.
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
        // What came in order stays so.
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

    /// Leaves only the entries that are in order before a position, and no bytes of the others.
    pub fn keep_first(&mut self, count: usize) {
        self.entries.truncate(count);
        let mut kept = Self::default();
        for entry in &self.entries {
            let (key, value) = self.record(*entry);
            kept.add(key, &[value]);
        }
        *self = kept;
    }

    /// Forgets all records, and keeps the memory for the next ones.
    pub fn clear(&mut self) {
        self.chunks.iter_mut().for_each(Vec::clear);
        (self.filling, self.filled_bytes) = (0, 0);
        self.entries.clear();
    }
}
