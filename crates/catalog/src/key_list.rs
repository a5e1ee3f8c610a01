//! The index keys of many documents, side by side.

use crate::index_keys::{KEY_BYTES_MAX, index_keys, note_growth, note_types, own_part, scalar_key, stored_key};
use crate::taken::Taken;
use crate::transaction::Owned;
use crate::write::locks_keys;
use crate::{Index, Multikey, from_storage};
use bunko_bson::DocumentRef;
use bunko_errors::Result;
use bunko_store::{RecordId, View};
use std::sync::Arc;

/// What keys are given room for, in bytes: an object id and its type.
pub(crate) const KEY_BYTES_USUAL: usize = 24;

/// Keys of documents in the collection's indexes, flat to spare allocations.
pub(crate) struct KeyList {
    bytes: Vec<u8>,
    pub(crate) entries: Vec<KeyEntry>,
}

pub(crate) struct KeyEntry {
    pub(crate) document: usize,
    pub(crate) index: usize,
    start: usize,
    end: usize,
}

impl KeyList {
    /// Room for that many keys of usual length.
    pub(crate) fn with_capacity(keys: usize) -> Self {
        Self { bytes: Vec::with_capacity(keys * KEY_BYTES_USUAL), entries: Vec::with_capacity(keys) }
    }

    pub(crate) fn of<'k>(&'k self, entry: &KeyEntry) -> &'k [u8] {
        &self.bytes[entry.start..entry.end]
    }

    /// Those that a transaction may have to itself.
    pub(crate) fn owned<'k>(&'k self, indexes: &'k [Arc<Index>]) -> impl Iterator<Item = Owned> + 'k {
        let locked = self.entries.iter().filter(|entry| locks_keys(&indexes[entry.index]));
        locked.map(|entry| {
            let index = &indexes[entry.index];
            Owned::key(index, own_part(index, self.of(entry)))
        })
    }

    /// Of each index, which of the keys are taken if it is unique. The keys must be locked.
    pub(crate) fn taken<'k>(&'k self, view: &dyn View, indexes: &[Arc<Index>]) -> Result<Vec<Taken<'k>>> {
        let of_index = |(position, index): (usize, &Arc<Index>)| {
            let own = self.entries.iter().filter(move |entry| locks_keys(index) && entry.index == position);
            Taken::new(view, index, own.map(|entry| own_part(index, self.of(entry))))
        };
        indexes.iter().enumerate().map(of_index).collect::<bunko_store::Result<_>>().map_err(from_storage)
    }

    /// Adds the keys of a document; the arrays and types of each index that gained some.
    pub(crate) fn add(
        &mut self,
        indexes: &[Arc<Index>],
        document: usize,
        bytes: &[u8],
        record: RecordId,
        grown: &mut Vec<(usize, Multikey)>,
    ) -> Result<()> {
        let body = DocumentRef::trusted(bytes);
        for (position, index) in indexes.iter().enumerate() {
            let start = self.bytes.len();
            if let Some(types) = scalar_key(index, body, &mut self.bytes)
                && self.bytes.len() - start <= KEY_BYTES_MAX
            {
                note_types(grown, position, index, types);
                stored_key(index, &mut self.bytes, record);
                self.entries.push(KeyEntry { document, index: position, start, end: self.bytes.len() });
                continue;
            }
            self.bytes.truncate(start);
            let keys = index_keys(index, body)?;
            note_growth(grown, position, index, &keys.multikey);
            for key in keys.keys {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(&key);
                stored_key(index, &mut self.bytes, record);
                self.entries.push(KeyEntry { document, index: position, start, end: self.bytes.len() });
            }
        }
        Ok(())
    }
}
