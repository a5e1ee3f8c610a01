//! The index keys that a build has derived from one snapshot, in the order of the index.

use crate::index_keys::append_stored_keys;
use crate::{Index, Multikey};
use bunko_bson::DocumentRef;
use bunko_errors::Failure;
use bunko_store::RecordId;
use bunko_versions::head_of;
use std::ops::Range;
use std::sync::Arc;

/// Keys that are derived from one snapshot, and their bytes; one record may have more. The more are sorted together, the nearer
/// each one's place in the index is to the last one's.
const KEYS_PER_SNAPSHOT: usize = 64 << 10;
const BYTES_PER_SNAPSHOT: usize = 8 << 20;

/// A key of a record that the builder has found.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    /// The position of its index.
    pub index: u32,
    length: u32,
    start: usize,
    /// Its first bytes as a number, which orders as they do.
    head: u64,
    pub record: RecordId,
}

/// What was derived from one snapshot.
#[derive(Default)]
pub(crate) struct Gathered {
    bytes: Vec<u8>,
    keys: Vec<Found>,
    /// Arrays and types that an index does not know of yet, by its position.
    pub grown: Vec<(usize, Multikey)>,
    /// Records whose keys cannot be derived.
    pub refused: Vec<(RecordId, Failure)>,
    /// How many there were.
    pub records: u64,
    /// Where the keys of the document at hand stand.
    of_document: Vec<Range<usize>>,
}

impl Found {
    /// Bytes of the key.
    pub fn length(&self) -> usize {
        self.length as usize
    }

    /// The key, of all their bytes.
    fn key<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[self.start..][..self.length()]
    }
}

impl Gathered {
    /// Leaves nothing but its room.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(2 * BYTES_PER_SNAPSHOT);
        self.keys.clear();
        self.keys.shrink_to(2 * KEYS_PER_SNAPSHOT);
        self.grown.clear();
        self.refused.clear();
        self.records = 0;
    }

    pub fn is_full(&self) -> bool {
        self.keys.len() >= KEYS_PER_SNAPSHOT || self.bytes.len() >= BYTES_PER_SNAPSHOT
    }

    /// The keys, which are in order once they were sorted.
    pub fn keys(&self) -> &[Found] {
        &self.keys
    }

    /// A key as it stands in the index.
    pub fn of(&self, found: &Found) -> &[u8] {
        found.key(&self.bytes)
    }

    /// Puts the keys into the order of their indexes.
    pub fn sort(&mut self) {
        let bytes = &self.bytes;
        self.keys.sort_unstable_by(|one, other| {
            (one.index, one.head).cmp(&(other.index, other.head)).then_with(|| one.key(bytes).cmp(other.key(bytes)))
        });
    }

    /// Adds the keys of a record in all indexes that are built.
    pub fn add(&mut self, built: &[Arc<Index>], record: RecordId, document: DocumentRef<'_>) {
        self.records += 1;
        for (position, index) in built.iter().enumerate() {
            let mut places = std::mem::take(&mut self.of_document);
            let into = (&mut self.bytes, &mut places);
            match append_stored_keys((position, index), document, record, into, &mut self.grown) {
                Ok(()) => places.drain(..).for_each(|place| self.push(position, place, record)),
                Err(failure) => self.refused.push((record, failure)),
            }
            self.of_document = places;
        }
    }

    fn push(&mut self, position: usize, place: Range<usize>, record: RecordId) {
        let head = head_of(&self.bytes[place.clone()]);
        self.keys.push(Found { index: position as u32, length: place.len() as u32, start: place.start, head, record });
    }
}
