//! Applies batches and makes checkpoints.

use crate::arrangement::Arrangement;
use crate::committed::Committed;
use crate::copy::Copy;
use crate::data_file::{DataFile, KEYSPACES_MAX};
use crate::free_pages;
use crate::growth::Growth;
use crate::memtable::Memtable;
use crate::room::{Room, Waiting};
use crate::view::MmapView;
use crate::writer::{Writer, Written};
use arc_swap::ArcSwap;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_store::{
    Added, CopyIntoImage, Effects, Effort, Engine, EngineKind, KeptForViews, KeyspaceId, KeyspaceStatistics, Lsn,
    Medium, Opening, Reclaimed, RecoveredLog, Result, Space, StorageError, Survival, View,
};
use bunko_versions::Views;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// The engine's name in `serverStatus` and the manifest.
pub const NAME: &str = "mmap";

/// With fewer free bytes on the disk, holes are punched only on request.
const FREE_BYTES_MIN: u64 = 64 << 20;
/// Maximum memory for memtables that have been written but are still in use by old views.
const KEPT_MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Shorter runs of free pages are given back only by `compact`: LMDB soon uses them again, and each hole adds an extent
/// to the file in the filesystem.
const RUN_PAGES_MIN: u64 = 16;

/// If the last commit freed at least this many bytes, another commit is made so that they can be given back.
const FREED_LAST_BYTES_MIN: u64 = 1 << 20;
/// Maximum number of keyspaces that may be added between two checkpoints.
const HANDLES_SPARE: usize = 1 << 14;

/// Options of the engine.
#[derive(Clone, Copy, Debug)]
pub struct MmapOptions {
    /// Address space of the map in bytes, which limits the size of the data file. If the system refuses it, half of it
    /// is tried, and so on.
    pub map_bytes: u64,
}

impl Default for MmapOptions {
    fn default() -> Self {
        Self { map_bytes: 1 << 40 }
    }
}

/// One data file for all keyspaces.
pub struct MmapEngine {
    file: Arc<DataFile>,
    state: Arc<ArcSwap<Arrangement>>,
    /// Lent to all readers of the latest state.
    latest: MmapView,
    /// Locked by threads that write to the data file or punch holes into it.
    writer: Mutex<Writer>,
    growth: Growth,
    room: Room,
    /// Exclusive upper bound of the LSNs in the sealed memtables.
    marked: AtomicU64,
    /// Bytes of all memtables.
    unflushed_bytes: AtomicU64,
    /// Number of LMDB handles in use.
    handles: AtomicUsize,
    /// Committed states that may still have views.
    pinned: Mutex<Vec<Weak<Committed>>>,
    /// Written memtables that a reader may still hold. Freeing a memtable takes tens of milliseconds, so readers must
    /// not free it.
    written: Mutex<Vec<Arc<Memtable>>>,
    counters: Mutex<Counters>,
}

/// Counters since the start.
#[derive(Clone, Copy, Default)]
struct Counters {
    checkpoints: u64,
    last_checkpoint_micros: u64,
    longest_checkpoint_micros: u64,
    written: Written,
    punched_bytes: u64,
}

/// The engine as an entry of a store's table.
pub fn kind(options: MmapOptions) -> EngineKind {
    EngineKind {
        name: NAME,
        survival: Survival::Durable,
        open: Arc::new(move |opening| Ok(MmapEngine::open(&opening, options)?)),
    }
}

impl MmapEngine {
    /// Opens the data file, or makes one if the engine is new.
    pub fn open(opening: &Opening<'_>, options: MmapOptions) -> Result<Arc<Self>> {
        let file = Arc::new(DataFile::open(opening, options.map_bytes)?);
        let committed = Arc::new(Committed::last(&file)?);
        if let Some(note) = opening.note {
            committed.check_note(note)?;
        }
        file.register_lmdb_map(committed.state_page)?;
        let room = Room::default();
        room.look(&committed, committed.meta.transaction)?;
        let state = Arrangement { active: Arc::default(), sealed: Vec::new(), committed: Arc::clone(&committed) };
        let state = Arc::new(ArcSwap::from_pointee(state));
        Ok(Arc::new(Self {
            latest: MmapView::Latest(Arc::clone(&state)),
            state,
            writer: Mutex::default(),
            file,
            growth: Growth::default(),
            room,
            marked: AtomicU64::new(0),
            unflushed_bytes: AtomicU64::new(0),
            handles: AtomicUsize::new(0),
            pinned: Mutex::new(vec![Arc::downgrade(&committed)]),
            written: Mutex::default(),
            counters: Mutex::default(),
        }))
    }

    /// Writes memtables, the oldest first, and publishes the written state to readers.
    fn write(&self, writer: &mut Writer, memtables: &[Arc<Memtable>], watermark: Lsn) -> Result<()> {
        let outcome = writer.write(&self.state.load().committed, memtables, watermark);
        self.handles.store(writer.handles(), Ordering::Relaxed);
        if outcome.is_err() {
            // Some of several transactions may have been committed. Readers still find all entries in the memtables
            // first, and the next attempt overwrites the committed ones without more disk.
            self.go_on_from_last(&[])?;
        }
        let written = outcome?;
        self.go_on_from_last(memtables)?;
        let total = &mut self.counters.lock().written;
        total.entries += written.entries;
        total.bytes += written.bytes;
        total.transactions += written.transactions;
        Ok(())
    }

    /// Publishes the last committed state, which contains those memtables.
    fn go_on_from_last(&self, memtables: &[Arc<Memtable>]) -> Result<()> {
        let committed = Arc::new(Committed::last(&self.file)?);
        let mut pinned = self.pinned.lock();
        pinned.retain(|committed| committed.strong_count() > 0);
        pinned.push(Arc::downgrade(&committed));
        drop(pinned);
        self.state.rcu(|state| state.written(memtables, &committed));
        self.room.look(&committed, self.oldest_pinned(committed.meta.transaction))
    }

    /// Transaction number of the oldest committed state that may have readers.
    fn oldest_pinned(&self, last: u64) -> u64 {
        let pinned = self.pinned.lock();
        pinned.iter().filter_map(Weak::upgrade).map(|committed| committed.meta.transaction).fold(last, u64::min)
    }

    /// Changes that wait for the next checkpoint.
    fn waiting(&self) -> Waiting {
        let changes = self.state.load().memtables().map(|memtable| memtable.changes()).sum();
        Waiting { bytes: self.unflushed_bytes(), changes }
    }

    /// Gives free pages back to the filesystem.
    fn punch(&self, writer: &mut Writer, effort: Effort) -> Result<Reclaimed> {
        let committed = Arc::clone(&self.state.load().committed);
        let page_bytes = self.file.page_bytes as u64;
        let free_bytes = free_pages::count(&committed)? * page_bytes;
        let held_bytes = (committed.meta.pages * page_bytes).saturating_sub(free_bytes);
        let allocated_bytes = free_pages::allocated_bytes(&self.file)?;
        let is_worth_while =
            free_bytes >= FREE_BYTES_MIN && allocated_bytes > 2 * held_bytes + self.ahead_bytes(&committed);
        let is_asked_for = matches!(effort, Effort::All | Effort::Room);
        if !is_asked_for && !is_worth_while {
            return Ok(Reclaimed::Nothing);
        }
        let run_pages_min = if is_asked_for { 1 } else { RUN_PAGES_MIN };
        let oldest = self.oldest_pinned(committed.meta.transaction);
        let mut punched_bytes = free_pages::punch(&committed, oldest, run_pages_min)?;
        let oldest_is_last = oldest == committed.meta.transaction;
        if oldest_is_last && free_pages::count_since(&committed, oldest)? * page_bytes >= FREED_LAST_BYTES_MIN {
            // The commit before the last one still uses the pages that the last commit freed, and a torn meta page
            // would lead back to it. After another commit it is out of reach.
            drop(committed);
            let watermark = self.state.load().committed.watermark;
            self.write(writer, &[], watermark)?;
            let committed = Arc::clone(&self.state.load().committed);
            let oldest = self.oldest_pinned(committed.meta.transaction);
            punched_bytes += free_pages::punch(&committed, oldest, run_pages_min)?;
        }
        self.counters.lock().punched_bytes += punched_bytes;
        Ok(if punched_bytes > 0 { Reclaimed::Some } else { Reclaimed::Nothing })
    }

    /// Bytes at the end of the file that have never been used for a page.
    fn ahead_bytes(&self, committed: &Committed) -> u64 {
        let used_bytes = committed.meta.pages * self.file.page_bytes as u64;
        self.file.length_bytes().unwrap_or(0).saturating_sub(used_bytes)
    }
}

impl Engine for MmapEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check_settings(&self, settings: DocumentRef<'_>) -> Result<(), String> {
        match settings.iter().next() {
            Some(setting) => {
                Err(format!("'{}' is not a setting of storage engine '{NAME}', which has none", setting.name))
            }
            None => Ok(()),
        }
    }

    /// Refuses changes that a checkpoint could not write, before they are kept.
    ///
    /// # Errors
    /// [`StorageError::MapFull`], and [`StorageError::Io`] once [`KEYSPACES_MAX`] is near.
    fn admit(&self, growth_bytes: usize) -> Result<()> {
        let (map_bytes, page_bytes) = (self.file.map_bytes, self.file.page_bytes as u64);
        if !self.room.admits(map_bytes, page_bytes, self.waiting(), growth_bytes as u64) {
            return Err(StorageError::MapFull { path: self.file.path.clone(), map_bytes });
        }
        let handles = self.handles.load(Ordering::Relaxed);
        if handles < KEYSPACES_MAX as usize - HANDLES_SPARE {
            return Ok(());
        }
        let source = std::io::Error::other(format!(
            "{handles} collections and indexes were written to since the start, and {KEYSPACES_MAX} is the most that the \
             storage engine '{NAME}' can hold open; restart"
        ));
        Err(StorageError::Io { path: self.file.path.clone(), source })
    }

    fn checkpoint_disk_bytes(&self, added: Added) -> u64 {
        self.room.disk_bytes(self.file.page_bytes as u64, self.waiting(), added)
    }

    fn apply(&self, lsn: Lsn, effects: Effects<'_>, views: Views<'_>) -> Result<()> {
        let growth = self.state.load().active.apply(lsn, effects, views);
        self.unflushed_bytes.fetch_add(growth as u64, Ordering::Relaxed);
        Ok(())
    }

    fn add_to_image(&self, image: &Path) -> Result<Option<CopyIntoImage>> {
        let committed = Arc::clone(&self.state.load().committed);
        Copy::begin(committed, image).map(|copy| Some(copy.rest()))
    }

    fn view(&self, before: Lsn) -> Box<dyn View> {
        Box::new(MmapView::before(before, &self.state))
    }

    fn latest(&self) -> &dyn View {
        &self.latest
    }

    fn begin_checkpoint(&self, watermark: Lsn) -> Result<()> {
        self.marked.store(watermark.0, Ordering::Relaxed);
        if !self.state.load().active.is_empty() {
            self.state.rcu(|state| state.sealed());
        }
        Ok(())
    }

    fn finish_checkpoint(&self, _oldest_view: Lsn) -> Result<DocumentBuf> {
        let started = self.file.clock.now();
        let mut writer = self.writer.lock();
        let state = self.state.load_full();
        // There are several sealed memtables if an earlier checkpoint failed.
        let memtables: Vec<_> = state.sealed.iter().rev().cloned().collect();
        if !memtables.is_empty() {
            let bytes = memtables.iter().map(|memtable| memtable.bytes()).sum::<u64>();
            // Leaves are half full at worst, so entries take at most twice their bytes.
            let needed_bytes = state.committed.meta.pages * self.file.page_bytes as u64 + 2 * bytes;
            self.growth.reserve(&self.file, needed_bytes)?;
            self.write(&mut writer, &memtables, Lsn(self.marked.load(Ordering::Relaxed)))?;
            self.unflushed_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.written.lock().extend(memtables);
            let micros = self.file.clock.since(started).as_micros() as u64;
            let counters = &mut *self.counters.lock();
            counters.checkpoints += 1;
            counters.last_checkpoint_micros = micros;
            counters.longest_checkpoint_micros = counters.longest_checkpoint_micros.max(micros);
        }
        self.state.load().committed.note()
    }

    fn files_end(&self) -> Lsn {
        self.state.load().committed.watermark
    }

    fn check_log(&self, log: &RecoveredLog) -> Result<()> {
        let committed = Arc::clone(&self.state.load().committed);
        let is_newer = committed.watermark > log.end() || log.is_empty() && !committed.trees.is_empty();
        if is_newer {
            let found = format!("holds what is newer than the log, which ends at position {}", log.end().0);
            return Err(self.file.corrupt(0, found));
        }
        Ok(())
    }

    fn release(&self) {
        self.written.lock().retain(|memtable| Arc::strong_count(memtable) > 1);
    }

    fn reclaim(&self, _oldest_view: Lsn, effort: Effort) -> Result<Reclaimed> {
        match effort {
            Effort::All | Effort::Room => self.punch(&mut self.writer.lock(), effort),
            // If a checkpoint is writing, the next call is soon enough.
            Effort::Usual | Effort::Now => match self.writer.try_lock() {
                Some(mut writer) => self.punch(&mut writer, effort),
                None => Ok(Reclaimed::Nothing),
            },
        }
    }

    /// Pages freed since the oldest commit that has readers, and memtables that only views hold.
    fn kept_for_views(&self, _oldest_view: Lsn) -> Vec<KeptForViews> {
        let read = |memtable: &&Arc<Memtable>| Arc::strong_count(memtable) > 1;
        let memory_bytes = self.written.lock().iter().filter(read).map(|memtable| memtable.bytes()).sum();
        let memory = KeptForViews { place: Medium::Memory, bytes: memory_bytes, bytes_max: KEPT_MEMORY_BYTES_MAX };
        let committed = Arc::clone(&self.state.load().committed);
        let (last, page_bytes) = (committed.meta.transaction, self.file.page_bytes as u64);
        let oldest = self.oldest_pinned(last);
        // Pages that the last commit freed do not count: they are kept for the next start.
        let pages = if oldest < last { free_pages::count_since(&committed, oldest + 1).unwrap_or(0) } else { 0 };
        let free_pages = free_pages::count(&committed).unwrap_or(0);
        let used_bytes = committed.meta.pages.saturating_sub(free_pages) * page_bytes;
        vec![memory, KeptForViews::on_disk(pages * page_bytes, used_bytes)]
    }

    fn unflushed_bytes(&self) -> u64 {
        self.unflushed_bytes.load(Ordering::Relaxed)
    }

    /// Pages of the keyspaces' trees. Free pages belong to no keyspace; `serverStatus` shows them.
    fn space(&self, keyspaces: &[(KeyspaceId, KeyspaceStatistics)]) -> Vec<Space> {
        let state = self.state.load();
        let pages = |keyspace: &KeyspaceId| state.committed.trees.get(keyspace).map_or(0, crate::tree::Tree::pages);
        let page_bytes = self.file.page_bytes as u64;
        // Nothing is compressed, so data that is not in pages yet is in the log with its full size.
        let space = |(keyspace, holds): &(KeyspaceId, KeyspaceStatistics)| Space {
            used_bytes: (pages(keyspace) * page_bytes).max(holds.bytes),
            free_bytes: 0,
        };
        keyspaces.iter().map(space).collect()
    }

    /// Bytes of the file on disk, without its holes.
    fn size_bytes(&self) -> u64 {
        free_pages::allocated_bytes(&self.file).unwrap_or(0)
    }

    fn status(&self) -> DocumentBuf {
        let committed = Arc::clone(&self.state.load().committed);
        let page_bytes = self.file.page_bytes as u64;
        let free_bytes = free_pages::count(&committed).unwrap_or(0) * page_bytes;
        let counters = *self.counters.lock();
        let gauge = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as i64;
        DocumentBuf::new()
            .with("fileBytes", self.file.length_bytes().unwrap_or(0) as i64)
            .with("allocatedBytes", self.size_bytes() as i64)
            .with("usedBytes", (committed.meta.pages * page_bytes).saturating_sub(free_bytes) as i64)
            .with("freePagesBytes", free_bytes as i64)
            .with("punchedBytes", counters.punched_bytes as i64)
            .with("pageBytes", page_bytes as i64)
            .with("mapBytes", self.file.map_bytes as i64)
            .with("keyspaces", committed.trees.len() as i64)
            .with("growthSteps", gauge(&self.growth.steps))
            .with("lastGrowthMicros", gauge(&self.growth.last_micros))
            .with("longestGrowthMicros", gauge(&self.growth.longest_micros))
            .with("checkpoints", counters.checkpoints as i64)
            .with("lastCheckpointMicros", counters.last_checkpoint_micros as i64)
            .with("longestCheckpointMicros", counters.longest_checkpoint_micros as i64)
            .with("entriesWritten", counters.written.entries as i64)
            .with("bytesWritten", counters.written.bytes as i64)
            .with("transactions", counters.written.transactions as i64)
            .with("unflushedBytes", self.unflushed_bytes() as i64)
            .with("readers", self.pinned.lock().iter().filter(|committed| committed.strong_count() > 0).count() as i64)
    }
}
