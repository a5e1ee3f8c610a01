//! Applying batches and checkpointing.

use crate::key;
use crate::key_value::KeyValue;
use crate::memtable::{Keep, Memtable};
use crate::row_cache::RowCache;
use crate::state::State;
use crate::view::LsmView;
use arc_swap::ArcSwap;
use bunko_store::{Effect, Effects, Engine, KeyspaceId, LogHandle, Lsn, Presence, Result, StorageError, View};
use lsm_tree::compaction::Leveled;
use lsm_tree::config::{CompressionPolicy, HashRatioPolicy, PinningPolicy};
use lsm_tree::{AbstractTree, AnyTree, Cache, CompressionType, SeqNo, SequenceNumberCounter};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The engine's name in `serverStatus` and the manifest.
pub const NAME: &str = "lsm";

/// Most compactions in a row: each moves one level on, seven is the tree's depth.
const COMPACTION_ROUNDS_MAX: usize = 7;

/// How the engine behaves.
#[derive(Clone, Copy, Debug)]
pub struct LsmOptions {
    /// Cache for blocks of the trees, in bytes (`storage.wiredTiger.engineConfig.cacheSizeGB`). Documents are cached
    /// by the operating system.
    pub cache_bytes: u64,
}

impl Default for LsmOptions {
    fn default() -> Self {
        Self { cache_bytes: 256 * 1024 * 1024 }
    }
}

/// One tree for all keyspaces, so that thousands of collections cost one memtable and one flush.
pub struct LsmEngine {
    tree: AnyTree,
    path: PathBuf,
    log: LogHandle,
    state: Arc<ArcSwap<State>>,
    /// Size of the active memtable.
    unflushed_bytes: AtomicU64,
    dropped: Mutex<Dropped>,
    /// Flushed memtables that a reader may still hold. Freeing one takes tens of milliseconds: not on a reader's time.
    flushed: Mutex<Vec<Arc<Memtable>>>,
    rows: Arc<RowCache>,
    /// Lent to all who read the latest state.
    latest: LsmView,
    /// All that the tables hold is below.
    marked: AtomicU64,
}

/// Dropped keyspaces, whose tables may go only once the drop is durable.
#[derive(Default)]
struct Dropped {
    since_mark: Vec<KeyspaceId>,
    before_mark: Vec<KeyspaceId>,
}

impl LsmEngine {
    /// Opens the trees below `directory`.
    pub fn open(directory: &Path, log: LogHandle, options: LsmOptions) -> Result<Arc<Self>> {
        let path = directory.join("trees");
        // Versions of the tree count for themselves, below any LSN: a snapshot always reads the newest version, in
        // which every entry has the LSN of its batch.
        let tree = lsm_tree::Config::new(&path, SequenceNumberCounter::default(), SequenceNumberCounter::default())
            .use_cache(Arc::new(Cache::with_capacity_bytes(options.cache_bytes)))
            .data_block_compression_policy(CompressionPolicy::new([CompressionType::None, CompressionType::Lz4]))
            // Point reads find their restart interval by hash instead of a search.
            .data_block_hash_ratio_policy(HashRatioPolicy::all(1.0))
            .index_block_pinning_policy(PinningPolicy::all(true))
            .filter_block_pinning_policy(PinningPolicy::all(true))
            .open()
            .map_err(|error| tree_error(&path, error))?;
        let state = Arc::new(ArcSwap::from_pointee(State::new(&tree)));
        let rows = Arc::new(RowCache::new());
        Ok(Arc::new(Self {
            latest: LsmView::latest(tree.clone(), Arc::clone(&state), Arc::clone(&log), Arc::clone(&rows)),
            state,
            tree,
            path,
            log,
            unflushed_bytes: AtomicU64::new(0),
            dropped: Mutex::default(),
            flushed: Mutex::default(),
            rows,
            marked: AtomicU64::new(0),
        }))
    }
}

impl LsmEngine {
    /// The tree forgets versions below the threshold that have a successor, however new that is. So only when no open
    /// view is older than all that the tables hold may anything be forgotten at all.
    fn forgettable(&self, oldest_view: Lsn) -> SeqNo {
        let marked = self.marked.load(Ordering::Relaxed);
        if oldest_view.0 >= marked { marked } else { 0 }
    }
}

/// A tree's error in the store's terms.
pub(crate) fn tree_error(path: &Path, error: lsm_tree::Error) -> StorageError {
    match error {
        lsm_tree::Error::Io(source) => StorageError::io(path, source),
        other => StorageError::Corrupt { file: path.to_owned(), offset_bytes: 0, found: other.to_string() },
    }
}

impl Engine for LsmEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn apply(&self, lsn: Lsn, effects: Effects<'_>, oldest_view: Lsn) -> Result<()> {
        let state = self.state.load();
        let put =
            |keyspace, key: &[u8], value: Option<&[u8]>| state.active.put(keyspace, key, lsn.0, value, oldest_view.0);
        let mut bytes = 0;
        for effect in effects {
            bytes = match effect {
                Effect::PutRecord { keyspace, record, location, .. } => {
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
                Effect::DropKeyspace { keyspace } => {
                    self.dropped.lock().since_mark.push(keyspace);
                    bytes
                }
            };
        }
        self.unflushed_bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn view(&self, before: Lsn) -> Box<dyn View> {
        Box::new(LsmView::before(before, self.tree.clone(), &self.state, Arc::clone(&self.log)))
    }

    fn latest(&self) -> &dyn View {
        &self.latest
    }

    fn begin_checkpoint(&self, watermark: Lsn) -> Result<()> {
        self.marked.store(watermark.0, Ordering::Relaxed);
        self.state.rcu(|state| state.sealed());
        let mut dropped = self.dropped.lock();
        let marked = std::mem::take(&mut dropped.since_mark);
        dropped.before_mark.extend(marked);
        Ok(())
    }

    fn finish_checkpoint(&self, oldest_view: Lsn) -> Result<()> {
        let io = |error| tree_error(&self.path, error);
        let threshold = self.forgettable(oldest_view);
        let keep = if threshold == 0 { Keep::AllVersions } else { Keep::Newest };
        // More than one where an earlier flush failed; the oldest first, as each hides what was flushed before it.
        for memtable in self.state.load_full().sealed.iter().rev() {
            if let Some((tables, blobs)) = self.tree.flush_to_tables(memtable.in_order(keep).map(Ok)).map_err(io)? {
                self.tree.register_tables(&tables, blobs.as_deref(), None, &[], threshold).map_err(io)?;
            }
            self.flushed.lock().push(Arc::clone(memtable));
            self.state.rcu(|state| state.flushed(memtable, &self.tree));
        }
        // Tables that hold other keyspaces too are left to compaction.
        let dropped = std::mem::take(&mut self.dropped.lock().before_mark);
        if dropped.is_empty() {
            return Ok(());
        }
        for keyspace in dropped {
            self.tree.drop_range(key::whole(keyspace)).map_err(io)?;
        }
        self.state.rcu(|state| state.compacted(&self.tree));
        Ok(())
    }

    fn maintain(&self, oldest_view: Lsn) -> Result<()> {
        self.flushed.lock().retain(|memtable| Arc::strong_count(memtable) > 1);
        let threshold = self.forgettable(oldest_view);
        for _ in 0..COMPACTION_ROUNDS_MAX {
            let before = self.tree.l0_run_count();
            self.tree
                .compact(Arc::new(Leveled::default()), threshold)
                .map_err(|error| tree_error(&self.path, error))?;
            // Even a round that merged no run of the first level may have moved tables.
            self.state.rcu(|state| state.compacted(&self.tree));
            if self.tree.l0_run_count() >= before {
                break;
            }
        }
        Ok(())
    }

    fn unflushed_bytes(&self) -> u64 {
        self.unflushed_bytes.load(Ordering::Relaxed)
    }

    fn disk_bytes(&self) -> u64 {
        self.tree.disk_space()
    }
}
