//! Point reads.

use crate::cursor::{LsmKeyCursor, LsmRecordCursor};
use crate::engine::tree_error;
use crate::key;
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
    before: SeqNo,
}

impl LsmView {
    pub fn new(tree: AnyTree, log: LogHandle, point: ReadPoint) -> Self {
        let before = match point {
            ReadPoint::Before(lsn) => lsn.0,
            ReadPoint::Latest => LATEST,
        };
        Self { tree, log, before }
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
        let found = self
            .tree
            .get(key::of_record(keyspace, record), self.before)
            .map_err(|error| tree_error(Path::new("trees"), error))?;
        let Some(value) = found else { return Ok(None) };
        let location = Location::decode(&value).ok_or_else(|| malformed("location"))?;
        self.log().read(location, into)?;
        Ok(Some(location))
    }

    fn key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>> {
        let found = key::with_index_key(keyspace, key, |key| self.tree.get(key, self.before))
            .map_err(|error| tree_error(Path::new("trees"), error))?;
        found.map(|value| record_id(&value)).transpose()
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
