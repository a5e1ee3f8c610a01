//! Point reads.

use crate::cursor::{LsmKeyCursor, LsmRecordCursor};
use crate::engine::tree_error;
use crate::key;
use crate::row_cache::RowCache;
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

    fn index_key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>> {
        let found = key::with_index_key(keyspace, key, |key| self.tree.get(key, self.before))
            .map_err(|error| tree_error(Path::new("trees"), error))?;
        found.map(|value| record_id(&value)).transpose()
    }

    fn log(&self) -> &Arc<Log> {
        self.log.get().expect("views are taken once the log is open")
    }
}

/// What a tree's value should have been.
pub(crate) fn malformed(what: &str) -> StorageError {
    StorageError::Corrupt { file: "trees".into(), offset_bytes: 0, found: format!("a malformed {what}") }
}

pub(crate) fn record_id(value: &[u8]) -> Result<RecordId> {
    let bytes = value.try_into().map_err(|_| malformed("record id"))?;
    Ok(RecordId(u64::from_le_bytes(bytes)))
}

impl View for LsmView {
    fn record(&self, keyspace: KeyspaceId, record: RecordId, into: &mut Vec<u8>) -> Result<Option<Location>> {
        let remembered = self.rows.as_ref().map(|rows| (rows, rows.location(keyspace, record)));
        if let Some((_, Ok(location))) = remembered {
            self.log().read(location, into)?;
            return Ok(Some(location));
        }
        let Some(location) = self.location(keyspace, record)? else { return Ok(None) };
        if let Some((rows, Err(ticket))) = remembered {
            rows.fill_location(ticket, keyspace, record, location);
        }
        self.log().read(location, into)?;
        Ok(Some(location))
    }

    fn key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>> {
        let remembered = self.rows.as_ref().map(|rows| (rows, rows.record(keyspace, key)));
        if let Some((_, Ok(record))) = remembered {
            return Ok(Some(record));
        }
        let found = self.index_key(keyspace, key)?;
        if let (Some(record), Some((rows, Err(Some(ticket))))) = (found, remembered) {
            rows.fill_record(ticket, record);
        }
        Ok(found)
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
