//! What a storage engine is: a materialised view of the log.
//!
//! Record stores and sorted indexes, not a bag of bytes: an engine that keeps documents itself (memory, mmap) and one
//! that leaves them in the log (lsm) fit the same contract.

use crate::{Effects, KeyspaceId, Location, Lsn, RecordId, Result};
use std::ops::Bound;

/// Which way a cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the smallest.
    Forward,
    /// From the largest.
    Backward,
}

/// Records to walk over, by id.
#[derive(Clone, Copy, Debug)]
pub struct RecordRange {
    /// The smallest.
    pub start: Bound<RecordId>,
    /// The largest.
    pub end: Bound<RecordId>,
}

impl RecordRange {
    /// All records.
    pub const ALL: Self = Self { start: Bound::Unbounded, end: Bound::Unbounded };
}

/// Index keys to walk over.
#[derive(Clone, Debug)]
pub struct KeyRange {
    /// The smallest.
    pub start: Bound<Vec<u8>>,
    /// The largest.
    pub end: Bound<Vec<u8>>,
}

impl KeyRange {
    /// All keys.
    pub const ALL: Self = Self { start: Bound::Unbounded, end: Bound::Unbounded };
}

/// A materialised view of the log. It has no journal: what it has not made durable, the log replays.
pub trait Engine: Send + Sync {
    /// The name that `serverStatus` and `create` use.
    fn name(&self) -> &'static str;

    /// Applies one record's effects; concurrent calls never touch the same key. Versions that no view from
    /// `oldest_view` on can see may be forgotten.
    fn apply(&self, lsn: Lsn, effects: Effects<'_>, oldest_view: Lsn) -> Result<()>;

    /// A view of everything below `before` and nothing at or above it. The store keeps the history above every open
    /// snapshot from being forgotten.
    fn view(&self, before: Lsn) -> Box<dyn View>;

    /// A view of whatever has been applied, exact only for keys that the caller holds locked. Every point operation
    /// takes it, so it is lent: one of its own for each would cost an allocation and the counts of all that it shares.
    fn latest(&self) -> &dyn View;

    /// Marks what has been applied so far, all of it below `watermark`, as the next checkpoint. Called while no batch
    /// is being applied.
    fn begin_checkpoint(&self, watermark: Lsn) -> Result<()>;

    /// Makes what [`Engine::begin_checkpoint`] marked durable. Versions that no view from `oldest_view` on can see
    /// may be forgotten.
    fn finish_checkpoint(&self, oldest_view: Lsn) -> Result<()>;

    /// Background work such as compaction; never runs beside a checkpoint.
    fn maintain(&self, oldest_view: Lsn) -> Result<()>;

    /// Memory held by what has not been checkpointed, in bytes; a large figure asks for a checkpoint.
    fn unflushed_bytes(&self) -> u64;

    /// Bytes on disk, the log aside.
    fn disk_bytes(&self) -> u64;
}

/// One consistent state of all keyspaces.
pub trait View: Send + Sync {
    /// Reads a record's document into `into` (cleared first) and says where it stands.
    fn record(&self, keyspace: KeyspaceId, record: RecordId, into: &mut Vec<u8>) -> Result<Option<Location>>;

    /// The record that an index key leads to.
    fn key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>>;

    /// The record that a primary key leads to; what is found out on the way may help the next read of it.
    fn primary_key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>> {
        self.key(keyspace, key)
    }

    /// Follows a primary key of the record store `records` to its record and reads the document into `into` (cleared
    /// first). An engine whose primary keys know where the document stands needs one lookup for both.
    fn record_by_primary_key(
        &self,
        keyspace: KeyspaceId,
        records: KeyspaceId,
        key: &[u8],
        into: &mut Vec<u8>,
    ) -> Result<Option<(RecordId, Location)>> {
        let Some(record) = self.key(keyspace, key)? else { return Ok(None) };
        Ok(self.record(records, record, into)?.map(|location| (record, location)))
    }

    /// Walks a record store in order of record ids.
    fn records(&self, keyspace: KeyspaceId, range: RecordRange, direction: Direction) -> Box<dyn RecordCursor>;

    /// Walks an index in order of keys.
    fn keys(&self, keyspace: KeyspaceId, range: KeyRange, direction: Direction) -> Box<dyn KeyCursor>;
}

/// Walks records; a document is lent until the next call.
pub trait RecordCursor: Send {
    /// The next record, or `None` at the end.
    fn next(&mut self) -> Result<Option<(RecordId, Location, &[u8])>>;
}

/// Walks index keys; a key is lent until the next call.
pub trait KeyCursor: Send {
    /// The next key and the record that it leads to, or `None` at the end.
    fn next(&mut self) -> Result<Option<(&[u8], RecordId)>>;
}
