//! Applying batches and checkpointing.

use crate::accounts::{Accounts, State as AccountsState};
use crate::backlog::Backlog;
use crate::compression::Compression;
use crate::documents::Documents;
use crate::dropped::WithoutDropped;
use crate::extents::Registry;
use crate::key;
use crate::key_value::KeyValue;
use crate::memtable::{Keep, Memtable};
use crate::reclaim::Mover;
use crate::row_cache::RowCache;
use crate::space;
use crate::state::State;
use crate::status::Status;
use crate::tree_files::TreeFiles;
use crate::view::LsmView;
use arc_swap::ArcSwap;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_store::{
    Effect, Effects, Effort, Engine, EngineKind, KeyspaceId, Log, Lsn, Opening, Presence, Reclaimed, RecordId, Result,
    Space, Staged, StorageError, Survival, View,
};
use lsm_tree::compaction::Leveled;
use lsm_tree::config::{CompressionPolicy, HashRatioPolicy, PinningPolicy};
use lsm_tree::{AbstractTree, AnyTree, Cache, CompressionType, SeqNo, SequenceNumberCounter};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The engine's name in `serverStatus` and the manifest.
pub const NAME: &str = "lsm";

/// Tables of the first level before they are merged into the next.
const L0_TABLES_MAX: u8 = 16;
/// Most compactions in a row: each moves one level on, seven is the tree's depth.
const COMPACTION_ROUNDS_MAX: usize = 7;

/// Entries that the tables may hold for nothing, beside as many as live ones.
const DEAD_ENTRIES_MAX: u64 = 500_000;
/// Size of a table that a rewrite of all makes, in bytes.
const TABLE_BYTES: u64 = 64 << 20;

/// How the engine behaves.
#[derive(Clone, Copy, Debug)]
pub struct LsmOptions {
    /// Cache for blocks of the trees and of extents, in bytes (`storage.wiredTiger.engineConfig.cacheSizeGB`). What is
    /// still in the log is cached by the operating system.
    pub cache_bytes: u64,
    /// For documents of collections that do not choose.
    pub compression: Compression,
}

/// The part of the cache that is for documents; the rest is for the trees.
const DOCUMENTS_PART: f64 = 0.75;

/// One tree for all keyspaces, so that thousands of collections cost one memtable and one flush.
pub struct LsmEngine {
    tree: AnyTree,
    files: Arc<TreeFiles>,
    options: LsmOptions,
    documents: Arc<Documents>,
    accounts: Arc<Accounts>,
    mover: Mover,
    state: Arc<ArcSwap<State>>,
    backlog: Arc<Backlog>,
    dropped: Mutex<Dropped>,
    /// Flushed memtables that a reader may still hold. Freeing one takes tens of milliseconds: not on a reader's time.
    flushed: Mutex<Vec<Arc<Memtable>>>,
    rows: Arc<RowCache>,
    /// Lent to all who read the latest state.
    latest: LsmView,
    /// All that the tables hold is below.
    marked: AtomicU64,
    /// The accounts as of the mark.
    marked_accounts: Mutex<AccountsState>,
    flushes: AtomicU64,
    compactions: AtomicU64,
}

/// Dropped keyspaces, whose tables may go only once the drop is durable and no view is older.
#[derive(Default)]
struct Dropped {
    since_mark: Vec<(KeyspaceId, Lsn)>,
    before_mark: Vec<(KeyspaceId, Lsn)>,
}

/// The engine as a store's table lists it.
pub fn kind(options: LsmOptions) -> EngineKind {
    EngineKind {
        name: NAME,
        survival: Survival::Durable,
        open: Arc::new(move |opening| Ok(LsmEngine::open(opening, options)?)),
    }
}

impl LsmEngine {
    /// Opens the trees and the extents below the data directory.
    fn open(opening: Opening<'_>, options: LsmOptions) -> Result<Arc<Self>> {
        let files = Arc::new(TreeFiles::new(opening.directory.join("trees")));
        let note = opening.note.unwrap_or(DocumentRef::EMPTY);
        let malformed = |what: &str| StorageError::Corrupt {
            file: opening.directory.join("manifest.bson"),
            offset_bytes: 0,
            found: format!("malformed '{what}' of the engine {NAME}"),
        };
        if opening.note.is_some() && !files.current().exists() {
            return Err(StorageError::Corrupt {
                file: files.current(),
                offset_bytes: 0,
                found: "the engine's trees are missing, though the manifest names them".into(),
            });
        }
        let documents_bytes = (options.cache_bytes as f64 * DOCUMENTS_PART) as u64;
        let accounts = Arc::new(Accounts::restore(note).ok_or_else(|| malformed("accounts"))?);
        let backlog = Arc::new(Backlog::default());
        let tree = open_tree(&files, options.cache_bytes - documents_bytes, WithoutDropped::new(&accounts, &backlog))?;
        let extents_path = opening.directory.join("extents");
        let registry = Registry::open(&extents_path, note.get("extents").and_then(ValueRef::as_array))?;
        let next_extent = match note.get("nextExtent") {
            None => 0,
            Some(ValueRef::Int64(next)) => u64::try_from(next).map_err(|_| malformed("nextExtent"))?,
            Some(_) => return Err(malformed("nextExtent")),
        };
        let documents = Arc::new(Documents::new(opening.log, registry, documents_bytes));
        let mover =
            Mover::new(extents_path, Arc::clone(&documents), Arc::clone(&accounts), options.compression, next_extent);
        let state = Arc::new(ArcSwap::from_pointee(State::new(&tree, &files)));
        let rows = Arc::new(RowCache::new());
        Ok(Arc::new(Self {
            latest: LsmView::latest(tree.clone(), Arc::clone(&state), Arc::clone(&documents), Arc::clone(&rows)),
            state,
            tree,
            files,
            options,
            documents,
            accounts,
            mover,
            backlog,
            dropped: Mutex::default(),
            flushed: Mutex::default(),
            rows,
            marked: AtomicU64::new(0),
            marked_accounts: Mutex::default(),
            flushes: AtomicU64::new(0),
            compactions: AtomicU64::new(0),
        }))
    }
}

fn open_tree(files: &TreeFiles, cache_bytes: u64, filter: Arc<WithoutDropped>) -> Result<AnyTree> {
    files.check_version()?;
    // Versions of the tree count for themselves, below any LSN: a snapshot always reads the newest version, in which
    // every entry has the LSN of its batch.
    lsm_tree::Config::new(&files.path, SequenceNumberCounter::default(), SequenceNumberCounter::default())
        .use_cache(Arc::new(Cache::with_capacity_bytes(cache_bytes)))
        .data_block_compression_policy(CompressionPolicy::new([CompressionType::None, CompressionType::Lz4]))
        // Point reads find their restart interval by hash instead of a search.
        .data_block_hash_ratio_policy(HashRatioPolicy::all(1.0))
        .index_block_pinning_policy(PinningPolicy::all(true))
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .with_compaction_filter_factory(Some(filter))
        .open()
        .map_err(|error| files.error(error))
}

impl LsmEngine {
    fn view_before(&self, lsn: Lsn) -> LsmView {
        LsmView::before(lsn, self.tree.clone(), &self.state, Arc::clone(&self.documents))
    }

    /// The tree forgets versions below the threshold that have a successor, however new that is. So only when no open
    /// view is older than all that the tables hold may anything be forgotten at all.
    fn forgettable(&self, oldest_view: Lsn) -> SeqNo {
        let marked = self.marked.load(Ordering::Relaxed);
        if oldest_view.0 >= marked { marked } else { 0 }
    }
}

impl LsmEngine {
    fn rewrite_tables(&self, threshold: SeqNo) -> Result<()> {
        self.tree.major_compact(TABLE_BYTES, threshold).map_err(|error| self.files.error(error))?;
        self.compactions.fetch_add(1, Ordering::Relaxed);
        self.state.rcu(|state| state.compacted(&self.tree));
        Ok(())
    }
}

impl Engine for LsmEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check_settings(&self, settings: DocumentRef<'_>) -> Result<(), String> {
        let is_known = |name: &str| ["blockCompressor", "compressionLevel"].contains(&name);
        if let Some(unknown) = settings.iter().find(|element| !is_known(element.name)) {
            return Err(format!("the storage engine {NAME} has no setting '{}'", unknown.name));
        }
        Compression::from_settings(settings).map(drop)
    }

    fn apply(&self, lsn: Lsn, effects: Effects<'_>, oldest_view: Lsn) -> Result<()> {
        // An extent is there before anything is said of it: what is said of a segment that is nowhere is forgotten.
        for effect in effects.clone() {
            let Effect::AdoptFile { number, .. } = effect else { break };
            self.mover.adopt(number)?;
        }
        self.accounts.apply(lsn, effects.clone());
        let state = self.state.load();
        let put =
            |keyspace, key: &[u8], value: Option<&[u8]>| state.active.put(keyspace, key, lsn.0, value, oldest_view.0);
        let mut bytes = 0;
        for effect in effects {
            bytes = match effect {
                Effect::PutRecord { keyspace, record, location, .. } => {
                    put(keyspace, &record.0.to_be_bytes(), Some(&location.encode()))
                }
                Effect::PlaceRecord { keyspace, record, location } => {
                    put(keyspace, &record.0.to_be_bytes(), Some(&location.encode()))
                }
                Effect::DeleteRecord { keyspace, record, .. } => put(keyspace, &record.0.to_be_bytes(), None),
                Effect::PutKey { keyspace, key, record } => {
                    KeyValue { record, location: None }.encode(|value| put(keyspace, key, Some(value)))
                }
                Effect::PutPrimaryKey { keyspace, key, record, location, presence } => {
                    let value = KeyValue { record, location: Some(location) };
                    let bytes = value.encode(|value| put(keyspace, key, Some(value)));
                    // What was not there is not remembered.
                    if presence == Presence::Moved {
                        self.rows.replace(keyspace, key, (record, location));
                    }
                    bytes
                }
                Effect::DeleteKey { keyspace, key } => {
                    let bytes = put(keyspace, key, None);
                    self.rows.forget(keyspace, key);
                    bytes
                }
                Effect::CreateKeyspace { .. } | Effect::AdoptFile { .. } => bytes,
                Effect::DropKeyspace { keyspace } => {
                    self.dropped.lock().since_mark.push((keyspace, lsn));
                    bytes
                }
            };
        }
        self.backlog.note_unflushed(bytes);
        Ok(())
    }

    fn stage(
        &self,
        keyspace: KeyspaceId,
        documents: &mut dyn Iterator<Item = (RecordId, &[u8])>,
    ) -> Result<Option<Staged>> {
        self.mover.stage(keyspace, documents)
    }

    fn view(&self, before: Lsn) -> Box<dyn View> {
        Box::new(self.view_before(before))
    }

    fn latest(&self) -> &dyn View {
        &self.latest
    }

    fn begin_checkpoint(&self, watermark: Lsn) -> Result<()> {
        self.marked.store(watermark.0, Ordering::Relaxed);
        *self.marked_accounts.lock() = self.accounts.copy();
        self.backlog.note_sealed(self.state.load().active.bytes());
        self.state.rcu(|state| state.sealed());
        let mut dropped = self.dropped.lock();
        let marked = std::mem::take(&mut dropped.since_mark);
        dropped.before_mark.extend(marked);
        Ok(())
    }

    fn finish_checkpoint(&self, oldest_view: Lsn) -> Result<DocumentBuf> {
        let io = |error| self.files.error(error);
        let threshold = self.forgettable(oldest_view);
        let keep = if threshold == 0 { Keep::AllVersions } else { Keep::Newest };
        // More than one where an earlier flush failed; the oldest first, as each hides what was flushed before it.
        for memtable in self.state.load_full().sealed.iter().rev() {
            let mut tables = Vec::new();
            let mut work = self.backlog.begin(Some(memtable.keys()));
            for part in memtable.parts(keep) {
                let paced = part.inspect(|_| work.did(1));
                let flushed = self.tree.flush_to_tables(paced.map(Ok)).map_err(io)?;
                tables.extend(flushed.into_iter().flat_map(|(tables, _no_blobs)| tables));
            }
            if !tables.is_empty() {
                self.tree.register_tables(&tables, None, None, &[], threshold).map_err(io)?;
            }
            self.flushes.fetch_add(1, Ordering::Relaxed);
            self.flushed.lock().push(Arc::clone(memtable));
            self.state.rcu(|state| state.flushed(memtable, &self.tree));
        }
        // Tables that hold other keyspaces too are left to compaction.
        let is_seen = |drop: &(KeyspaceId, Lsn)| drop.1 < oldest_view;
        let mut dropped: Vec<KeyspaceId> = {
            let dropped = self.dropped.lock();
            dropped.before_mark.iter().filter(|drop| is_seen(drop)).map(|(keyspace, _)| *keyspace).collect()
        };
        dropped.sort_unstable();
        // Neighbours go together: each range costs the tree a sync.
        for neighbours in dropped.chunk_by(|one, next| one.0 + 1 == next.0) {
            self.tree.drop_range(key::all_of(neighbours)).map_err(io)?;
        }
        if !dropped.is_empty() {
            self.state.rcu(|state| state.compacted(&self.tree));
            self.dropped.lock().before_mark.retain(|drop| !is_seen(drop));
        }
        let (registry, next_extent) = self.mover.note();
        let note = DocumentBuf::new().with("nextExtent", next_extent as i64).with("extents", &registry.encode());
        Ok(Accounts::encode(&self.marked_accounts.lock(), note))
    }

    fn checkpoint_is_durable(&self, _oldest_view: Lsn) -> Result<()> {
        self.mover.note_is_durable()
    }

    fn check_segments(&self, log: &Log) -> Result<()> {
        let registry = self.documents.registry.load();
        let by_segment = self.accounts.copy().by_segment();
        let is_missing = |segment: u64| registry.of_segment(segment).is_none() && !log.has_segment(segment);
        let missing = by_segment.iter().find(|(segment, share)| share.live > 0 && is_missing(**segment));
        missing.map_or(Ok(()), |(segment, _)| Err(self.mover.missing(log, *segment)))
    }

    fn has_left_segment(&self, segment: u64) -> bool {
        self.mover.has_left(segment)
    }

    fn reclaim(&self, oldest_view: Lsn, effort: Effort) -> Result<Reclaimed> {
        self.mover.reclaim(&self.view_before(oldest_view), oldest_view, effort)
    }

    fn maintain(&self, oldest_view: Lsn) -> Result<()> {
        let unread: Vec<_> = self.flushed.lock().extract_if(.., |memtable| Arc::strong_count(memtable) == 1).collect();
        for memtable in unread.into_iter().filter_map(Arc::into_inner) {
            let (bytes, mut work) = (memtable.bytes(), self.backlog.begin(Some(memtable.keys())));
            memtable.free(|keys| work.did(keys));
            self.backlog.note_freed(bytes);
        }
        let threshold = self.forgettable(oldest_view);
        for _ in 0..COMPACTION_ROUNDS_MAX {
            let before = self.tree.l0_run_count();
            self.tree
                .compact(Arc::new(Leveled::default().with_l0_threshold(L0_TABLES_MAX)), threshold)
                .map_err(|error| self.files.error(error))?;
            // Even a round that merged no run of the first level may have moved tables.
            self.compactions.fetch_add(1, Ordering::Relaxed);
            self.state.rcu(|state| state.compacted(&self.tree));
            if self.tree.l0_run_count() >= before {
                break;
            }
        }
        // Merging level by level keeps little that is superseded. What is left after a drop, or after most of a
        // collection was deleted, it may never come to.
        let stored: u64 = self.tree.current_version().iter_tables().map(|table| table.metadata.item_count).sum();
        let live: u64 = self.accounts.copy().entries.values().sum();
        if threshold > 0 && stored > 2 * live + DEAD_ENTRIES_MAX { self.rewrite_tables(threshold) } else { Ok(()) }
    }

    fn compact(&self, oldest_view: Lsn) -> Result<()> {
        self.rewrite_tables(self.forgettable(oldest_view))
    }

    fn unflushed_bytes(&self) -> u64 {
        self.backlog.unflushed()
    }

    fn flushing_bytes(&self) -> u64 {
        self.backlog.flushing()
    }

    fn space(&self, keyspaces: &[KeyspaceId]) -> Vec<Space> {
        space::of_keyspaces(keyspaces, &self.documents.registry.load(), &self.accounts.copy(), &self.tree)
    }

    fn size_bytes(&self) -> u64 {
        let registry = self.documents.registry.load();
        self.tree.disk_space() + registry.extents().iter().map(|extent| extent.file_bytes).sum::<u64>()
    }

    fn status(&self) -> DocumentBuf {
        let status = Status {
            tree: &self.tree,
            documents: &self.documents,
            accounts: &self.accounts.copy(),
            counters: &self.mover.counters,
            cache_bytes: self.options.cache_bytes,
            flushes: self.flushes.load(Ordering::Relaxed),
            compactions: self.compactions.load(Ordering::Relaxed),
            unflushed_bytes: self.unflushed_bytes(),
            default_compressor: self.options.compression.to_string(),
        };
        status.document()
    }
}
