//! Point reads, and the beginning of walks.

use crate::cursor::{MemoryKeyCursor, MemoryRecordCursor};
use crate::key::IndexKey;
use crate::keyspaces::Keyspaces;
use crate::records::RecordWalk;
use bunko_store::{
    Direction, KeyCursor, KeyRange, KeyspaceId, Location, RecordCursor, RecordId, RecordRange, Result, View,
};
use bunko_versions::Walk;
use std::sync::Arc;

/// The engine's contents as of one LSN.
pub(crate) struct MemoryView {
    keyspaces: Arc<Keyspaces>,
    before: u64,
}

impl MemoryView {
    pub fn before(before: u64, keyspaces: Arc<Keyspaces>) -> Self {
        Self { keyspaces, before }
    }

    pub fn latest(keyspaces: Arc<Keyspaces>) -> Self {
        Self { keyspaces, before: u64::MAX }
    }
}

impl View for MemoryView {
    fn record(&self, keyspace: KeyspaceId, record: RecordId, into: &mut Vec<u8>) -> Result<Option<Location>> {
        // Copied after the lock is released, because documents may have 16 MB.
        let found = self.keyspaces.records.seen(keyspace, self.before, |records| records.get(record, self.before));
        Ok(found.flatten().map(|document| {
            into.clear();
            into.extend_from_slice(document.bytes());
            document.location()
        }))
    }

    fn key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>> {
        Ok(self.keyspaces.indexes.seen(keyspace, self.before, |index| index.get(key, self.before)).flatten())
    }

    fn records(&self, keyspace: KeyspaceId, range: RecordRange, direction: Direction) -> Box<dyn RecordCursor> {
        let records = self.keyspaces.records.seen(keyspace, self.before, Arc::clone);
        let walk = records.map(|records| RecordWalk::new(records, range, direction, self.before));
        Box::new(MemoryRecordCursor::new(walk))
    }

    fn keys(&self, keyspace: KeyspaceId, range: KeyRange, direction: Direction) -> Box<dyn KeyCursor> {
        let keys = self.keyspaces.indexes.seen(keyspace, self.before, |index| Arc::clone(&index.keys));
        let direction = match direction {
            Direction::Forward => bunko_versions::Direction::Forward,
            Direction::Backward => bunko_versions::Direction::Backward,
        };
        let range = IndexKey::range(&(range.start, range.end));
        Box::new(MemoryKeyCursor::new(keys.map(|keys| Walk::new(keys, range, direction, self.before))))
    }
}
