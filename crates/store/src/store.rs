//! The log and its view, opened together: append, apply, acknowledge, recover.

use crate::checkpoint::Checkpointer;
use crate::data_directory::DataDirectory;
use crate::log::{Log, LogOptions};
use crate::manifest::Manifest;
use crate::snapshots::{Pin, Snapshots};
use crate::statistics::Statistics;
use crate::watermark::Watermark;
use crate::{
    Batch, Direction, Effects, Engine, KeyCursor, KeyRange, KeyspaceId, KeyspaceStatistics, Location, LockTable, Lsn,
    RecordCursor, RecordId, RecordRange, Result, StorageError, View,
};
use parking_lot::{Mutex, RwLock};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How many times its limit the engine's unflushed memory may reach before writers are held back.
const STALL_FACTOR: u64 = 4;
/// How long each write is then held back.
const STALL: Duration = Duration::from_millis(1);

/// Opens the engine of a data directory. It gets the log to read documents from, before any record is replayed.
pub type EngineFactory = Box<dyn FnOnce(&Path, LogHandle) -> Result<Arc<dyn Engine>>>;

/// The log, once it is open: an engine is opened before the log that is replayed into it.
pub type LogHandle = Arc<std::sync::OnceLock<Arc<Log>>>;

/// Told the work and its failure.
pub type BackgroundErrorHook = Arc<dyn Fn(&str, &StorageError) + Send + Sync>;

/// How a store behaves.
#[derive(Clone)]
pub struct StoreOptions {
    /// The log's part.
    pub log: LogOptions,
    /// Longest time between checkpoints (`storage.syncPeriodSecs`).
    pub checkpoint_interval: Duration,
    /// A checkpoint begins early when the engine holds more than that unflushed.
    pub unflushed_bytes_max: u64,
    /// Milliseconds since 1970.
    pub clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Told what background work could not do and will try again.
    pub on_background_error: BackgroundErrorHook,
}

/// Counters of the whole store.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct StoreStatistics {
    pub log: crate::LogStatistics,
    pub checkpoints: u64,
    pub last_checkpoint_ms: u64,
    pub unflushed_bytes: u64,
    pub engine_disk_bytes: u64,
}

/// One open data directory.
pub struct Store {
    pub(crate) directory: DataDirectory,
    pub(crate) log: Arc<Log>,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) watermark: Watermark,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) statistics: Statistics,
    /// Shared by batches in flight, exclusive for the instant in which a checkpoint is marked.
    pub(crate) gate: RwLock<()>,
    pub(crate) options: StoreOptions,
    pub(crate) checkpointer: Checkpointer,
    locks: LockTable,
    background: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// A view that keeps its history while it is open.
pub struct Snapshot {
    view: Box<dyn View>,
    lsn: Lsn,
    _pin: Pin,
}

impl Store {
    /// Opens a data directory, creating it where it is missing, and replays the log into the engine.
    pub fn open(path: &Path, options: StoreOptions, engine: EngineFactory) -> Result<Arc<Self>> {
        let directory = DataDirectory::open(path)?;
        let manifest = Manifest::read(path)?;
        let is_new = manifest.is_none();
        let manifest = manifest.unwrap_or_default();
        let handle = LogHandle::default();
        let engine = engine(path, Arc::clone(&handle))?;
        if !is_new && manifest.engine != engine.name() {
            return Err(StorageError::Corrupt {
                file: path.join("manifest.bson"),
                offset_bytes: 0,
                found: format!("made by storage engine '{}', not '{}'", manifest.engine, engine.name()),
            });
        }
        let statistics = Statistics::restore(manifest.keyspaces);
        let log = Log::open(&path.join("log"), options.log.clone(), manifest.watermark, &mut |lsn, effects| {
            statistics.apply(effects.clone());
            // Nobody looks yet.
            engine.apply(lsn, effects, lsn)
        })?;
        let _ = handle.set(Arc::clone(&log));
        let end = log.next_lsn();
        if is_new {
            Manifest { engine: engine.name().to_owned(), watermark: end, keyspaces: Vec::new() }.write(path)?;
        }
        let store = Arc::new(Self {
            directory,
            log,
            engine,
            watermark: Watermark::new(end),
            snapshots: Arc::default(),
            statistics,
            gate: RwLock::new(()),
            options,
            checkpointer: Checkpointer::default(),
            locks: LockTable::default(),
            background: Mutex::new(None),
        });
        *store.background.lock() = Some(Checkpointer::start(&store));
        Ok(store)
    }

    /// Appends a batch to the log and applies it; on return every reader sees it.
    ///
    /// The record is not yet in the kernel: call [`Log::write`] or [`Log::on_durable`] before acknowledging. The
    /// caller holds the locks of the touched documents and unique keys.
    ///
    /// # Errors
    /// Before anything is kept, as [`Log`] says; an engine that cannot apply what the log has makes the log fail.
    pub fn commit(&self, batch: &Batch<'_>) -> Result<Lsn> {
        let _gate = self.gate.read();
        let appended =
            self.log.append(batch, (self.options.clock)(), |start, end| self.watermark.appended(start, end))?;
        let effects = Effects::new(batch.encoded_effects(), appended.documents_position);
        self.statistics.apply(effects.clone());
        let outcome = self.engine.apply(appended.lsn, effects, self.oldest_view());
        // Even a failed application must not hold up the watermark: the log has failed, readers go on.
        self.watermark.applied(appended.lsn);
        outcome.map_err(|error| self.log.fail(error))?;
        let unflushed_bytes = self.engine.unflushed_bytes();
        if unflushed_bytes > self.options.unflushed_bytes_max {
            self.checkpointer.ask();
            if unflushed_bytes > STALL_FACTOR * self.options.unflushed_bytes_max {
                // Memory is finite: writers that outrun the flush are slowed down to its pace.
                std::thread::sleep(STALL);
            }
        }
        Ok(appended.lsn)
    }

    /// No view, open or to come, is of an older state.
    pub(crate) fn oldest_view(&self) -> Lsn {
        self.snapshots.oldest(|| self.watermark.visible())
    }

    /// The present state, kept while the snapshot is open.
    pub fn snapshot(&self) -> Snapshot {
        let (lsn, pin) = self.snapshots.pin(|| self.watermark.visible());
        Snapshot { view: self.engine.view(lsn), lsn, _pin: pin }
    }

    /// What has been applied; exact for keys that the caller holds locked.
    pub fn latest(&self) -> &dyn View {
        self.engine.latest()
    }

    /// Locks on documents and unique keys.
    pub fn locks(&self) -> &LockTable {
        &self.locks
    }

    /// The log, to wait for acknowledgement levels.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// The engine's name.
    pub fn engine_name(&self) -> &'static str {
        self.engine.name()
    }

    /// The data directory.
    pub fn path(&self) -> &Path {
        &self.directory.path
    }

    /// What a keyspace holds.
    pub fn keyspace_statistics(&self, keyspace: KeyspaceId) -> KeyspaceStatistics {
        self.statistics.keyspace(keyspace)
    }

    /// Number of records of a record store.
    pub fn entries(&self, keyspace: KeyspaceId) -> u64 {
        self.statistics.entries(keyspace)
    }

    /// Counters of the whole store.
    pub fn statistics(&self) -> StoreStatistics {
        StoreStatistics {
            log: self.log.statistics(),
            checkpoints: self.checkpointer.count(),
            last_checkpoint_ms: self.checkpointer.last_ms(),
            unflushed_bytes: self.engine.unflushed_bytes(),
            engine_disk_bytes: self.engine.disk_bytes(),
        }
    }

    /// Checkpoints and stops all background work.
    pub fn close(&self) -> Result<()> {
        self.checkpointer.close();
        if let Some(thread) = self.background.lock().take() {
            let _ = thread.join();
        }
        let outcome = self.checkpoint();
        outcome.and(self.log.close())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.checkpointer.close();
    }
}

impl Snapshot {
    /// Everything below is seen.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }
}

impl View for Snapshot {
    fn record(&self, keyspace: KeyspaceId, record: RecordId, into: &mut Vec<u8>) -> Result<Option<Location>> {
        self.view.record(keyspace, record, into)
    }

    fn key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>> {
        self.view.key(keyspace, key)
    }

    fn primary_key(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<RecordId>> {
        self.view.primary_key(keyspace, key)
    }

    fn record_by_primary_key(
        &self,
        keyspace: KeyspaceId,
        records: KeyspaceId,
        key: &[u8],
        into: &mut Vec<u8>,
    ) -> Result<Option<(RecordId, Location)>> {
        self.view.record_by_primary_key(keyspace, records, key, into)
    }

    fn records(&self, keyspace: KeyspaceId, range: RecordRange, direction: Direction) -> Box<dyn RecordCursor> {
        self.view.records(keyspace, range, direction)
    }

    fn keys(&self, keyspace: KeyspaceId, range: KeyRange, direction: Direction) -> Box<dyn KeyCursor> {
        self.view.keys(keyspace, range, direction)
    }
}
