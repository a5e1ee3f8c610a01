//! The index keys that a build has derived from one snapshot, in the order of the index.

use crate::index_keys::append_stored_keys;
use crate::{Index, Multikey};
use bunko_bson::DocumentRef;
use bunko_errors::{Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::RecordId;
use bunko_versions::head_of;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the keys of one index that are derived from one snapshot; one record may have more. The more are sorted together, the
/// nearer each one's place in the index is to the last one's.
const BYTES_PER_INDEX: u64 = 8 << 20;
/// There are as many keys at most as if each had so many bytes.
const BYTES_PER_KEY: usize = 128;
/// Bytes held for each byte of a key, about: its part of the list of keys, and as much spare room as both.
const HELD_PER_BYTE: u64 = 3;

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

/// Where a build goes on: with a record's keys in the built index at a position, and those behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextKeys {
    pub record: RecordId,
    pub index: usize,
}

impl NextKeys {
    /// With all keys of a record, and of those behind it.
    pub fn of(record: RecordId) -> Self {
        Self { record, index: 0 }
    }
}

/// What was derived from one snapshot.
pub(crate) struct Gathered {
    /// Bytes of keys from which on no more are derived.
    bytes_max: usize,
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
    /// For so many indexes that are built together, which may hold so many bytes.
    pub fn new(indexes: usize, held_bytes_max: u64) -> Self {
        let bytes_max = (BYTES_PER_INDEX * indexes as u64).min(held_bytes_max / HELD_PER_BYTE).max(1);
        Self {
            bytes_max: bytes_max as usize,
            bytes: Vec::new(),
            keys: Vec::new(),
            grown: Vec::new(),
            refused: Vec::new(),
            records: 0,
            of_document: Vec::new(),
        }
    }

    /// Most bytes that it holds in memory, about, unless one record has more keys than that in one index.
    pub fn held_bytes_max(&self) -> u64 {
        self.bytes_max as u64 * HELD_PER_BYTE
    }

    /// Leaves nothing but its room.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(2 * self.bytes_max);
        self.keys.clear();
        self.keys.shrink_to(2 * self.bytes_max / BYTES_PER_KEY);
        self.grown.clear();
        self.refused.clear();
        self.records = 0;
    }

    pub fn is_full(&self) -> bool {
        self.keys.len() >= self.bytes_max / BYTES_PER_KEY || self.bytes.len() >= self.bytes_max
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

    /// Adds the keys of a record in the indexes that are built, from one position on. Returns the position of the next
    /// index where it is full before all of them have their keys.
    /// # Errors
    /// As `OperationContext::check`, which includes `Interrupted` if the operation is killed.
    pub fn add(
        &mut self,
        built: &[Arc<Index>],
        next: NextKeys,
        document: DocumentRef<'_>,
        operation: &dyn OperationSource,
    ) -> Result<Option<usize>> {
        let record = next.record;
        self.records += u64::from(next.index == 0);
        for (position, index) in built.iter().enumerate().skip(next.index) {
            if position > next.index && self.is_full() {
                return Ok(Some(position));
            }
            let mut places = std::mem::take(&mut self.of_document);
            let into = (&mut self.bytes, &mut places);
            match append_stored_keys((position, index), document, record, into, &mut self.grown, operation) {
                Ok(()) => places.drain(..).for_each(|place| self.push(position, place, record)),
                Err(failure) => {
                    operation.operation().check()?;
                    self.refused.push((record, failure));
                }
            }
            self.of_document = places;
        }
        Ok(None)
    }

    fn push(&mut self, position: usize, place: Range<usize>, record: RecordId) {
        let head = head_of(&self.bytes[place.clone()]);
        self.keys.push(Found { index: position as u32, length: place.len() as u32, start: place.start, head, record });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexSpec;
    use bunko_bson::DocumentBuf;
    use bunko_operation::OperationContext;
    use bunko_store::KeyspaceId;

    fn index(position: u32) -> Arc<Index> {
        let key = DocumentBuf::new().with("$**", 1_i32);
        let spec = DocumentBuf::new().with("key", &key).with("name", format!("i{position}").as_str());
        Arc::new(Index::new(IndexSpec::parse(spec.as_ref()).expect("a specification"), KeyspaceId(position)))
    }

    /// However many indexes are built together, a document's keys in one of them are held at most beyond the limit.
    #[test]
    fn a_document_with_many_keys_is_taken_index_by_index() {
        let built: Vec<_> = (0..5).map(index).collect();
        let document = (0..1000).fold(DocumentBuf::new(), |all, number| all.with(&format!("field{number}"), number));
        let mut gathered = Gathered::new(built.len(), 3000);
        let operation = OperationContext::unlimited();
        let (mut next, mut keys, mut rounds) = (Some(0), 0, 0);
        while let Some(index) = next {
            gathered.clear();
            let from = NextKeys { record: RecordId(7), index };
            next = gathered.add(&built, from, document.as_ref(), &*operation).expect("nothing ends it");
            assert_eq!(gathered.keys().len(), 1000, "those of one index");
            keys += gathered.keys().len();
            rounds += 1;
        }
        assert_eq!((keys, rounds), (5000, 5));
    }

    #[test]
    fn what_is_held_follows_from_the_limit() {
        assert_eq!(Gathered::new(1, u64::MAX).bytes_max as u64, BYTES_PER_INDEX);
        assert_eq!(Gathered::new(4, u64::MAX).bytes_max as u64, 4 * BYTES_PER_INDEX);
        assert!(Gathered::new(64, 50 << 20).held_bytes_max() <= 50 << 20);
    }
}
