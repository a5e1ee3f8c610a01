//! Opens the engine: its trees, its extents, and the parts of its cache.

use super::{LsmEngine, LsmOptions, NAME};
use crate::accounts::Accounts;
use crate::backlog::Backlog;
use crate::blocks::Blocks;
use crate::documents::Documents;
use crate::dropped::{Drops, WithoutDropped};
use crate::extents::Registry;
use crate::kept_log::{KEPT_BYTES_MAX, KeptLog};
use crate::leaves::Leaves;
use crate::leftovers::{Aside, Leftovers};
use crate::merge_choice::Choice;
use crate::merging::Merger;
use crate::reclaim::Mover;
use crate::row_cache::RowCache;
use crate::state::State;
use crate::tree_files::TreeFiles;
use crate::view::LsmView;
use arc_swap::ArcSwap;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_store::{EngineKind, Opening, Result, StorageError, Survival};
use lsm_tree::config::{CompressionPolicy, HashRatioPolicy, PinningPolicy};
use lsm_tree::{AnyTree, Cache, CompressionType, SequenceNumberCounter};
use parking_lot::Mutex;
use std::sync::Arc;

/// Bytes of each part of the cache.
struct CacheParts {
    documents: u64,
    /// Parts of the log that are read often.
    log: u64,
    /// Leaves of records.
    leaves: u64,
    /// Leaves of index keys.
    key_leaves: u64,
    /// The table blocks that leaves are made of.
    blocks: u64,
    /// The tree's own cache, which gets the rest.
    tree: u64,
}

impl CacheParts {
    fn of(cache_bytes: u64) -> Self {
        let part = |share: f64| (cache_bytes as f64 * share) as u64;
        let (documents, log) = (part(0.7), part(0.05).min(KEPT_BYTES_MAX));
        let (leaves, key_leaves, blocks) = (part(0.05), part(0.05), part(0.1));
        let tree = cache_bytes - documents - log - leaves - key_leaves - blocks;
        Self { documents, log, leaves, key_leaves, blocks, tree }
    }
}

/// The engine as an entry of a store's table.
pub fn kind(options: LsmOptions) -> EngineKind {
    EngineKind {
        name: NAME,
        survival: Survival::Durable,
        open: Arc::new(move |opening| Ok(LsmEngine::open(opening, options)?)),
    }
}

impl LsmEngine {
    /// Opens the trees and the extents in the data directory.
    pub(super) fn open(opening: Opening<'_>, options: LsmOptions) -> Result<Arc<Self>> {
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
        let cache = CacheParts::of(options.cache_bytes);
        let accounts = Arc::new(Accounts::restore(note).ok_or_else(|| malformed("accounts"))?);
        let accounts_at_start = accounts.copy();
        let backlog = Arc::new(Backlog::default());
        let choice = Arc::new(Choice::default());
        let filter = WithoutDropped::new(&accounts, &backlog, &choice);
        files.check_version()?;
        let aside = Aside::put(&files)?;
        let tree = open_tree(&files, cache.tree, filter)?;
        let blocks = Arc::new(Blocks::new(cache.blocks, &files));
        let leaves = Arc::new(Leaves::new(cache.leaves, &blocks));
        let key_leaves = Arc::new(Leaves::new(cache.key_leaves, &blocks));
        let leftovers = Arc::new(Leftovers::new(&tree, &files, aside));
        let extents_path = opening.directory.join("extents");
        let registry = Registry::open(&extents_path, note.get("extents").and_then(ValueRef::as_array))?;
        let next_extent = match note.get("nextExtent") {
            None => 0,
            Some(ValueRef::Int64(next)) => u64::try_from(next).map_err(|_| malformed("nextExtent"))?,
            Some(_) => return Err(malformed("nextExtent")),
        };
        let documents = Arc::new(Documents::new(
            opening.log,
            registry,
            cache.documents,
            KeptLog::new(cache.log),
            leaves,
            key_leaves,
        ));
        let mover =
            Mover::new(extents_path, Arc::clone(&documents), Arc::clone(&accounts), options.compression, next_extent);
        let state = Arc::new(ArcSwap::from_pointee(State::new(&tree, &files)));
        let rows = Arc::new(RowCache::new());
        let drops = Arc::new(Drops::default());
        let merger = Merger::new(&tree, &leftovers, &state, &accounts, &backlog, &drops, choice);
        merger.note_start(opening.clock.now());
        Ok(Arc::new(Self {
            clock: opening.clock,
            latest: LsmView::latest(tree.clone(), Arc::clone(&state), Arc::clone(&documents), Arc::clone(&rows)),
            state,
            tree,
            files,
            leftovers,
            options,
            documents,
            accounts,
            mover,
            backlog,
            drops,
            merger,
            flushed: Mutex::default(),
            rows,
            marked_accounts: Mutex::new(accounts_at_start),
        }))
    }
}

fn open_tree(files: &TreeFiles, cache_bytes: u64, filter: Arc<WithoutDropped>) -> Result<AnyTree> {
    files.make_durable_directory()?;
    // The tree numbers its own versions from a counter, below any LSN. A snapshot always reads the newest version of
    // the tree, in which every entry has the LSN of its batch.
    lsm_tree::Config::new(&files.path, SequenceNumberCounter::default(), SequenceNumberCounter::default())
        .use_cache(Arc::new(Cache::with_capacity_bytes(cache_bytes)))
        .data_block_compression_policy(CompressionPolicy::new([CompressionType::None, CompressionType::Lz4]))
        // Point reads find their restart interval by a hash instead of a search.
        .data_block_hash_ratio_policy(HashRatioPolicy::all(1.0))
        .index_block_pinning_policy(PinningPolicy::all(true))
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .with_compaction_filter_factory(Some(filter))
        .open()
        .map_err(|error| files.error(error))
}
