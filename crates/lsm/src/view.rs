//! Point reads.

use crate::cursor::{LsmKeyCursor, LsmRecordCursor, Route, Walk};
use crate::documents::Documents;
use crate::key::Range;
use crate::key_value::KeyValue;
use crate::key_walk::{KeyRoute, KeyWalk};
use crate::record_lookups;
use crate::row_cache::{Row, RowCache};
use crate::state::State;
use crate::tree_values::{key_value, malformed};
use arc_swap::ArcSwap;
use bunko_store::failpoint::{self, Failpoint};
use bunko_store::{
    Direction, KeyCursor, KeyRange, KeyspaceId, Location, Lsn, RecordCursor, RecordId, RecordRange, Result, TakeRecord,
    View,
};
use lsm_tree::{AnyTree, SeqNo, UserValue};
use std::ops::Bound;
use std::sync::Arc;

/// Larger than any LSN: sequence numbers have 63 bits.
const LATEST: SeqNo = 0x7fff_ffff_ffff_ffff;

/// The engine's contents as of one LSN.
///
/// Every read loads the present memtables and tables. A view sees the same entries in all of them, because no version
/// that an open view sees is forgotten. A view that held on to its memtables would keep all of them in memory.
pub(crate) struct LsmView {
    tree: AnyTree,
    documents: Arc<Documents>,
    state: Arc<ArcSwap<State>>,
    before: SeqNo,
    /// The cache of rows; only for the latest state. A row from a state older than its ticket must not be cached.
    rows: Option<Arc<RowCache>>,
}

impl LsmView {
    /// A view of everything below an LSN.
    pub fn before(lsn: Lsn, tree: AnyTree, state: Arc<ArcSwap<State>>, documents: Arc<Documents>) -> Self {
        Self { tree, documents, state, before: lsn.0, rows: None }
    }

    /// A view of everything that has been applied, for as long as the engine lives.
    pub fn latest(tree: AnyTree, state: Arc<ArcSwap<State>>, documents: Arc<Documents>, rows: Arc<RowCache>) -> Self {
        Self { tree, documents, state, before: LATEST, rows: Some(rows) }
    }

    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<UserValue>> {
        self.state.load().get(keyspace, key, self.before)
    }

    /// Location of a record's document; `None` if the view has no such record.
    pub fn location(&self, keyspace: KeyspaceId, record: RecordId) -> Result<Option<Location>> {
        self.state.load().location(&self.documents.leaves, keyspace, record, self.before)
    }

    fn index_key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<KeyValue>> {
        self.get(keyspace, key)?.map(|value| key_value(&value)).transpose()
    }

    /// Walks the memtables and the tables together.
    fn walk(&self, keyspace: KeyspaceId, range: Range, direction: Direction) -> Walk {
        let route = Route { keyspace, range, direction, before: self.before };
        Walk::new(self.tree.clone(), Arc::clone(&self.state), route)
    }

    /// The row that a primary key leads to, `None` if the view has no such key; remembers the row for later reads.
    fn row(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<Row>> {
        let remembered = self.rows.as_ref().map(|rows| (rows, rows.get(keyspace, key)));
        if let Some((_, Ok(row))) = remembered {
            return Ok(Some(row));
        }
        let Some(value) = self.index_key(keyspace, key)? else { return Ok(None) };
        let location = value.location.ok_or_else(|| malformed("value of a primary key"))?;
        if let Some((rows, Err(Some(ticket)))) = remembered {
            failpoint::pass(Failpoint::RowFound);
            rows.fill(&ticket, (value.record, location));
        }
        Ok(Some((value.record, location)))
    }
}

impl View for LsmView {
    fn record(&self, keyspace: KeyspaceId, record: RecordId, into: &mut Vec<u8>) -> Result<Option<Location>> {
        let Some(location) = self.location(keyspace, record)? else { return Ok(None) };
        self.documents.read(keyspace, location, into)?;
        Ok(Some(location))
    }

    fn record_again(
        &self,
        keyspace: KeyspaceId,
        record: RecordId,
        known: Location,
        into: &mut Vec<u8>,
    ) -> Result<Option<Location>> {
        let Some(location) = self.location(keyspace, record)? else { return Ok(None) };
        // Each document has its own log position, so an equal location means an unchanged document.
        if location != known {
            self.documents.read(keyspace, location, into)?;
        }
        Ok(Some(location))
    }

    fn places(&self, keyspace: KeyspaceId, records: &[RecordId]) -> Result<Option<Vec<Option<Location>>>> {
        let state = self.state.load();
        record_lookups::locations(&state, &self.documents.leaves, (keyspace, self.before), records).map(Some)
    }

    fn some_records(
        &self,
        keyspace: KeyspaceId,
        records: &[RecordId],
        bytes_max: usize,
        take: &mut TakeRecord<'_>,
    ) -> Result<usize> {
        let found = self.places(keyspace, records)?.unwrap_or_default();
        let (mut places, mut bytes, mut looked_up) = (Vec::with_capacity(found.len()), 0, 0);
        for (number, location) in found.iter().enumerate() {
            if bytes >= bytes_max {
                break;
            }
            looked_up = number + 1;
            if let Some(location) = location {
                bytes += location.length as usize;
                places.push((*location, number));
            }
        }
        self.documents.read_each(keyspace, places, take)?;
        Ok(looked_up)
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
        let leaves = (direction == Direction::Forward).then(|| Arc::clone(&self.documents.leaves));
        Box::new(LsmRecordCursor::new(walk, keyspace, Arc::clone(&self.documents), leaves))
    }

    fn keys(&self, keyspace: KeyspaceId, range: KeyRange, direction: Direction) -> Box<dyn KeyCursor> {
        let range = (range.start, range.end);
        Box::new(match direction {
            Direction::Forward => {
                let route = KeyRoute { keyspace, range, before: self.before };
                let leaves = Arc::clone(&self.documents.key_leaves);
                LsmKeyCursor::Forward(KeyWalk::new(Arc::clone(&self.state), leaves, route))
            }
            Direction::Backward => {
                LsmKeyCursor::Backward { walk: self.walk(keyspace, range, direction), current: None }
            }
        })
    }

    fn is_vacant(&self, keyspace: KeyspaceId, first: &[u8], last: &[u8]) -> Result<bool> {
        Ok(self.state.load().is_vacant(keyspace, first, last))
    }
}
