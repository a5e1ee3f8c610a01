//! Index keys of many documents in one buffer.

use crate::index_keys::{KEY_BYTES_USUAL, append_only_key, append_stored_keys, own_part};
use crate::taken::Taken;
use crate::write::{KeyChange, UniqueKey, locks_keys};
use crate::{Index, Multikey, from_storage};
use bunko_bson::DocumentRef;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{RecordId, SEGMENT_BYTES, StorageError, View};
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of bytes of keys that one log record may have for several documents.
const BATCH_KEYS_BYTES_MAX: usize = 16 << 20;

/// Copies of each key during a commit.
const COPIES: usize = 3;

/// Bytes of an effect in a batch and of a node in a memtable, not counting the key.
const NODE_BYTES: usize = 128;

/// Keys of documents in the collection's indexes, in one buffer to save allocations.
pub(crate) struct KeyList {
    bytes: Vec<u8>,
    pub(crate) entries: Vec<KeyEntry>,
    /// The places of the current document's keys in one index, if it may have several.
    of_document: Vec<Range<usize>>,
}

pub(crate) struct KeyEntry {
    pub(crate) document: usize,
    pub(crate) index: usize,
    start: usize,
    end: usize,
}

impl KeyList {
    /// Room for `keys` keys of usual length.
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

    /// Estimate of the bytes that a commit takes beside these keys: each is copied into the batch, into the log's buffer
    /// and into an engine's memtable.
    pub(crate) fn copies_bytes(&self) -> usize {
        COPIES * self.bytes.len() + NODE_BYTES * self.entries.len()
    }

    /// The keys in indexes that lock their keys.
    pub(crate) fn unique<'k>(&'k self, indexes: &'k [Arc<Index>]) -> impl Iterator<Item = UniqueKey<'k>> {
        let keys = self.entries.iter().map(|entry| (&*indexes[entry.index], self.of(entry)));
        let locked = keys.filter(|(index, _)| locks_keys(index));
        locked.map(|(index, key)| UniqueKey { index, key, change: KeyChange::Put })
    }

    /// For each unique index, a check of which keys are taken; for other indexes, an empty one. The caller holds the
    /// keys' locks.
    pub(crate) fn taken<'k>(&'k self, view: &dyn View, indexes: &[Arc<Index>]) -> Result<Vec<Taken<'k>>> {
        let of_index = |(position, index): (usize, &Arc<Index>)| {
            let own = self.entries.iter().filter(move |entry| locks_keys(index) && entry.index == position);
            Taken::new(view, index, own.map(|entry| own_part(index, self.of(entry))))
        };
        indexes.iter().enumerate().map(of_index).collect::<bunko_store::Result<_>>().map_err(from_storage)
    }

    /// Adds the keys of a document. Arrays and types that are new to an index go into `grown`.
    /// # Errors
    /// `ExceededMemoryLimit` if the documents have too many keys together, `BSONObjectTooLarge` if this one has too
    /// many for a log record; as [`append_stored_keys`].
    pub(crate) fn add(
        &mut self,
        indexes: &[Arc<Index>],
        document: usize,
        bytes: &[u8],
        record: RecordId,
        grown: &mut Vec<(usize, Multikey)>,
        operation: &dyn OperationSource,
    ) -> Result<()> {
        let before = self.bytes.len();
        let body = DocumentRef::trusted(bytes);
        for (position, index) in indexes.iter().enumerate() {
            let entry =
                |place: Range<usize>| KeyEntry { document, index: position, start: place.start, end: place.end };
            let start = self.bytes.len();
            if append_only_key((position, index), body, record, &mut self.bytes, grown) {
                self.entries.push(entry(start..self.bytes.len()));
            } else {
                let into = (&mut self.bytes, &mut self.of_document);
                append_stored_keys((position, index), body, record, into, grown, operation)?;
                self.entries.extend(self.of_document.drain(..).map(entry));
            }
            // Checked after each index: further keys need not be derived if one log record cannot hold them.
            if self.bytes.len() > BATCH_KEYS_BYTES_MAX {
                self.check_bytes(before)?;
            }
        }
        Ok(())
    }

    #[cold]
    fn check_bytes(&self, before: usize) -> Result<()> {
        let (all, own) = (self.bytes.len(), self.bytes.len() - before);
        if own as u64 > SEGMENT_BYTES {
            return Err(from_storage(StorageError::RecordTooLarge { length_bytes: own as u64 }));
        }
        if before == 0 {
            return Ok(());
        }
        let message = format!("index keys of several documents of one batch take {all} bytes");
        Err(Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message))
    }
}
