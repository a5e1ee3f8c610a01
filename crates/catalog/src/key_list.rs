//! The index keys of many documents, side by side.

use crate::index_keys::{append_stored_keys, own_part};
use crate::taken::Taken;
use crate::transaction::Owned;
use crate::write::locks_keys;
use crate::{Index, Multikey, from_storage};
use bunko_bson::DocumentRef;
use bunko_errors::Result;
use bunko_store::{RecordId, View};
use std::ops::Range;
use std::sync::Arc;

/// What keys are given room for, in bytes: an object id and its type.
pub(crate) const KEY_BYTES_USUAL: usize = 24;

/// Keys of documents in the collection's indexes, flat to spare allocations.
pub(crate) struct KeyList {
    bytes: Vec<u8>,
    pub(crate) entries: Vec<KeyEntry>,
    /// Where the keys of the document at hand stand.
    of_document: Vec<Range<usize>>,
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
        Self {
            bytes: Vec::with_capacity(keys * KEY_BYTES_USUAL),
            entries: Vec::with_capacity(keys),
            of_document: Vec::new(),
        }
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
            let into = (&mut self.bytes, &mut self.of_document);
            append_stored_keys((position, index), body, record, into, grown)?;
            let entry =
                |place: Range<usize>| KeyEntry { document, index: position, start: place.start, end: place.end };
            self.entries.extend(self.of_document.drain(..).map(entry));
        }
        Ok(())
    }
}
