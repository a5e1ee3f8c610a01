//! Estimates memory, so that the limit counts memory and not just bytes of documents.

use crate::document::Document;
use crate::garbage::Waiting;
use crate::key::{IndexKey, PackedRecordId};
use bunko_versions::{Before, Forgotten, Put, Version};

/// An entry with its share of pointers to parent and children, lengths and empty slots: a leaf of the B-tree has eleven
/// slots, and six to eight of them are in use.
const INDEX_ENTRY_BYTES: i64 = (size_of::<IndexKey>() + size_of::<Version<PackedRecordId>>()) as i64 * 11 / 6 + 5;
/// A version in a page, and the page's share of the tree of pages.
const RECORD_ENTRY_BYTES: i64 = size_of::<Version<Document>>() as i64 + 2;
/// An entry of the garbage queue, whose allocation doubles as it grows.
pub(crate) const WAITING_BYTES: i64 = size_of::<Waiting>() as i64 * 3 / 2;
/// Size of the reference counts before a shared slice.
const SHARED_BYTES: usize = 16;
/// Length of the longest index key without its own allocation, and size of the count before a longer key.
const INLINE_KEY_BYTES: usize = 20;
const SHARED_KEY_BYTES: usize = 8;

/// Memory of an entry, and of a version behind a newer one, without their values.
pub(crate) struct Costs {
    pub entry: i64,
    version: i64,
}

impl Costs {
    pub fn of_record() -> Self {
        Self { entry: RECORD_ENTRY_BYTES, version: allocation(size_of::<Version<Document>>()) }
    }

    pub fn of_key(key: &IndexKey) -> Self {
        let key_bytes = if key.len() > INLINE_KEY_BYTES { allocation(SHARED_KEY_BYTES + key.len()) } else { 0 };
        Self { entry: INDEX_ENTRY_BYTES + key_bytes, version: allocation(size_of::<Version<PackedRecordId>>()) }
    }

    /// Bytes that a put adds, without its own value; negative if it forgot more than it added.
    pub fn added<V>(&self, put: &Put<V>, value_bytes: impl Fn(&V) -> i64) -> i64 {
        match (&put.before, &put.forgotten) {
            (Before::Nothing, _) => self.entry,
            (_, None) => self.version,
            // The replaced version is kept behind the new one; the forgotten versions are freed.
            (_, Some(forgotten)) => self.version - self.freed(forgotten, value_bytes),
        }
    }

    /// Bytes of forgotten versions, which stood behind newer ones.
    pub fn freed<V>(&self, forgotten: &Forgotten<V>, value_bytes: impl Fn(&V) -> i64) -> i64 {
        forgotten.values().map(|value| self.version + value.map_or(0, &value_bytes)).sum()
    }
}

/// Memory of a document's bytes.
pub(crate) fn document_bytes(document: &Document) -> i64 {
    allocation(SHARED_BYTES + document.bytes().len())
}

/// Memory of an allocation: mimalloc and jemalloc have four sizes between a power of two and the next.
fn allocation(bytes: usize) -> i64 {
    let step = (bytes.next_power_of_two() / 8).max(8);
    bytes.next_multiple_of(step) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_rounded_up_to_a_quarter_of_a_power_of_two() {
        for (bytes, taken) in [(1, 8), (64, 64), (65, 80), (1016, 1024), (1024, 1024), (1040, 1280), (3000, 3072)] {
            assert_eq!(allocation(bytes), taken, "{bytes}");
        }
    }

    #[test]
    fn nothing_grew_unnoticed() {
        assert_eq!((size_of::<Version<Document>>(), size_of::<Version<PackedRecordId>>()), (48, 24));
        assert_eq!((size_of::<IndexKey>(), size_of::<Waiting>()), (32, 56));
    }
}
