//! Point reads.

use crate::cursor::{LsmKeyCursor, LsmRecordCursor, Walk};
use crate::documents::Documents;
use crate::key::{self, Range};
use crate::key_value::KeyValue;
use crate::row_cache::{Row, RowCache};
use crate::state::State;
use arc_swap::ArcSwap;
use bunko_store::{
    Direction, KeyCursor, KeyRange, KeyspaceId, Location, Lsn, RecordCursor, RecordId, RecordRange, Result,
    StorageError, View,
};
use lsm_tree::{AbstractTree, AnyTree, SeqNo, UserValue};
use std::ops::Bound;
use std::sync::Arc;

/// Larger than any LSN: sequence numbers have 63 bits.
const LATEST: SeqNo = 0x7fff_ffff_ffff_ffff;

/// What the engine holds, as of one LSN.
pub(crate) struct LsmView {
    tree: AnyTree,
    documents: Arc<Documents>,
    at: At,
}

enum At {
    /// That state holds all that is below the LSN, whatever comes after it.
    Snapshot { state: Arc<State>, before: SeqNo },
    /// Looked at afresh by every read: a row must not be remembered from a state older than its ticket.
    Latest { state: Arc<ArcSwap<State>>, rows: Arc<RowCache> },
}

impl LsmView {
    /// A view of all that is below an LSN.
    pub fn before(lsn: Lsn, tree: AnyTree, state: &ArcSwap<State>, documents: Arc<Documents>) -> Self {
        Self { tree, documents, at: At::Snapshot { state: state.load_full(), before: lsn.0 } }
    }

    /// A view of whatever has been applied, for as long as the engine lives.
    pub fn latest(tree: AnyTree, state: Arc<ArcSwap<State>>, documents: Arc<Documents>, rows: Arc<RowCache>) -> Self {
        Self { tree, documents, at: At::Latest { state, rows } }
    }

    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<UserValue>> {
        match &self.at {
            At::Snapshot { state, before } => state.get(keyspace, key, *before),
            At::Latest { state, .. } => state.load().get(keyspace, key, LATEST),
        }
    }

    /// Where a record's document is.
    pub fn location(&self, keyspace: KeyspaceId, record: RecordId) -> Result<Option<Location>> {
        let found = self.get(keyspace, &record.0.to_be_bytes())?;
        found.map(|value| Location::decode(&value).ok_or_else(|| malformed("location"))).transpose()
    }

    fn index_key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<KeyValue>> {
        self.get(keyspace, key)?.map(|value| key_value(&value)).transpose()
    }

    /// Walks the memtables and the tables together.
    fn walk(&self, keyspace: KeyspaceId, range: Range, direction: Direction) -> Walk {
        let (state, before) = match &self.at {
            At::Snapshot { state, before } => (Arc::clone(state), *before),
            At::Latest { state, .. } => (state.load_full(), LATEST),
        };
        let memtables =
            state.memtables().map(|memtable| memtable.walk(keyspace, range.clone(), direction, before)).collect();
        let tables = self.tree.range(key::in_tree(keyspace, range), before, None);
        Walk::new(memtables, tables, Arc::clone(&state.files), direction)
    }

    /// What a primary key leads to, remembered for the next time.
    fn row(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<Row>> {
        let remembered = match &self.at {
            At::Snapshot { .. } => None,
            At::Latest { rows, .. } => Some((rows, rows.get(keyspace, key))),
        };
        if let Some((_, Ok(row))) = remembered {
            return Ok(Some(row));
        }
        let Some(value) = self.index_key(keyspace, key)? else { return Ok(None) };
        let location = value.location.ok_or_else(|| malformed("value of a primary key"))?;
        if let Some((rows, Err(Some(ticket)))) = remembered {
            rows.fill(&ticket, (value.record, location));
        }
        Ok(Some((value.record, location)))
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
        self.documents.read(keyspace, location, into)?;
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
        records: KeyspaceId,
        key: &[u8],
        into: &mut Vec<u8>,
    ) -> Result<Option<Row>> {
        let Some((record, location)) = self.row(keyspace, key)? else { return Ok(None) };
        self.documents.read(records, location, into)?;
        Ok(Some((record, location)))
    }

    fn records(&self, keyspace: KeyspaceId, range: RecordRange, direction: Direction) -> Box<dyn RecordCursor> {
        let bound = |bound: Bound<RecordId>| bound.map(|record| record.0.to_be_bytes().to_vec());
        let walk = self.walk(keyspace, (bound(range.start), bound(range.end)), direction);
        Box::new(LsmRecordCursor::new(walk, keyspace, Arc::clone(&self.documents)))
    }

    fn keys(&self, keyspace: KeyspaceId, range: KeyRange, direction: Direction) -> Box<dyn KeyCursor> {
        Box::new(LsmKeyCursor::new(self.walk(keyspace, (range.start, range.end), direction)))
    }

    fn is_vacant(&self, keyspace: KeyspaceId, first: &[u8], last: &[u8]) -> Result<bool> {
        Ok(match &self.at {
            At::Snapshot { state, .. } => state.is_vacant(keyspace, first, last),
            At::Latest { state, .. } => state.load().is_vacant(keyspace, first, last),
        })
    }
}
