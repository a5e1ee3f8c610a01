//! The batch of a statement, and its effects on indexes that are being built.

use crate::build_notes::BuildNotes;
use crate::{Index, from_storage};
use bunko_errors::Result;
use bunko_store::{Batch, Presence, RecordId, View};
use std::sync::Arc;

/// Effects of a statement on documents and index keys. The batch may borrow documents for `'d`.
/// The locks of all records and unique keys are held.
pub(crate) struct Effects<'d, 'a> {
    pub batch: Batch<'d>,
    /// Notes that the index builds receive once the batch is committed.
    pub notes: BuildNotes<'a>,
    latest: &'a dyn View,
    indexes: &'a [Arc<Index>],
}

impl<'d, 'a> Effects<'d, 'a> {
    /// Makes the effects of a batch that has no keys yet.
    pub fn new(batch: Batch<'d>, latest: &'a dyn View, indexes: &'a [Arc<Index>]) -> Self {
        Self { batch, notes: BuildNotes::default(), latest, indexes }
    }

    /// Deletes a key of a record.
    pub fn delete_key(&mut self, index: &'a Index, key: &[u8], record: RecordId) -> Result<()> {
        match index.build() {
            None => self.batch.delete_key(index.keyspace, key),
            Some(build) => {
                let deleted = build.delete_key(self.latest, (index, key), record, &mut self.batch, &mut self.notes);
                deleted.map_err(from_storage)?;
            }
        }
        Ok(())
    }

    /// Puts a key of a record that may have had it before.
    pub fn put_key(&mut self, index: &'a Index, key: &[u8], record: RecordId) -> Result<()> {
        match index.build() {
            None => self.batch.put_key(index.keyspace, key, record),
            Some(build) => {
                let put = build.put_key(self.latest, (index, key), record, &mut self.batch, &mut self.notes);
                put.map_err(from_storage)?;
            }
        }
        Ok(())
    }

    /// Puts a key of a new record. In a unique index that is being built, `is_taken` tells whether another record has
    /// the key; the new record waits for it then. Returns whether the key was put.
    pub fn put_new_key(
        &mut self,
        index: &'a Index,
        key: &[u8],
        record: RecordId,
        is_taken: impl FnOnce() -> Result<bool>,
    ) -> Result<bool> {
        if let Some(build) = index.build() {
            self.notes.change(build, record);
            if index.is_unique && is_taken()? {
                self.notes.add_holder(build, index, key, record);
                return Ok(false);
            }
        }
        if index.is_id() {
            self.batch.put_primary_key(index.keyspace, key, record, Presence::New);
        } else {
            self.batch.put_key(index.keyspace, key, record);
        }
        Ok(true)
    }

    /// Notes that the batch changes all keys of a record, so that builds leave the record out.
    pub fn note_changed(&mut self, record: RecordId) {
        for build in self.indexes.iter().filter_map(|index| index.build()) {
            self.notes.change(build, record);
        }
    }
}
