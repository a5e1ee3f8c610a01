//! The state that a transaction sees: its own effects over its snapshot.

use super::cursor::{OverKeys, OverRecords};
use super::{Layer, LayerKey, Overlay};
use crate::{
    Direction, KeyCursor, KeyRange, KeyspaceId, Location, RecordCursor, RecordId, RecordRange, Result, Snapshot, View,
};
use bunko_versions::{Known, Walk};
use std::sync::Arc;

/// A snapshot with the changes that a transaction had made at one moment.
pub(super) struct Overlaid {
    base: Arc<Snapshot>,
    overlay: Arc<Overlay>,
    before: u64,
}

impl Overlaid {
    pub fn new(base: &Arc<Snapshot>, overlay: &Arc<Overlay>) -> Self {
        let before = overlay.reads.open(|| overlay.moment.load(std::sync::atomic::Ordering::Acquire));
        Self { base: Arc::clone(base), overlay: Arc::clone(overlay), before }
    }

    fn known_key(&self, keyspace: KeyspaceId, key: &[u8]) -> Option<Known<RecordId>> {
        self.overlay.layer(keyspace)?.keys.get(&LayerKey::from(key), self.before)
    }

    /// The transaction's changes to a keyspace, if it has changed records there.
    fn layer_with_records(&self, keyspace: KeyspaceId) -> Option<Arc<Layer>> {
        self.overlay.layer(keyspace).filter(|layer| layer.records.key_count() > 0)
    }
}

impl Drop for Overlaid {
    fn drop(&mut self) {
        self.overlay.reads.close(self.before);
    }
}

impl View for Overlaid {
    fn record(&self, keyspace: KeyspaceId, record: RecordId, into: &mut Vec<u8>) -> Result<Option<Location>> {
        let known = self.overlay.layer(keyspace).and_then(|layer| layer.records.get(&record, self.before));
        match known {
            None => self.base.record(keyspace, record, into),
            Some(Known::Deleted) => {
                into.clear();
                Ok(None)
            }
            Some(Known::Value(written)) => {
                into.clear();
                into.extend_from_slice(&written.document);
                Ok(Some(written.location))
            }
        }
    }

    fn key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>> {
        match self.known_key(keyspace, key) {
            None => self.base.key(keyspace, key),
            Some(Known::Deleted) => Ok(None),
            Some(Known::Value(record)) => Ok(Some(record)),
        }
    }

    fn record_by_primary_key(
        &self,
        keyspace: KeyspaceId,
        records: KeyspaceId,
        key: &[u8],
        into: &mut Vec<u8>,
    ) -> Result<Option<(RecordId, Location)>> {
        // A transaction that writes a record puts its primary key too, so if it has not put the key, it has not written
        // the record.
        let Some(known) = self.known_key(keyspace, key) else {
            return self.base.record_by_primary_key(keyspace, records, key, into);
        };
        let Known::Value(record) = known else {
            into.clear();
            return Ok(None);
        };
        Ok(self.record(records, record, into)?.map(|location| (record, location)))
    }

    fn records(&self, keyspace: KeyspaceId, range: RecordRange, direction: Direction) -> Box<dyn RecordCursor> {
        let base = self.base.records(keyspace, range, direction);
        let Some(layer) = self.layer_with_records(keyspace) else { return base };
        let own = Walk::new(Arc::clone(&layer.records), (range.start, range.end), way(direction), self.before);
        Box::new(OverRecords::new(own, base, direction))
    }

    fn keys(&self, keyspace: KeyspaceId, range: KeyRange, direction: Direction) -> Box<dyn KeyCursor> {
        let Some(layer) = self.overlay.layer(keyspace).filter(|layer| layer.keys.key_count() > 0) else {
            return self.base.keys(keyspace, range, direction);
        };
        let own_range = LayerKey::range(&(range.start.clone(), range.end.clone()));
        let own = Walk::new(Arc::clone(&layer.keys), own_range, way(direction), self.before);
        Box::new(OverKeys::new(own, self.base.keys(keyspace, range, direction), direction))
    }

    fn is_vacant(&self, keyspace: KeyspaceId, first: &[u8], last: &[u8]) -> Result<bool> {
        let range = LayerKey::from(first)..=LayerKey::from(last);
        if self.overlay.layer(keyspace).is_some_and(|layer| layer.keys.has_any(range)) {
            return Ok(false);
        }
        self.base.is_vacant(keyspace, first, last)
    }
}

fn way(direction: Direction) -> bunko_versions::Direction {
    match direction {
        Direction::Forward => bunko_versions::Direction::Forward,
        Direction::Backward => bunko_versions::Direction::Backward,
    }
}
