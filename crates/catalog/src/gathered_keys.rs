//! Index keys that a build has derived from one snapshot, sorted by index.

use crate::index_keys::{append_only_key, append_stored_keys};
use crate::{Index, Multikey};
use bunko_bson::DocumentRef;
use bunko_errors::{Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::RecordId;
use bunko_versions::head_of;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of keys that are derived from one snapshot for one index; a single record may exceed them. The more keys are
/// sorted together, the closer each is in the index to the one before it.
const BYTES_PER_INDEX: u64 = 8 << 20;
/// Limits the number of keys, as if each had this many bytes.
const BYTES_PER_KEY: usize = 128;
/// Approximate bytes held for each byte of a key: its share of the list of keys, and spare room for both.
const HELD_PER_BYTE: u64 = 3;

/// A record's key found by the builder.
#[derive(Clone, Copy)]
pub(crate) struct FoundKey {
    /// The position of the key's index.
    pub index: u32,
    length: u32,
    start: usize,
    /// The first bytes of the key as a big-endian number, which sorts like the bytes.
    head: u64,
    pub record: RecordId,
}

/// Where a build continues: with the keys of `record` for the index at this position and those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextKeys {
    pub record: RecordId,
    pub index: usize,
}

impl NextKeys {
    /// Continues with all keys of `record`, then with the next records.
    pub fn of(record: RecordId) -> Self {
        Self { record, index: 0 }
    }
}

/// Keys derived from one snapshot, and the facts about their documents.
pub(crate) struct Gathered {
    /// No more keys are derived beyond this many bytes.
    bytes_max: usize,
    bytes: Vec<u8>,
    keys: Vec<FoundKey>,
    /// Arrays and types that are new to an index, by its position.
    pub grown: Vec<(usize, Multikey)>,
    /// Records whose keys cannot be derived.
    pub refused: Vec<(RecordId, Failure)>,
    /// Number of records read.
    pub records: u64,
    /// The places of the current document's keys.
    of_document: Vec<Range<usize>>,
}

impl FoundKey {
    /// Length of the key in bytes.
    pub fn length(&self) -> usize {
        self.length as usize
    }

    /// The key, within the bytes of all keys.
    fn key<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[self.start..][..self.length()]
    }
}

impl Gathered {
    /// For `indexes` indexes that are built together, with a memory limit in bytes.
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

    /// Approximate limit of the memory held, in bytes. It is exceeded if the keys of one record in one index do.
    pub fn held_bytes_max(&self) -> u64 {
        self.bytes_max as u64 * HELD_PER_BYTE
    }

    /// Removes all keys, but keeps memory for the next ones.
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

    /// The keys, in order if they were sorted.
    pub fn keys(&self) -> &[FoundKey] {
        &self.keys
    }

    /// A key as it is stored in the index.
    pub fn of(&self, found: &FoundKey) -> &[u8] {
        found.key(&self.bytes)
    }

    /// Sorts the keys in the order of their indexes.
    pub fn sort(&mut self) {
        let bytes = &self.bytes;
        self.keys.sort_unstable_by(|one, other| {
            (one.index, one.head).cmp(&(other.index, other.head)).then_with(|| one.key(bytes).cmp(other.key(bytes)))
        });
    }

    /// Adds the keys of a record for the built indexes, beginning with `next.index`. Returns the position of the index
    /// to go on with if memory is full before all indexes have their keys, otherwise `None`.
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
            let start = self.bytes.len();
            if append_only_key((position, index), document, record, &mut self.bytes, &mut self.grown) {
                self.push(position, start..self.bytes.len(), record);
                continue;
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
        self.keys.push(FoundKey {
            index: position as u32,
            length: place.len() as u32,
            start: place.start,
            head,
            record,
        });
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

    /// However many indexes are built together, the excess over the limit is at most a document's keys in one of them.
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
    fn the_limit_bounds_the_keys_held() {
        assert_eq!(Gathered::new(1, u64::MAX).bytes_max as u64, BYTES_PER_INDEX);
        assert_eq!(Gathered::new(4, u64::MAX).bytes_max as u64, 4 * BYTES_PER_INDEX);
        assert!(Gathered::new(64, 50 << 20).held_bytes_max() <= 50 << 20);
    }
}
