//! The log and the engines, opened together: append, apply, acknowledge, recover.
//!
//! `Store::commit` is the path of every write of a standalone server or a primary. A secondary's records come in by
//! `secondary`. How a store opens is in `opening`, its methods for a set are in `membership`.

use crate::archive_readers::Archives;
use crate::chain::holds_others_up;
use crate::changed_records::FollowedStores;
use crate::checkpoint::Checkpointer;
use crate::commit_point::CommitPoint;
use crate::data_directory::DataDirectory;
use crate::disk_room::{DiskRoom, Draw, ReserveOptions};
use crate::engines::{Engines, Keeping};
use crate::failpoint::{self, Failpoint};
use crate::history::Kept;
use crate::image::images::Images;
use crate::journal::{AppendedRecord, Journal};
use crate::log::{Log, LogOptions, OpenChain};
use crate::merge::Merger;
use crate::reclaim::Reclaimer;
use crate::remembered::Remembered;
use crate::role::RoleCell;
use crate::snapshots::{Pin, Snapshots};
use crate::statistics::Statistics;
use crate::terms::SharedTerms;
use crate::watermark::Watermark;
use crate::whole::WholeCommits;
use crate::{
    Batch, Bell, DurabilityCallback, Effort, Engine, KeyspaceId, Location, LockTable, Lsn, RecordId, Result, Staged,
    StorageError, View, Vote,
};
use bunko_bson::Timestamp;
use bunko_host::Clock;
use parking_lot::{Mutex, RwLock};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

/// A writer whose engine is full starts a checkpoint if at least this much is unflushed; a smaller one would hardly
/// make room.
const WORTH_A_CHECKPOINT_BYTES: u64 = 1 << 20;

/// The log, set once it is open: an engine is opened before the log that is replayed into it.
pub type LogHandle = Arc<std::sync::OnceLock<Arc<Log>>>;

/// Called with the name of the background work and its error.
pub type BackgroundErrorHook = Arc<dyn Fn(&str, &StorageError) + Send + Sync>;

/// Called with the commit point and the position of a checkpoint that passes it.
pub type CommitPassedHook = Arc<dyn Fn(Lsn, Lsn) + Send + Sync>;

/// Options of a store.
#[derive(Clone)]
pub struct StoreOptions {
    /// Options of the log.
    pub log: LogOptions,
    /// Longest time between checkpoints (`storage.syncPeriodSecs`).
    pub checkpoint_interval: Duration,
    /// A checkpoint begins early when engines hold more unflushed bytes than this.
    pub unflushed_bytes_max: u64,
    /// Clock whose date is written into the records.
    pub clock: Clock,
    /// Called when background work fails; the work will be tried again.
    pub on_background_error: BackgroundErrorHook,
    /// Called when a checkpoint has waited long enough for the commit point.
    pub on_commit_passed: CommitPassedHook,
    /// Disk that is kept for writes that make room.
    pub reserve: ReserveOptions,
}

impl StoreOptions {
    /// For tests and measurements: no reserve, no checkpoint until one is requested or 64 MiB are unflushed, the
    /// date 1, and a panic if background work fails.
    #[must_use]
    pub fn at_rest() -> Self {
        Self {
            log: LogOptions::default(),
            checkpoint_interval: Duration::from_hours(1),
            unflushed_bytes_max: 64 << 20,
            clock: Clock::dated(|| 1),
            on_background_error: Arc::new(|what, error| panic!("{what}: {error}")),
            on_commit_passed: Arc::new(|_, _| ()),
            reserve: ReserveOptions::none(),
        }
    }
}

/// One open data directory, or a store in memory that has none.
pub struct Store {
    pub(crate) journal: Journal,
    /// The history of the log; `None` if no history is kept.
    pub(crate) kept: Option<Kept>,
    pub(crate) engines: Engines,
    pub(crate) watermark: Watermark,
    pub(crate) commit_point: CommitPoint,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) statistics: Statistics,
    pub(crate) remembered: Remembered,
    /// Locked by the one open chain, from its first record until readers see it, and while a checkpoint is marked.
    pub(crate) chain: Mutex<()>,
    /// Shared by batches in flight; exclusive for the instant in which a checkpoint is marked or the role changes.
    pub(crate) gate: RwLock<()>,
    pub(crate) role: RoleCell,
    pub(crate) terms: Arc<SharedTerms>,
    pub(crate) vote: Mutex<Option<Vote>>,
    /// Locked while records of another member are appended or removed, and while the member becomes primary.
    pub(crate) appending: Mutex<()>,
    /// Position of a secondary's first record that is not applied, and the chain that is open there. Locked while records
    /// are applied, and while the role changes.
    pub(crate) unapplied: Mutex<(Lsn, OpenChain)>,
    /// Whether the next start takes back a part of the log, so that this store takes nothing more.
    pub(crate) is_rolled_back: AtomicBool,
    /// Rung when a place of the log moves; see [`Store::log_bell`].
    pub(crate) moved: Arc<Bell>,
    pub(crate) options: StoreOptions,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) merger: Merger,
    pub(crate) reclaimer: Reclaimer,
    pub(crate) disk: Arc<DiskRoom>,
    pub(crate) images: Images,
    pub(crate) archives: Archives,
    /// Locked while removed data is given back to the disk.
    pub(crate) relieving: Mutex<()>,
    pub(crate) locks: LockTable,
    pub(crate) whole: WholeCommits,
    pub(crate) followed: FollowedStores,
    /// Position of the first record of the chain that is open at a secondary's watermark. The pin keeps reclaim away
    /// from the chain's records, whose documents no engine knows yet.
    pub(crate) open_chain: Mutex<Option<(Lsn, Pin)>>,
    pub(crate) background: Mutex<Vec<std::thread::JoinHandle<()>>>,
    pub(crate) stalled_writes: AtomicU64,
    /// Whether chains that would wait for engines are refused, because the store will be closed soon.
    pub(crate) is_closing: AtomicBool,
    /// Whether a reader of the history has a pending request for a sync.
    pub(crate) is_hurried: Arc<AtomicBool>,
    /// `None` for a store in memory. Fields are dropped in order, and the lock on the directory must outlive all
    /// others, so it is the last.
    pub(crate) directory: Option<DataDirectory>,
}

/// A record that is being applied. Dropping it lets the watermark pass the record, whatever the outcome.
pub(crate) struct RecordInFlight<'s> {
    pub(crate) store: &'s Store,
    pub(crate) lsn: Lsn,
}

impl Drop for RecordInFlight<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.store.journal.fail(StorageError::LogFailed);
        }
        self.store.watermark.applied(self.lsn);
    }
}

impl Store {
    /// Opens the engine with that name unless it is open already, so that keyspaces can be created in it.
    ///
    /// # Errors
    /// [`StorageError::UnknownEngine`], and errors from opening the engine.
    pub fn engine(&self, name: &str) -> Result<Arc<dyn Engine>> {
        self.engines.ensure(name, None)
    }

    /// Names of the engines that a collection may choose from, the store's own first.
    pub fn engine_names(&self) -> Vec<&'static str> {
        self.engines.names()
    }

    /// Routes the keyspaces to the engines that the catalog names, and all others to the store's own engine. Earlier
    /// versions may have saved another route for a keyspace whose creation the log had refused.
    ///
    /// # Errors
    /// As [`Store::engine`] and [`Store::checkpoint`].
    pub fn settle(&self, keyspaces: &[(KeyspaceId, String)]) -> Result<()> {
        // The checkpoint comes before any write that the next start replays.
        if self.engines.settle(keyspaces)? { self.checkpoint() } else { Ok(()) }
    }

    /// Appends a batch to the log and applies it; on return every reader sees it.
    ///
    /// The record is not yet in the kernel: call [`Store::write`] or [`Store::on_durable`] before acknowledging it, and
    /// follow [`Store::lag`] before writing more. The caller holds the locks of the touched documents and unique keys.
    ///
    /// # Errors
    /// Before anything is kept: the errors of [`Log`], [`StorageError::NotPrimary`], [`StorageError::OutOfMemory`] and
    /// [`StorageError::MapFull`]. If an engine cannot apply a record that is in the log, the log fails.
    pub fn commit(&self, batch: &Batch<'_>) -> Result<Lsn> {
        self.commit_appended(batch).map(|appended| appended.lsn)
    }

    /// As [`Store::commit`], and returns the location of the batch's last document too.
    ///
    /// # Errors
    /// As [`Store::commit`].
    /// # Panics
    /// If the batch has no document.
    pub fn commit_placed(&self, batch: &Batch<'_>) -> Result<(Lsn, Location)> {
        let appended = self.commit_appended(batch)?;
        let location = batch.last_location(appended.documents_position);
        Ok((appended.lsn, location.expect("the batch has a document")))
    }

    fn commit_appended(&self, batch: &Batch<'_>) -> Result<AppendedRecord> {
        // Memory that engines and the log keep of the batch is bounded by their own limits, so it does not count for
        // the operation.
        let _uncounted = bunko_heap::Uncounted::begin();
        let growth_bytes = batch.growth_bytes();
        self.make_room(|| self.engines.admit(&batch.effects(0), growth_bytes))?;
        let (parts, draw) = (std::slice::from_ref(batch), Self::draw(std::slice::from_ref(batch), growth_bytes));
        self.admit_to_disk(parts, draw)?;
        let appended = self.with_relief(draw, || {
            if holds_others_up(batch) {
                self.append_and_apply_chain(parts, draw)
            } else {
                self.append_and_apply(batch, draw)
            }
        })?;
        self.note_growth();
        Ok(appended)
    }

    /// Asks for a checkpoint if engines hold too many unflushed bytes.
    pub(crate) fn note_growth(&self) {
        if self.note_unflushed() > self.options.unflushed_bytes_max {
            self.checkpointer.ask();
        }
    }

    /// The part of a batch that the log keeps. A log with a history keeps every change, whichever engine it is in.
    pub fn keeping(&self, batch: &Batch<'_>) -> Keeping {
        if self.keeps_history() || batch.remembers() { Keeping::Whole } else { self.engines.keeping(batch.effects(0)) }
    }

    /// Shows all remembered keys and values, in no order. All of them are in memory, and every checkpoint writes all of
    /// them.
    pub fn remembered(&self, show: &mut dyn FnMut(&[u8], &[u8])) {
        self.remembered.copy().iter().for_each(|(key, value)| show(key, value));
    }

    /// Lets the engine of a record store write documents ahead of the log; see [`Engine::stage`]. `None` if a history
    /// is kept or an archive made, because the log must then have all documents.
    ///
    /// # Errors
    /// Errors of the files; no file is left in that case.
    pub fn stage(
        &self,
        keyspace: KeyspaceId,
        documents: &mut dyn Iterator<Item = (RecordId, &[u8])>,
    ) -> Result<Option<Staged>> {
        if self.keeps_history() || self.is_archived() {
            return Ok(None);
        }
        self.engines.of(keyspace).stage(keyspace, documents)
    }

    /// Asks the engines for room, and tries to make some: recently deleted data may still take room.
    pub(crate) fn make_room(&self, admit: impl Fn() -> Result<()>) -> Result<()> {
        match admit() {
            Err(StorageError::OutOfMemory { .. }) => {
                self.reclaim_step(Effort::Usual)?;
                admit()
            }
            // Estimates for changes that wait for a checkpoint are higher than their real needs.
            Err(StorageError::MapFull { .. }) if self.unflushed_bytes() >= WORTH_A_CHECKPOINT_BYTES => {
                let _waiting = self.commit_point.want_room();
                self.checkpoint()?;
                admit()
            }
            other => other,
        }
    }

    /// The clock that dates the records.
    pub fn clock(&self) -> &Clock {
        &self.options.clock
    }

    /// The time of the newest record that readers see: that of its first effect. It only grows.
    pub fn newest_time(&self) -> Timestamp {
        self.watermark.newest()
    }

    /// Upper bound of the time of all effects that readers see; [`Store::newest_time`] may be earlier.
    pub fn newest_time_max(&self) -> Timestamp {
        let end = self.watermark.visible();
        let newest = self.watermark.newest();
        // A record that came between the two loads has a larger increment because of its position.
        Timestamp { seconds: newest.seconds, increment: newest.increment.max((end.0 as u32).wrapping_sub(1)) }
    }

    /// Makes all future records later than `time`.
    pub fn advance_time(&self, time: Timestamp) {
        self.journal.advance_time((u64::from(time.seconds) + 1) * 1000);
    }

    fn append_and_apply(&self, batch: &Batch<'_>, draw: Draw) -> Result<AppendedRecord> {
        let _gate = self.gate.read();
        self.role.check()?;
        if batch.changes_keyspaces() {
            self.engines.open_for(batch.effects(0))?;
        }
        let now_ms = self.options.clock.now_ms();
        let in_order = |moment| self.watermark.appended(moment);
        let appended = match self.keeping(batch) {
            Keeping::Whole => self.journal.append(batch, draw, now_ms, in_order)?,
            Keeping::Place => self.journal.append(&Batch::new(), draw, now_ms, in_order)?,
        };
        // A failed application must not hold up the watermark: the log has failed, but readers go on.
        let applying = RecordInFlight { store: self, lsn: appended.lsn };
        failpoint::pass(Failpoint::Appended);
        let outcome = self.apply(batch, &appended);
        let telling = self.begin_telling();
        drop(applying);
        outcome.map_err(|error| self.journal.fail(error))?;
        self.tell_followers(std::iter::once(batch.noted()), appended.lsn);
        drop(telling);
        Ok(appended)
    }

    pub(crate) fn unflushed_bytes(&self) -> u64 {
        self.engines.sum(|engine| engine.unflushed_bytes())
    }

    /// Returns once the record at `lsn` is in the kernel, where it survives a kill of the process: the default level of
    /// acknowledgement.
    pub fn write(&self, lsn: Lsn) -> Result<()> {
        self.journal.write(lsn)
    }

    /// Calls back once the record at `lsn` is on disk, or at once in a store without a disk.
    pub fn on_durable(&self, lsn: Lsn, callback: DurabilityCallback) {
        self.journal.on_durable(lsn, callback);
    }

    /// A view of everything that has been applied; exact for keys that the caller holds locked.
    pub fn latest(&self) -> &dyn View {
        self.engines.latest()
    }

    /// Locks on documents and unique keys.
    pub fn locks(&self) -> &LockTable {
        &self.locks
    }

    /// The name of the store's own engine.
    pub fn engine_name(&self) -> &'static str {
        self.engines.own().name()
    }

    /// The name of the engine that holds a keyspace.
    pub fn engine_name_of(&self, keyspace: KeyspaceId) -> &'static str {
        self.engines.of(keyspace).name()
    }

    /// The data directory; `None` for a store that has none.
    pub fn path(&self) -> Option<&Path> {
        self.directory.as_ref().map(|directory| directory.path.as_path())
    }

    /// Figures of the log's recovery when the data directory was opened; `None` for a store that has no directory.
    pub fn recovery(&self) -> Option<&crate::Recovery> {
        self.journal.recovery()
    }

    /// Checkpoints and stops all background work.
    pub fn close(&self) -> Result<()> {
        self.close_bells();
        self.engines.all().iter().for_each(|engine| engine.give_up_merging());
        for thread in self.background.lock().drain(..) {
            let _ = thread.join();
        }
        let outcome = self.checkpoint();
        outcome.and(self.journal.close())
    }

    /// Waits for checkpoint, merge and reclaim to end; none begins while the returned guard lives.
    pub(crate) fn hold_background_work(&self) -> impl Sized {
        (self.checkpointer.running.lock(), self.merger.running.lock(), self.reclaimer.running.lock())
    }

    /// Stops background work from beginning again.
    fn close_bells(&self) {
        self.checkpointer.close();
        self.merger.close();
        self.reclaimer.close();
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close_bells();
    }
}
