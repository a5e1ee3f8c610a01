//! The engine's contents as of one LSN.

use crate::arrangement::Arrangement;
use crate::cursor::{MmapKeyCursor, MmapRecordCursor};
use arc_swap::ArcSwap;
use bunko_store::{
    Direction, KeyCursor, KeyRange, KeyspaceId, Location, Lsn, RecordCursor, RecordId, RecordRange, Result, View,
};
use std::sync::Arc;

/// Larger than any LSN.
const LATEST: u64 = u64::MAX;

/// A view of everything below an LSN, or of everything that has been applied.
pub(crate) enum MmapView {
    /// The arrangement contains everything below the LSN. Its committed state has nothing newer, and its memtables keep
    /// versions.
    Snapshot { state: Arc<Arrangement>, before: u64 },
    /// Each read loads the present arrangement.
    Latest(Arc<ArcSwap<Arrangement>>),
}

impl MmapView {
    /// A view of everything below an LSN.
    pub fn before(lsn: Lsn, state: &ArcSwap<Arrangement>) -> Self {
        Self::Snapshot { state: state.load_full(), before: lsn.0 }
    }

    fn with<R>(&self, run: impl FnOnce(&Arrangement, u64) -> R) -> R {
        match self {
            Self::Snapshot { state, before } => run(state, *before),
            Self::Latest(state) => run(&state.load(), LATEST),
        }
    }
}

impl View for MmapView {
    fn record(&self, keyspace: KeyspaceId, record: RecordId, into: &mut Vec<u8>) -> Result<Option<Location>> {
        self.with(|state, before| state.record(keyspace, record, before, into))
    }

    fn key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>> {
        self.with(|state, before| state.key(keyspace, key, before))
    }

    fn records(&self, keyspace: KeyspaceId, range: RecordRange, direction: Direction) -> Box<dyn RecordCursor> {
        self.with(|state, before| Box::new(MmapRecordCursor::new(state, keyspace, range, direction, before)))
    }

    fn keys(&self, keyspace: KeyspaceId, range: KeyRange, direction: Direction) -> Box<dyn KeyCursor> {
        self.with(|state, before| Box::new(MmapKeyCursor::new(state, keyspace, range, direction, before)))
    }
}
