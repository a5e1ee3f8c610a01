//! What a storage engine is: a materialised view of the log.
//!
//! Record stores and sorted indexes, not a bag of bytes: an engine that keeps documents itself (memory, mmap) and one
//! that leaves them in the log (lsm) fit the same contract.

use crate::{Effects, KeyspaceId, KeyspaceStatistics, Location, Lsn, RecordId, RecoveredLog, Result, Staged};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_versions::Views;
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
///
/// The store calls it in this order for a checkpoint: [`Engine::begin_checkpoint`] while no batch is being applied,
/// [`Engine::finish_checkpoint`] once the log is durable up to there, then it writes the engine's note into the
/// manifest, and [`Engine::checkpoint_is_durable`].
pub trait Engine: Send + Sync {
    /// The name that `serverStatus` and `create` use.
    fn name(&self) -> &'static str;

    /// Refuses what a keyspace's settings (a BSON document, or nothing) may not say.
    ///
    /// # Errors
    /// A sentence that names the setting and its value.
    fn check_settings(&self, settings: DocumentRef<'_>) -> Result<(), String>;

    /// Whether there is room for that many more bytes of documents and keys. Asked before anything is kept of a batch.
    ///
    /// # Errors
    /// [`StorageError::OutOfMemory`](crate::StorageError::OutOfMemory) and
    /// [`StorageError::MapFull`](crate::StorageError::MapFull).
    fn admit(&self, _growth_bytes: usize) -> Result<()> {
        Ok(())
    }

    /// Bytes of disk that the next checkpoint may take, beyond what the engine's files have by now, for what waits and for
    /// what a batch adds. It may be too many, not too few.
    fn checkpoint_disk_bytes(&self, added: Added) -> u64 {
        self.unflushed_bytes() + added.bytes()
    }

    /// Applies one record's effects; concurrent calls never touch the same key. Versions that no view sees may be
    /// forgotten.
    fn apply(&self, lsn: Lsn, effects: Effects<'_>, views: Views<'_>) -> Result<()>;

    /// Writes documents of a record store, durably, into a file that one log record can name instead of carrying them;
    /// `None` where the engine has no such files. The documents come in the order of their records, and take no more
    /// than a message of the wire protocol has.
    fn stage(
        &self,
        _keyspace: KeyspaceId,
        _documents: &mut dyn Iterator<Item = (RecordId, &[u8])>,
    ) -> Result<Option<Staged>> {
        Ok(None)
    }

    /// A view of everything below `before` and nothing at or above it. The store keeps the history above every open
    /// snapshot from being forgotten, and calls this while no checkpoint can begin, with all below `before` applied.
    fn view(&self, before: Lsn) -> Box<dyn View>;

    /// A view of whatever has been applied, exact only for keys that the caller holds locked. Every point operation
    /// takes it, so it is lent: one of its own for each would cost an allocation and the counts of all that it shares.
    fn latest(&self) -> &dyn View;

    /// Marks what has been applied so far, all of it below `watermark`, as the next checkpoint. Called while no batch
    /// is being applied.
    fn begin_checkpoint(&self, watermark: Lsn) -> Result<()>;

    /// Makes what [`Engine::begin_checkpoint`] marked durable, and says what the engine wants to be told when it is
    /// opened from there again. Versions that no view from `oldest_view` on can see may be forgotten.
    fn finish_checkpoint(&self, oldest_view: Lsn) -> Result<DocumentBuf>;

    /// The note of the last [`Engine::finish_checkpoint`] is durable: what only older notes name may go.
    fn checkpoint_is_durable(&self, _oldest_view: Lsn) -> Result<()> {
        Ok(())
    }

    /// Asked once the log is replayed and before anything is changed: whether the log has what the engine reads from it,
    /// and reaches as far as the engine does.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`](crate::StorageError::Corrupt) names the file that is missing, or too new for the log.
    fn check_log(&self, _log: &RecoveredLog) -> Result<()> {
        Ok(())
    }

    /// Whether no view, open or to come, reads a document from that segment of the log.
    fn has_left_segment(&self, _segment: u64) -> bool {
        true
    }

    /// Frees what checkpoints have made durable and nobody reads any more; nobody waits for that.
    fn release(&self) {}

    /// Merges what has become too much of what the engine keeps sorted on disk. It may run beside a checkpoint, but not
    /// beside another merge, nor beside [`Engine::compact`]. `oldest_view` says, whenever it is asked, which views are
    /// gone.
    fn merge(&self, _oldest_view: &dyn Fn() -> Lsn) -> Result<()> {
        Ok(())
    }

    /// Much was written that will be read next, and has been flushed: the next merge is to leave as little to go through as where
    /// nobody has written for a while.
    fn prepare_for_reads(&self) {}

    /// One step, of some two seconds at most, of giving space back. It may run beside a checkpoint, but not beside
    /// another step. `oldest_view` stays the oldest for as long as it takes, and the log is durable up to there.
    fn reclaim(&self, _oldest_view: Lsn, _effort: Effort) -> Result<Reclaimed> {
        Ok(Reclaimed::Nothing)
    }

    /// What is kept only because views from `oldest_view` on, of states that are over, are open; and how much of it should
    /// be at most. Asked every few seconds while there are such views, on a thread that may be held for a moment.
    fn kept_for_views(&self, _oldest_view: Lsn) -> Vec<KeptForViews> {
        Vec::new()
    }

    /// Rewrites all that the engine keeps sorted on disk, without what no view from `oldest_view` on can see. It may run
    /// beside a checkpoint, but not beside [`Engine::merge`].
    fn compact(&self, _oldest_view: Lsn) -> Result<()> {
        Ok(())
    }

    /// The store is closing, and waits for a merge that is going on: it is given up, for a later one to do again.
    fn give_up_merging(&self) {}

    /// Memory held by what no checkpoint has marked yet, in bytes; a large figure asks for one.
    fn unflushed_bytes(&self) -> u64;

    /// Memory held by what a checkpoint has marked and that is not free again, in bytes; where both figures together
    /// grow too large, writers are held back.
    fn flushing_bytes(&self) -> u64 {
        0
    }

    /// Memory that is held for what is on disk for as long as it is there, in bytes: no cache, which would give it up.
    fn pinned_bytes(&self) -> u64 {
        0
    }

    /// What keyspaces take, in the order given, each with what it holds now: what is in the log alone, because no
    /// checkpoint has taken it yet, counts too.
    fn space(&self, keyspaces: &[(KeyspaceId, KeyspaceStatistics)]) -> Vec<Space>;

    /// Bytes of all the engine's files, or of its memory where it has none; the log aside.
    fn size_bytes(&self) -> u64;

    /// What `serverStatus` shows of this engine: counters since the start, gauges as of now.
    fn status(&self) -> DocumentBuf;
}

/// How hard [`Engine::reclaim`] tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// What pays for itself; what was written of late may wait until it is known how much of it stays.
    Usual,
    /// What pays for itself, at once (`fsync`).
    Now,
    /// Whatever space there is to gain (`compact`).
    All,
    /// What gives most back and takes least for it: the disk is full.
    Room,
}

/// What batches add to what waits for a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Records and keys that are put or deleted.
    pub changes: u64,
    /// Bytes of documents and effects in the log.
    pub logged_bytes: u64,
}

impl Added {
    /// What a change costs in memory beside its bytes, about.
    const CHANGE_BYTES: u64 = 64;

    /// What they take in the engines' memory, about.
    pub fn bytes(&self) -> u64 {
        self.changes * Self::CHANGE_BYTES + self.logged_bytes
    }
}

impl std::iter::Sum for Added {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |all, part| Self {
            changes: all.changes + part.changes,
            logged_bytes: all.logged_bytes + part.logged_bytes,
        })
    }
}

/// What a step of [`Engine::reclaim`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaimed {
    /// There is nothing to do at present.
    Nothing,
    /// A step was done; another may be worth while.
    Some,
}

/// What is kept for views alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptForViews {
    /// Where it is.
    pub place: Place,
    /// What it takes there, in bytes; about.
    pub bytes: u64,
    /// Most that it should take.
    pub bytes_max: u64,
}

/// Where something takes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In memory.
    Memory,
    /// On disk.
    Disk,
}

impl KeptForViews {
    /// Bytes on disk that are beyond any reason without so many of them, however little the engine holds.
    const DISK_BYTES_MIN: u64 = 4 << 30;

    /// What is kept on disk by an engine that takes `held_bytes` there: half of that, but some gigabytes in any case.
    pub fn on_disk(bytes: u64, held_bytes: u64) -> Self {
        Self { place: Place::Disk, bytes, bytes_max: Self::DISK_BYTES_MIN.max(held_bytes / 2) }
    }
}

/// What a keyspace takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes that its documents or keys take as they are stored, compressed where they are.
    pub used_bytes: u64,
    /// Bytes that are its own but hold nothing alive.
    pub free_bytes: u64,
}

/// Takes a document that several were asked for with: which of them it is, where it stands, and its bytes.
pub type TakeRecord<'t> = dyn FnMut(usize, Location, &[u8]) + 't;

/// One consistent state of all keyspaces.
pub trait View: Send + Sync {
    /// Reads a record's document into `into` (cleared first) and says where it stands.
    fn record(&self, keyspace: KeyspaceId, record: RecordId, into: &mut Vec<u8>) -> Result<Option<Location>>;

    /// The same for who holds in `into` what stands at `known`: that is left as it is where the record still stands there.
    fn record_again(
        &self,
        keyspace: KeyspaceId,
        record: RecordId,
        _known: Location,
        into: &mut Vec<u8>,
    ) -> Result<Option<Location>> {
        self.record(keyspace, record, into)
    }

    /// Where the documents of several records stand, in their order; nothing where the engine does not find that out sooner for all than
    /// one by one.
    fn places(&self, _keyspace: KeyspaceId, _records: &[RecordId]) -> Result<Option<Vec<Option<Location>>>> {
        Ok(None)
    }

    /// Reads the documents of several records, in whatever order is the fastest: of as many of the first as have `bytes_max`
    /// together, but of one at least. Records that are not there are passed over. How many of them were looked up.
    fn some_records(
        &self,
        keyspace: KeyspaceId,
        records: &[RecordId],
        bytes_max: usize,
        take: &mut TakeRecord<'_>,
    ) -> Result<usize> {
        let (mut bytes, mut document) = (0, Vec::new());
        for (number, record) in records.iter().enumerate() {
            if bytes >= bytes_max {
                return Ok(number);
            }
            if let Some(location) = self.record(keyspace, *record, &mut document)? {
                bytes += document.len();
                take(number, location, &document);
            }
        }
        Ok(records.len())
    }

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

    /// Whether an index has no key from `first` to `last`, both included. False also where to know it would take more
    /// than to look up a few keys.
    fn is_vacant(&self, keyspace: KeyspaceId, first: &[u8], last: &[u8]) -> Result<bool> {
        let range = KeyRange { start: Bound::Included(first.to_vec()), end: Bound::Included(last.to_vec()) };
        Ok(self.keys(keyspace, range, Direction::Forward).next()?.is_none())
    }
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

    /// Goes on with the keys from `start` to before `end`, none of which comes before what a walk in ascending order has shown;
    /// false, with nothing done, where another cursor would do as well.
    fn go_to(&mut self, _start: &[u8], _end: &[u8]) -> bool {
        false
    }
}
