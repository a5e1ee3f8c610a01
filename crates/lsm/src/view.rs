//! Point reads.

use crate::cursor::{LsmKeyCursor, LsmRecordCursor};
use crate::engine::tree_error;
use crate::key;
use crate::key_value::KeyValue;
use crate::row_cache::{Row, RowCache};
use bunko_store::{
    Direction, KeyCursor, KeyRange, KeyspaceId, Location, Log, LogHandle, ReadPoint, RecordCursor, RecordId,
    RecordRange, Result, StorageError, View,
};
use lsm_tree::{AbstractTree, AnyTree, SeqNo};
use std::path::Path;
use std::sync::Arc;

/// Larger than any LSN: sequence numbers have 63 bits.
const LATEST: SeqNo = 0x7fff_ffff_ffff_ffff;

/// The trees as of one LSN.
pub(crate) struct LsmView {
    tree: AnyTree,
    log: LogHandle,
    /// Only for views of the latest state.
    rows: Option<Arc<RowCache>>,
    before: SeqNo,
}

impl LsmView {
    pub fn new(tree: AnyTree, log: LogHandle, rows: Arc<RowCache>, point: ReadPoint) -> Self {
        let (before, rows) = match point {
            ReadPoint::Before(lsn) => (lsn.0, None),
            ReadPoint::Latest => (LATEST, Some(rows)),
        };
        Self { tree, log, rows, before }
    }

    fn location(&self, keyspace: KeyspaceId, record: RecordId) -> Result<Option<Location>> {
        let found = self
            .tree
            .get(key::of_record(keyspace, record), self.before)
            .map_err(|error| tree_error(Path::new("trees"), error))?;
        found.map(|value| Location::decode(&value).ok_or_else(|| malformed("location"))).transpose()
    }

    fn index_key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<KeyValue>> {
        let found = key::with_index_key(keyspace, key, |key| self.tree.get(key, self.before))
            .map_err(|error| tree_error(Path::new("trees"), error))?;
        found.map(|value| key_value(&value)).transpose()
    }

    /// What a primary key leads to, remembered for the next time.
    fn row(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<Row>> {
        let ticket = match self.rows.as_ref().map(|rows| rows.get(keyspace, key)) {
            Some(Ok(row)) => return Ok(Some(row)),
            Some(Err(ticket)) => ticket,
            None => None,
        };
        let Some(value) = self.index_key(keyspace, key)? else { return Ok(None) };
        let location = value.location.ok_or_else(|| malformed("value of a primary key"))?;
        if let (Some(rows), Some(ticket)) = (&self.rows, ticket) {
            rows.fill(&ticket, (value.record, location));
        }
        Ok(Some((value.record, location)))
    }

    fn log(&self) -> &Arc<Log> {
        self.log.get().expect("views are taken once the log is open")
    }
}

/// What a tree's value should have been.
pub(crate) fn malformed(what: &str) -> StorageError {
    StorageError::Corrupt { file: "trees".into(), offset_bytes: 0, found: format!("a malformed {what}") }
}

pub(crate) fn key_value(value: &[u8]) -> Result<KeyValue> {
    KeyValue::decode(value).ok_or_else(|| malformed("value of an index key"))
}

impl View for LsmView {
    fn record(&self, keyspace: KeyspaceId, record: RecordId, into: &mut Vec<u8>) -> Result<Option<Location>> {
        let Some(location) = self.location(keyspace, record)? else { return Ok(None) };
        self.log().read(location, into)?;
        Ok(Some(location))
    }

    fn key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>> {
        Ok(self.index_key(keyspace, key)?.map(|value| value.record))
    }

    fn primary_key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>> {
        Ok(self.row(keyspace, key)?.map(|(record, _)| record))
    }

    fn record_by_primary_key(
        &self,
        keyspace: KeyspaceId,
        _records: KeyspaceId,
        key: &[u8],
        into: &mut Vec<u8>,
    ) -> Result<Option<Row>> {
        let Some((record, location)) = self.row(keyspace, key)? else { return Ok(None) };
        self.log().read(location, into)?;
        Ok(Some((record, location)))
    }

    fn records(&self, keyspace: KeyspaceId, range: RecordRange, direction: Direction) -> Box<dyn RecordCursor> {
        let items = self.tree.range(key::record_range(keyspace, range), self.before, None);
        Box::new(LsmRecordCursor::new(items, direction, Arc::clone(self.log())))
    }

    fn keys(&self, keyspace: KeyspaceId, range: KeyRange, direction: Direction) -> Box<dyn KeyCursor> {
        let items = self.tree.range(key::key_range(keyspace, range), self.before, None);
        Box::new(LsmKeyCursor::new(items, direction))
    }
}
