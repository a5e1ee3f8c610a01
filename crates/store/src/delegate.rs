//! Views that hand each read to another view.

use crate::{
    Direction, KeyCursor, KeyRange, KeyspaceId, Location, RecordCursor, RecordId, RecordRange, Result, TakeRecord, View,
};

/// Finds the view for a keyspace. Through this it is a view itself.
pub(crate) trait Delegate: Send + Sync {
    /// Calls `read` with the view that has the keyspace.
    fn with<R>(&self, keyspace: KeyspaceId, read: impl FnOnce(&dyn View) -> R) -> R;
}

impl<D: Delegate> View for D {
    fn record(&self, keyspace: KeyspaceId, record: RecordId, into: &mut Vec<u8>) -> Result<Option<Location>> {
        self.with(keyspace, |view| view.record(keyspace, record, into))
    }

    fn record_again(
        &self,
        keyspace: KeyspaceId,
        record: RecordId,
        known: Location,
        into: &mut Vec<u8>,
    ) -> Result<Option<Location>> {
        self.with(keyspace, |view| view.record_again(keyspace, record, known, into))
    }

    fn places(&self, keyspace: KeyspaceId, records: &[RecordId]) -> Result<Option<Vec<Option<Location>>>> {
        self.with(keyspace, |view| view.places(keyspace, records))
    }

    fn some_records(
        &self,
        keyspace: KeyspaceId,
        records: &[RecordId],
        bytes_max: usize,
        take: &mut TakeRecord<'_>,
    ) -> Result<usize> {
        self.with(keyspace, |view| view.some_records(keyspace, records, bytes_max, take))
    }

    fn key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>> {
        self.with(keyspace, |view| view.key(keyspace, key))
    }

    fn primary_key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>> {
        self.with(keyspace, |view| view.primary_key(keyspace, key))
    }

    fn record_by_primary_key(
        &self,
        keyspace: KeyspaceId,
        records: KeyspaceId,
        key: &[u8],
        into: &mut Vec<u8>,
    ) -> Result<Option<(RecordId, Location)>> {
        self.with(keyspace, |view| view.record_by_primary_key(keyspace, records, key, into))
    }

    fn records(&self, keyspace: KeyspaceId, range: RecordRange, direction: Direction) -> Box<dyn RecordCursor> {
        self.with(keyspace, |view| view.records(keyspace, range, direction))
    }

    fn keys(&self, keyspace: KeyspaceId, range: KeyRange, direction: Direction) -> Box<dyn KeyCursor> {
        self.with(keyspace, |view| view.keys(keyspace, range, direction))
    }

    fn is_vacant(&self, keyspace: KeyspaceId, first: &[u8], last: &[u8]) -> Result<bool> {
        self.with(keyspace, |view| view.is_vacant(keyspace, first, last))
    }
}
