//! Reads of a collection: the state that an operation reads, and its documents by `_id`.

use crate::past::Reading;
use crate::{Collection, from_storage};
use bunko_bson::ValueRef;
use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_store::{RecordId, Snapshot, View};

impl Collection {
    /// The current state of the whole store.
    pub fn snapshot(&self) -> Snapshot {
        self.store.snapshot()
    }

    /// The state that an operation reads: its transaction's if it belongs to one, a past one if it asks for that,
    /// otherwise the current one.
    /// # Errors
    /// In a transaction: `LockTimeout`, `SnapshotUnavailable`, `NoSuchTransaction`. For a past state:
    /// `SnapshotUnavailable`.
    pub fn snapshot_for(&self, operation: &dyn OperationSource) -> Result<Snapshot> {
        match Reading::of(operation) {
            Reading::Present => Ok(self.store.snapshot()),
            Reading::Past(read) => read.read(self, operation),
            Reading::Inside(transaction) => transaction.read(self),
        }
    }

    /// The record with this `_id` in the state that the operation reads; `None` if there is no such document.
    /// # Errors
    /// Failures of the storage, and as [`Self::snapshot_for`].
    pub fn record_of_id(&self, id: ValueRef<'_>, operation: &dyn OperationSource) -> Result<Option<RecordId>> {
        let keyspace = self.indexes_lent()[0].keyspace;
        let found = match Reading::of(operation) {
            Reading::Present => {
                let key = self.id_key(id);
                self.store.read_latest(|latest| latest.primary_key(keyspace, &key))
            }
            Reading::Past(read) => read.read(self, operation)?.primary_key(keyspace, &self.id_key(id)),
            Reading::Inside(transaction) => transaction.read(self)?.primary_key(keyspace, &self.id_key(id)),
        };
        found.map_err(from_storage)
    }

    /// The record with this `_id` in the state that the operation reads; `None` if there is no such document. The
    /// document is read into `into`, which is cleared first.
    /// # Errors
    /// Failures of the storage, and as [`Self::snapshot_for`].
    pub fn find_id(
        &self,
        id: ValueRef<'_>,
        operation: &dyn OperationSource,
        into: &mut Vec<u8>,
    ) -> Result<Option<RecordId>> {
        match Reading::of(operation) {
            Reading::Present => self.find_latest(id, into),
            Reading::Past(read) => self.find_id_in(&read.read(self, operation)?, id, into),
            Reading::Inside(transaction) => self.find_id_in(&transaction.read(self)?, id, into),
        }
    }

    /// As [`Self::find_id`], in the current state.
    /// # Errors
    /// Failures of the storage.
    pub fn find_latest(&self, id: ValueRef<'_>, into: &mut Vec<u8>) -> Result<Option<RecordId>> {
        let (keyspace, key) = (self.indexes_lent()[0].keyspace, self.id_key(id));
        let found = self.store.read_latest(|latest| latest.record_by_primary_key(keyspace, self.records, &key, into));
        Ok(found.map_err(from_storage)?.map(|(record, _)| record))
    }

    fn find_id_in(&self, view: &dyn View, id: ValueRef<'_>, into: &mut Vec<u8>) -> Result<Option<RecordId>> {
        let keyspace = self.indexes_lent()[0].keyspace;
        let found = view.record_by_primary_key(keyspace, self.records, &self.id_key(id), into);
        Ok(found.map_err(from_storage)?.map(|(record, _)| record))
    }

    /// Reads the document with this `_id` in a snapshot into `into`, which is cleared first. Returns whether there is
    /// one.
    pub fn find_id_at(&self, snapshot: &Snapshot, id: ValueRef<'_>, into: &mut Vec<u8>) -> Result<bool> {
        Ok(self.find_id_in(snapshot, id, into)?.is_some())
    }
}
