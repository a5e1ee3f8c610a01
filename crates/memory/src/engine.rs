//! Applies batches, enforces the memory limit, and frees memory.

use crate::cost::WAITING_BYTES;
use crate::document::Document;
use crate::garbage::{Begins, Entry, Garbage, Waiting};
use crate::index::Index;
use crate::key::{IndexKey, PackedRecordId};
use crate::keyspaces::Keyspaces;
use crate::records::Records;
use crate::size::Size;
use crate::view::MemoryView;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_store::{
    Effect, Effects, Effort, Engine, EngineKind, KeptForViews, KeyspaceId, KeyspaceStatistics, Lsn, Medium, Presence,
    Reclaimed, RecordId, Result, Space, StorageError, Survival, View,
};
use bunko_versions::Views;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The engine's name in `serverStatus` and `create`.
pub const NAME: &str = "memory";

/// Estimated memory of entries per byte in the batch: index keys of a few bytes cost about ten times as much as in the
/// batch. The larger a batch, the larger its share of documents, which cost less.
const OVERHEAD_FACTOR: u64 = 10;
const OVERHEAD_BYTES_MAX: u64 = 8 << 20;
/// No more than this part (1/n) of the memory limit should be kept for views alone.
const KEPT_PART: u64 = 4;
/// Number of records and keys that one step of [`Engine::reclaim`] forgets or frees: some tens of milliseconds.
const RECLAIM_ENTRIES: usize = 1 << 16;

/// Options of the engine.
#[derive(Clone, Copy, Debug)]
pub struct MemoryOptions {
    /// Maximum memory of documents, keys and their overhead, in bytes (`storage.inMemory.engineConfig.inMemorySizeGB`).
    pub limit_bytes: u64,
}

/// Documents and indexes in memory.
pub struct MemoryEngine {
    keyspaces: Arc<Keyspaces>,
    /// Lent to all readers of the latest state.
    latest: MemoryView,
    limit_bytes: u64,
    used_bytes: AtomicI64,
    garbage: Garbage,
    /// Held shared from the time an entry leaves the garbage queue until its memory is accounted for.
    forgetting: RwLock<()>,
    dropped: Mutex<Dropped>,
}

/// Dropped keyspaces that have not been freed.
#[derive(Default)]
struct Dropped {
    /// Keyspaces that older views may see, with the LSN of the drop.
    seen: Vec<(u64, KeyspaceId)>,
    /// Keyspaces that no view sees. They are freed step by step, because a large one takes seconds.
    unseen: Vec<Unseen>,
}

enum Unseen {
    Records(Arc<Records>),
    Index(Arc<Index>),
}

/// The engine as an entry of a store's table. It uses neither directory, nor log, nor notes.
pub fn kind(options: MemoryOptions) -> EngineKind {
    EngineKind {
        name: NAME,
        survival: Survival::Volatile,
        open: Arc::new(move |_| Ok(Arc::new(MemoryEngine::new(options)))),
    }
}

impl MemoryEngine {
    /// An empty engine.
    pub fn new(options: MemoryOptions) -> Self {
        let keyspaces = Arc::default();
        Self {
            latest: MemoryView::latest(Arc::clone(&keyspaces)),
            keyspaces,
            limit_bytes: options.limit_bytes,
            used_bytes: AtomicI64::new(0),
            garbage: Garbage::default(),
            forgetting: RwLock::default(),
            dropped: Mutex::default(),
        }
    }

    fn used_bytes(&self) -> u64 {
        u64::try_from(self.used_bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Puts an entry that begins to wait into the garbage queue. Returns the memory of the queue's entry.
    fn wait(&self, begins: Begins, waiting: impl FnOnce() -> Waiting) -> i64 {
        if begins == Begins::Nothing {
            return 0;
        }
        self.garbage.push(waiting());
        WAITING_BYTES
    }

    fn put_key(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        lsn: u64,
        target: Option<PackedRecordId>,
        views: Views<'_>,
    ) -> i64 {
        let put = |index: &Index| index.put(IndexKey::from(key), lsn, target, views);
        let (growth, begins) = self.keyspaces.indexes.begun(keyspace, put);
        growth + self.wait(begins, || Waiting { lsn, keyspace, entry: Entry::Key(IndexKey::from(key)) })
    }

    fn put_record(
        &self,
        keyspace: KeyspaceId,
        record: RecordId,
        lsn: u64,
        document: Option<Document>,
        views: Views<'_>,
    ) -> i64 {
        let put = |records: &Records| records.put(record, lsn, document, views);
        let (growth, begins) = self.keyspaces.records.begun(keyspace, put);
        growth + self.wait(begins, || Waiting { lsn, keyspace, entry: Entry::Record(record) })
    }

    /// Takes up to `entries` entries from the garbage queue and forgets their versions that no view sees. Returns the
    /// number of entries taken.
    fn forget(&self, oldest_view: u64, entries: usize) -> usize {
        let forget_next = || {
            let _forgetting = self.forgetting.read();
            self.forget_next(oldest_view)
        };
        (0..entries).take_while(|_| forget_next()).count()
    }

    /// Forgets all versions that no view sees, including versions of entries that other threads have taken from the
    /// queue.
    fn forget_all(&self, oldest_view: u64) {
        while self.forget(oldest_view, RECLAIM_ENTRIES) > 0 {}
        let _alone = self.forgetting.write();
        while self.forget_next(oldest_view) {}
    }

    /// Takes an entry from the garbage queue and forgets its versions that no view sees; false if no entry can go.
    fn forget_next(&self, oldest_view: u64) -> bool {
        let Some(waiting) = self.garbage.pop(oldest_view) else { return false };
        let (keyspaces, keyspace) = (&self.keyspaces, waiting.keyspace);
        let outcome = match &waiting.entry {
            Entry::Record(record) => keyspaces.records.with(keyspace, |records| records.forget(*record, oldest_view)),
            Entry::Key(key) => keyspaces.indexes.with(keyspace, |index| index.forget(key, oldest_view)),
        };
        let (freed, waits_for) = outcome.unwrap_or((0, None));
        let mut growth = freed - WAITING_BYTES;
        if let Some(lsn) = waits_for {
            self.garbage.push(Waiting { lsn, ..waiting });
            growth += WAITING_BYTES;
        }
        self.used_bytes.fetch_add(growth, Ordering::Relaxed);
        true
    }

    /// Unlinks dropped keyspaces that no view sees any more.
    fn unlink(&self, oldest_view: u64) {
        let mut dropped = self.dropped.lock();
        let (unseen, seen): (Vec<_>, _) = dropped.seen.drain(..).partition(|(lsn, _)| *lsn < oldest_view);
        dropped.seen = seen;
        for (_, keyspace) in unseen {
            dropped.unseen.extend(self.keyspaces.records.take(keyspace).map(Unseen::Records));
            dropped.unseen.extend(self.keyspaces.indexes.take(keyspace).map(Unseen::Index));
        }
    }

    /// Frees up to about `entries` records or keys of dropped keyspaces. Returns the number freed.
    fn free(&self, entries: usize) -> usize {
        let mut freed = 0;
        while freed < entries {
            // The lock is not held while the keyspace is freed, so that other drops need not wait.
            let Some(keyspace) = self.dropped.lock().unseen.pop() else { break };
            let removed = keyspace.remove_first(entries - freed);
            freed += removed.max(1);
            if removed == 0 {
                self.used_bytes.fetch_sub(keyspace.size().bytes(), Ordering::Relaxed);
            } else {
                self.dropped.lock().unseen.push(keyspace);
            }
        }
        freed
    }
}

impl Unseen {
    fn size(&self) -> &Size {
        match self {
            Self::Records(records) => &records.size,
            Self::Index(index) => &index.size,
        }
    }

    fn remove_first(&self, count: usize) -> usize {
        match self {
            Self::Records(records) => records.remove_first(count),
            Self::Index(index) => index.keys.remove_first(count),
        }
    }
}

impl Engine for MemoryEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check_settings(&self, settings: DocumentRef<'_>) -> Result<(), String> {
        match settings.iter().next() {
            Some(field) => Err(format!("the storage engine '{NAME}' has no setting '{}'", field.name)),
            None => Ok(()),
        }
    }

    /// Compares the estimate with the limit. Batches that other threads are applying at this instant are not counted
    /// yet.
    fn admit(&self, growth_bytes: usize) -> Result<()> {
        let growth_bytes = growth_bytes as u64;
        let used_bytes = self.used_bytes();
        let overhead_bytes = (OVERHEAD_FACTOR * growth_bytes).min(OVERHEAD_BYTES_MAX);
        if growth_bytes > 0 && used_bytes + growth_bytes + overhead_bytes > self.limit_bytes {
            return Err(StorageError::OutOfMemory { used_bytes, limit_bytes: self.limit_bytes });
        }
        Ok(())
    }

    fn apply(&self, lsn: Lsn, effects: Effects<'_>, views: Views<'_>) -> Result<()> {
        let lsn = lsn.0;
        let mut growth = 0;
        let mut superseded = 0;
        for effect in effects {
            growth += match effect {
                Effect::PutRecord { keyspace, record, location, document, replaced } => {
                    superseded += usize::from(replaced.is_some());
                    self.put_record(keyspace, record, lsn, Some(Document::new(document, location)), views)
                }
                Effect::DeleteRecord { keyspace, record, .. } => {
                    superseded += 1;
                    self.put_record(keyspace, record, lsn, None, views)
                }
                Effect::PutKey { keyspace, key, record, presence }
                | Effect::PutPrimaryKey {
                    keyspace,
                    key,
                    record,
                    presence: presence @ (Presence::New | Presence::Taken),
                    ..
                } => {
                    superseded += usize::from(presence == Presence::Taken);
                    self.put_key(keyspace, key, lsn, Some(PackedRecordId::from(record)), views)
                }
                Effect::DeleteKey { keyspace, key } => {
                    superseded += 1;
                    self.put_key(keyspace, key, lsn, None, views)
                }
                // The key leads to the record already, and the record's own entry has the new document, so nothing is
                // put.
                Effect::PutPrimaryKey { presence: Presence::Moved, .. } | Effect::CreateKeyspace { .. } => 0,
                Effect::AdoptFile { .. } | Effect::PlaceRecord { .. } => unreachable!("this engine stages nothing"),
                Effect::DropKeyspace { keyspace } => {
                    self.keyspaces.records.drop_at(keyspace, lsn);
                    self.keyspaces.indexes.drop_at(keyspace, lsn);
                    self.dropped.lock().seen.push((lsn, keyspace));
                    0
                }
            };
        }
        self.used_bytes.fetch_add(growth, Ordering::Relaxed);
        // Forgets two entries for each superseded version, so that invisible versions are gone within one or two more
        // writes.
        if superseded > 0 {
            self.forget(views.oldest(), 2 * superseded);
        }
        Ok(())
    }

    fn view(&self, before: Lsn) -> Box<dyn View> {
        Box::new(MemoryView::before(before.0, Arc::clone(&self.keyspaces)))
    }

    fn latest(&self) -> &dyn View {
        &self.latest
    }

    fn begin_checkpoint(&self, _watermark: Lsn) -> Result<()> {
        Ok(())
    }

    fn finish_checkpoint(&self, _oldest_view: Lsn) -> Result<DocumentBuf> {
        Ok(DocumentBuf::new())
    }

    fn reclaim(&self, oldest_view: Lsn, _effort: Effort) -> Result<Reclaimed> {
        self.unlink(oldest_view.0);
        let done = self.forget(oldest_view.0, RECLAIM_ENTRIES) + self.free(RECLAIM_ENTRIES);
        Ok(if done == 0 { Reclaimed::Nothing } else { Reclaimed::Some })
    }

    fn kept_for_views(&self, oldest_view: Lsn) -> Vec<KeptForViews> {
        self.unlink(oldest_view.0);
        // Versions that no view sees do not count as kept for views, so they are forgotten first.
        self.forget_all(oldest_view.0);
        let bytes = self.keyspaces.records.kept_bytes() + self.keyspaces.indexes.kept_bytes();
        let bytes = u64::try_from(bytes).unwrap_or(0);
        vec![KeptForViews { place: Medium::Memory, bytes, bytes_max: self.limit_bytes / KEPT_PART }]
    }

    fn unflushed_bytes(&self) -> u64 {
        0
    }

    fn space(&self, keyspaces: &[(KeyspaceId, KeyspaceStatistics)]) -> Vec<Space> {
        let used_bytes = |keyspace| u64::try_from(self.keyspaces.bytes(keyspace)).unwrap_or(0);
        keyspaces.iter().map(|(keyspace, _)| Space { used_bytes: used_bytes(*keyspace), free_bytes: 0 }).collect()
    }

    fn size_bytes(&self) -> u64 {
        self.used_bytes()
    }

    fn status(&self) -> DocumentBuf {
        let (record_stores, documents) = self.keyspaces.records.count(Records::record_count);
        let (indexes, keys) = self.keyspaces.indexes.count(|index| index.keys.key_count());
        let dropped = {
            let dropped = self.dropped.lock();
            dropped.seen.len() + dropped.unseen.len()
        };
        DocumentBuf::new()
            .with("limitBytes", self.limit_bytes as i64)
            .with("usedBytes", self.used_bytes() as i64)
            .with("recordStores", record_stores as i64)
            .with("documents", documents as i64)
            .with("indexes", indexes as i64)
            .with("keys", keys as i64)
            .with("entriesWithOldVersions", self.garbage.len() as i64)
            .with("droppedWaiting", dropped as i64)
    }
}
