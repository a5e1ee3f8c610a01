//! A storage engine is a materialised view of the log.
//!
//! The contract [`Engine`] speaks of record stores and sorted indexes instead of a bag of bytes. So it fits engines
//! that keep the documents themselves (memory, mmap) and an engine that leaves them in the log (lsm).

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
    /// The smallest record id.
    pub start: Bound<RecordId>,
    /// The largest record id.
    pub end: Bound<RecordId>,
}

impl RecordRange {
    /// All records.
    pub const ALL: Self = Self { start: Bound::Unbounded, end: Bound::Unbounded };
}

/// Index keys to walk over.
#[derive(Clone, Debug)]
pub struct KeyRange {
    /// The smallest key.
    pub start: Bound<Vec<u8>>,
    /// The largest key.
    pub end: Bound<Vec<u8>>,
}

impl KeyRange {
    /// All keys.
    pub const ALL: Self = Self { start: Bound::Unbounded, end: Bound::Unbounded };
}

/// A materialised view of the log. An engine has no journal: the log replays whatever the engine has not made durable.
///
/// The store calls it in this order for a checkpoint: [`Engine::begin_checkpoint`] while no batch is being applied,
/// [`Engine::finish_checkpoint`] once the log is durable up to there, then it writes the engine's note into the
/// manifest, and [`Engine::checkpoint_is_durable`].
pub trait Engine: Send + Sync {
    /// The name that `serverStatus` and `create` use.
    fn name(&self) -> &'static str;

    /// Checks the settings of a keyspace: a BSON document, which may be empty.
    ///
    /// # Errors
    /// A sentence that names the refused setting and its value.
    fn check_settings(&self, settings: DocumentRef<'_>) -> Result<(), String>;

    /// Checks that there is room for that many more bytes of documents and keys. Called before any part of a batch is
    /// kept.
    ///
    /// # Errors
    /// [`StorageError::OutOfMemory`](crate::StorageError::OutOfMemory) and
    /// [`StorageError::MapFull`](crate::StorageError::MapFull).
    fn admit(&self, _growth_bytes: usize) -> Result<()> {
        Ok(())
    }

    /// Upper bound of the disk bytes that the next checkpoint takes beyond the engine's present files, for the
    /// unflushed changes and for a batch that adds `added`.
    fn checkpoint_disk_bytes(&self, added: Added) -> u64 {
        self.unflushed_bytes() + added.bytes()
    }

    /// Applies one record's effects; concurrent calls never touch the same key. The engine may forget versions that no
    /// view sees.
    fn apply(&self, lsn: Lsn, effects: Effects<'_>, views: Views<'_>) -> Result<()>;

    /// Writes documents of a record store, durably, into a file, so that one log record can name the file instead of
    /// carrying the documents. `None` if the engine has no such files. The documents come in the order of their
    /// records, and take no more bytes than one message of the wire protocol.
    fn stage(
        &self,
        _keyspace: KeyspaceId,
        _documents: &mut dyn Iterator<Item = (RecordId, &[u8])>,
    ) -> Result<Option<Staged>> {
        Ok(None)
    }

    /// A view of everything below `before` and nothing at or above it. The store makes engines keep all versions that
    /// open snapshots see. It calls this while no checkpoint can begin, after all records below `before` have been
    /// applied.
    fn view(&self, before: Lsn) -> Box<dyn View>;

    /// A view of everything that has been applied, exact only for keys that the caller holds locked. It is lent because
    /// every point operation uses it: a view for each operation would cost an allocation and several reference counts.
    fn latest(&self) -> &dyn View;

    /// Marks all batches that were applied so far, which are below `watermark`, as the next checkpoint. Called while no
    /// batch is being applied.
    fn begin_checkpoint(&self, watermark: Lsn) -> Result<()>;

    /// Makes the changes durable that [`Engine::begin_checkpoint`] marked. Returns the engine's note, which the engine
    /// gets back when it is opened from this checkpoint. The engine may forget versions that no view from `oldest_view`
    /// on can see.
    fn finish_checkpoint(&self, oldest_view: Lsn) -> Result<DocumentBuf>;

    /// The note of the last [`Engine::finish_checkpoint`] is durable, so files that only older notes name may be
    /// deleted.
    fn checkpoint_is_durable(&self, _oldest_view: Lsn) -> Result<()> {
        Ok(())
    }

    /// Exclusive upper bound of the log positions that the engine's files know of. It may be ahead of the manifest's
    /// watermark, if a checkpoint did not come to its end.
    fn files_end(&self) -> Lsn {
        Lsn(0)
    }

    /// Adds the engine's files to an image of the data directory, in the directory `image`: hard links to files that
    /// never change. Called while no checkpoint, merge or reclaim runs. Returns the copy of a file that the engine
    /// changes in place, `None` if it has no such file; the copy runs later, concurrently with all other work, and must
    /// copy the present state.
    ///
    /// # Errors
    /// Errors of the files.
    fn add_to_image(&self, _image: &std::path::Path) -> Result<Option<CopyIntoImage>> {
        Ok(None)
    }

    /// Checks that the log has all documents that the engine reads from it, and reaches as far as the engine does.
    /// Called once the log has been replayed, before anything is changed.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`](crate::StorageError::Corrupt) names the file that is missing, or is too new for the
    /// log.
    fn check_log(&self, _log: &RecoveredLog) -> Result<()> {
        Ok(())
    }

    /// Whether no present or future view reads a document from that segment of the log.
    fn has_left_segment(&self, _segment: u64) -> bool {
        true
    }

    /// Frees memory that checkpoints have made durable and no reader uses any more. Called where no client waits for
    /// it.
    fn release(&self) {}

    /// Merges sorted files on disk once there are too many of them. It may run during a checkpoint, but not during
    /// another merge, nor during [`Engine::compact`]. `oldest_view` returns the oldest open view at the time of the
    /// call.
    fn merge(&self, _oldest_view: &dyn Fn() -> Lsn) -> Result<()> {
        Ok(())
    }

    /// Called after a bulk of writes that will be read next has been flushed: the next merge leaves as few sorted files
    /// as if no client had written for a while.
    fn prepare_for_reads(&self) {}

    /// Gives space back, in one step of at most about two seconds. It may run during a checkpoint, but not during
    /// another step. `oldest_view` stays the oldest view during the step, and the log is durable up to it.
    fn reclaim(&self, _oldest_view: Lsn, _effort: Effort) -> Result<Reclaimed> {
        Ok(Reclaimed::Nothing)
    }

    /// Memory and disk that are used only because views from `oldest_view` on are open, with the most that they should
    /// take. Called every few seconds while such views are open, on a thread that may be held for a moment.
    fn kept_for_views(&self, _oldest_view: Lsn) -> Vec<KeptForViews> {
        Vec::new()
    }

    /// Rewrites all sorted files of the engine without the versions that no view from `oldest_view` on can see. It may
    /// run during a checkpoint, but not during [`Engine::merge`].
    fn compact(&self, _oldest_view: Lsn) -> Result<()> {
        Ok(())
    }

    /// Gives up the running merge, because the store is closing and waits for it. A merge after the next start does the
    /// work again.
    fn give_up_merging(&self) {}

    /// Bytes of memory that hold changes which no checkpoint has marked yet. A large figure asks for a checkpoint.
    fn unflushed_bytes(&self) -> u64;

    /// Bytes of memory that a checkpoint has marked and that are not free again yet. Writers are held back when the sum
    /// of this and [`Engine::unflushed_bytes`] grows too large.
    fn flushing_bytes(&self) -> u64 {
        0
    }

    /// Bytes of memory that are needed for files on disk as long as the files exist; caches, which can be emptied, do
    /// not count.
    fn pinned_bytes(&self) -> u64 {
        0
    }

    /// Space that each keyspace takes, in the order given. Each keyspace comes with its present statistics, so that
    /// documents and keys that are only in the log so far count too.
    fn space(&self, keyspaces: &[(KeyspaceId, KeyspaceStatistics)]) -> Vec<Space>;

    /// Bytes of all the engine's files, or of its memory if it has no files. The log does not count.
    fn size_bytes(&self) -> u64;

    /// This engine's section of `serverStatus`: counters since the start, and gauges.
    fn status(&self) -> DocumentBuf;
}

/// How hard [`Engine::reclaim`] tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Only work that pays for itself. Recently written data may wait until it is known how much of it stays.
    Usual,
    /// Only work that pays for itself, also on recently written data (`fsync`).
    Now,
    /// All space that can be gained (`compact`).
    All,
    /// Work that gives most back for the least disk, because the disk is full.
    Room,
}

/// Amount that batches add to the changes waiting for a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Records and keys that are put or deleted.
    pub changes: u64,
    /// Bytes of documents and effects in the log.
    pub logged_bytes: u64,
}

impl Added {
    /// Approximate memory of a change beside its bytes.
    const CHANGE_BYTES: u64 = 64;

    /// Approximate memory that the changes take in the engines.
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

/// Outcome of a step of [`Engine::reclaim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaimed {
    /// There is nothing to do at present.
    Nothing,
    /// A step was done; another one may be worthwhile.
    Some,
}

/// Memory or disk that is used only for open views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptForViews {
    /// Whether it is in memory or on disk.
    pub place: Medium,
    /// Approximate size in bytes.
    pub bytes: u64,
    /// Maximum number of bytes that it should take.
    pub bytes_max: u64,
}

/// Memory or disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// In memory.
    Memory,
    /// On disk.
    Disk,
}

impl KeptForViews {
    /// Lower bound of `bytes_max` on disk, however little the engine holds.
    const DISK_BYTES_MIN: u64 = 4 << 30;

    /// Space on disk in an engine whose files have `held_bytes`: the maximum is half of that, but at least 4 GiB.
    pub fn on_disk(bytes: u64, held_bytes: u64) -> Self {
        Self { place: Medium::Disk, bytes, bytes_max: Self::DISK_BYTES_MIN.max(held_bytes / 2) }
    }
}

/// Space of one keyspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes that its documents or keys take as they are stored, after compression.
    pub used_bytes: u64,
    /// Bytes of its files that hold no live data.
    pub free_bytes: u64,
}

/// Copies a file into an image. It asks its argument often, and ends with that error.
pub type CopyIntoImage = Box<dyn FnOnce(&dyn Fn() -> Result<()>) -> Result<()> + Send>;

/// Takes one of several requested documents: its number among the requests, its location and its bytes.
pub type TakeRecord<'t> = dyn FnMut(usize, Location, &[u8]) + 't;

/// One consistent state of all keyspaces.
pub trait View: Send + Sync {
    /// Reads a record's document into `into` (cleared first) and returns its location; `None` if the view has no such
    /// record.
    fn record(&self, keyspace: KeyspaceId, record: RecordId, into: &mut Vec<u8>) -> Result<Option<Location>>;

    /// As [`View::record`], for a caller whose `into` already holds the document at `known`: `into` is left as it is if
    /// the record is still there.
    fn record_again(
        &self,
        keyspace: KeyspaceId,
        record: RecordId,
        _known: Location,
        into: &mut Vec<u8>,
    ) -> Result<Option<Location>> {
        self.record(keyspace, record, into)
    }

    /// Locations of the documents of several records, in the order of `records`. `None` if the engine cannot find them
    /// faster together than one by one.
    fn places(&self, _keyspace: KeyspaceId, _records: &[RecordId]) -> Result<Option<Vec<Option<Location>>>> {
        Ok(None)
    }

    /// Reads the documents of several records, in the order that is fastest. It stops after the first documents that
    /// together have `bytes_max` bytes, and reads at least one. Records that do not exist are skipped. Returns how many
    /// of `records` were looked up.
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

    /// The record that an index key leads to; `None` if the view has no such key.
    fn key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>>;

    /// The record that a primary key leads to; `None` if the view has no such key. The engine may remember the result,
    /// to make the next read of the record faster.
    fn primary_key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>> {
        self.key(keyspace, key)
    }

    /// Follows a primary key of the record store `records` to its record and reads the document into `into` (cleared
    /// first); `None` if the view has no such key. An engine that stores document locations with primary keys needs one
    /// lookup for both.
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

    /// Whether an index has no key from `first` to `last`, both included. Also false where finding out would cost more
    /// than looking up a few keys.
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

    /// Continues with the keys from `start` to before `end`; none of these may come before a key that the walk, in
    /// ascending order, has shown. Returns false, with nothing done, if a new cursor would be as fast.
    fn go_to(&mut self, _start: &[u8], _end: &[u8]) -> bool {
        false
    }
}
