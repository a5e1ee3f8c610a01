//! Applies batches and makes checkpoints: the contract `Engine` of `store`. Reads are in `view`, compaction is in `merging`,
//! and the moves of documents out of the log are in `reclaim`.

mod opening;

pub use opening::kind;

use crate::accounts::{Accounts, Balances};
use crate::backlog::Backlog;
use crate::compression::Compression;
use crate::documents::Documents;
use crate::dropped::Drops;
use crate::key_value::KeyValue;
use crate::leftovers::Leftovers;
use crate::memtable::{Keep, Memtable};
use crate::merging::Merger;
use crate::reclaim::Mover;
use crate::row_cache::RowCache;
use crate::space;
use crate::state::State;
use crate::status::Status;
use crate::tree_files::TreeFiles;
use crate::view::LsmView;
use arc_swap::ArcSwap;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_store::{
    Added, Clock, CopyIntoImage, Effect, Effects, Effort, Engine, KeptForViews, KeyspaceId, KeyspaceStatistics, Lsn,
    Presence, Reclaimed, RecordId, RecoveredLog, Result, Space, Staged, StorageError, View, files,
};
use bunko_versions::Views;
use lsm_tree::{AbstractTree, AnyTree, Table, TableId};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::path::Path;
use std::sync::Arc;

/// The engine's name in `serverStatus` and the manifest.
pub const NAME: &str = "lsm";

/// Approximate size of a table's entry, beside a long key.
const ENTRY_BYTES_MAX: u64 = 128;

/// Options of the engine.
#[derive(Clone, Copy, Debug)]
pub struct LsmOptions {
    /// Size of the cache for blocks of the trees and of extents, in bytes
    /// (`storage.wiredTiger.engineConfig.cacheSizeGB`). Documents that are still in the log are cached by the operating
    /// system.
    pub cache_bytes: u64,
    /// Compression of documents in collections that do not choose one.
    pub compression: Compression,
}

/// One tree for all keyspaces, so that thousands of collections cost one memtable and one flush.
pub struct LsmEngine {
    tree: AnyTree,
    files: Arc<TreeFiles>,
    leftovers: Arc<Leftovers>,
    options: LsmOptions,
    documents: Arc<Documents>,
    accounts: Arc<Accounts>,
    mover: Mover,
    clock: Clock,
    state: Arc<ArcSwap<State>>,
    backlog: Arc<Backlog>,
    drops: Arc<Drops>,
    merger: Merger,
    /// Flushed memtables that a reader may still hold. Freeing a memtable takes tens of milliseconds, so a background
    /// thread does it and no reader.
    flushed: Mutex<Vec<Arc<Memtable>>>,
    rows: Arc<RowCache>,
    /// Lent to all readers of the latest state.
    latest: LsmView,
    /// The accounts at the last mark.
    marked_accounts: Mutex<Balances>,
}

impl LsmEngine {
    fn view_before(&self, lsn: Lsn) -> LsmView {
        LsmView::before(lsn, self.tree.clone(), Arc::clone(&self.state), Arc::clone(&self.documents))
    }

    /// Drops cached leaves and blocks of tables that were merged into others. No reader needs them any more, and they
    /// would stay until the caches are full.
    fn forget_leaves(&self) {
        let tables: FxHashSet<TableId> = self.tree.current_version().iter_tables().map(Table::id).collect();
        self.documents.leaves.forget_others(&tables);
        self.documents.key_leaves.forget_others(&tables);
        self.documents.key_leaves.blocks.forget_others(&tables);
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

    /// Less than the default: the documents are in the log already, and entries in a table take less than in a
    /// memtable.
    fn checkpoint_disk_bytes(&self, added: Added) -> u64 {
        let sealed: u64 = self.state.load().sealed.iter().map(|memtable| memtable.bytes()).sum();
        self.unflushed_bytes() + sealed + added.changes * ENTRY_BYTES_MAX
    }

    fn apply(&self, lsn: Lsn, effects: Effects<'_>, views: Views<'_>) -> Result<()> {
        // The extent must be registered before its documents are counted: counts of unknown segments are dropped.
        for effect in effects.clone() {
            let Effect::AdoptFile { number, .. } = effect else { break };
            self.mover.adopt(number)?;
        }
        self.accounts.apply(lsn, effects.clone());
        let state = self.state.load();
        let put = |keyspace, key: &[u8], value: Option<&[u8]>| state.active.put(keyspace, key, lsn.0, value, views);
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
                Effect::PutKey { keyspace, key, record, .. } => {
                    KeyValue { record, location: None }.encode(|value| put(keyspace, key, Some(value)))
                }
                Effect::PutPrimaryKey { keyspace, key, record, location, presence } => {
                    let value = KeyValue { record, location: Some(location) };
                    let bytes = value.encode(|value| put(keyspace, key, Some(value)));
                    // Only keys that existed before are cached: a new key cannot be in the cache.
                    if presence != Presence::New {
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
                    self.drops.add(keyspace, lsn);
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

    /// Tables, versions and extents never change once they have their names, and `current` is replaced by a rename.
    fn add_to_image(&self, image: &Path) -> Result<Option<CopyIntoImage>> {
        let trees = TreeFiles::new(image.join("trees"));
        files::hard_link_all(&self.files.path, &trees.path)?;
        files::hard_link_all(&self.files.tables(), &trees.tables())?;
        files::hard_link_all(self.mover.directory(), &image.join("extents"))?;
        Ok(None)
    }

    fn view(&self, before: Lsn) -> Box<dyn View> {
        Box::new(self.view_before(before))
    }

    fn latest(&self) -> &dyn View {
        &self.latest
    }

    fn begin_checkpoint(&self, watermark: Lsn) -> Result<()> {
        self.merger.mark(watermark);
        *self.marked_accounts.lock() = self.accounts.copy();
        self.backlog.note_sealed(self.state.load().active.bytes());
        self.state.rcu(|state| state.sealed());
        self.drops.mark();
        Ok(())
    }

    fn finish_checkpoint(&self, oldest_view: Lsn) -> Result<DocumentBuf> {
        let io = |error| self.files.error(error);
        // Even a server that stops before its first reclaim removes the files that an earlier one left.
        self.mover.sweep()?;
        let writing = self.leftovers.begin()?;
        self.drops.mark_is_durable();
        let threshold = self.merger.forgettable(oldest_view);
        let keep = if threshold == 0 { Keep::AllVersions } else { Keep::Newest };
        // There are several sealed memtables if an earlier flush failed. The oldest is flushed first, because each
        // hides the entries of those flushed before it.
        for memtable in self.state.load_full().sealed.iter().rev() {
            let mut tables = Vec::new();
            let mut work = self.backlog.begin_flush(memtable.keys());
            for part in memtable.parts(keep) {
                let paced = part.inspect(|_| work.did(1));
                let flushed = self.tree.flush_to_tables(paced.map(Ok)).map_err(io)?;
                tables.extend(flushed.into_iter().flat_map(|(tables, _no_blobs)| tables));
            }
            if !tables.is_empty() {
                let _not_while_some_are_chosen = self.merger.adding();
                self.tree.register_tables(&tables, None, None, &[], threshold).map_err(io)?;
                writing.named(tables.iter().map(Table::id));
            }
            self.backlog.note_flushed();
            self.merger.note_flush(memtable.bytes(), self.clock.now());
            self.flushed.lock().push(Arc::clone(memtable));
            self.state.rcu(|state| state.flushed(memtable, &self.tree));
        }
        writing.finish();
        let (registry, next_extent) = self.mover.note();
        let note = DocumentBuf::new().with("nextExtent", next_extent as i64).with("extents", &registry.encode());
        Ok(Accounts::encode(&self.marked_accounts.lock(), note))
    }

    fn checkpoint_is_durable(&self, _oldest_view: Lsn) -> Result<()> {
        self.mover.note_is_durable()
    }

    fn files_end(&self) -> Lsn {
        Lsn(self.tree.get_highest_persisted_seqno().map_or(0, |newest| newest + 1))
    }

    fn check_log(&self, log: &RecoveredLog) -> Result<()> {
        if self.files_end() > log.end() {
            return Err(StorageError::Corrupt {
                file: self.files.current(),
                offset_bytes: 0,
                found: format!("the trees hold what is newer than the log, which ends at position {}", log.end().0),
            });
        }
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

    fn release(&self) {
        let unread: Vec<_> = self.flushed.lock().extract_if(.., |memtable| Arc::strong_count(memtable) == 1).collect();
        for memtable in unread.into_iter().filter_map(Arc::into_inner) {
            let (bytes, mut work) = (memtable.bytes(), self.backlog.begin_flush(memtable.keys()));
            memtable.free(|keys| work.did(keys));
            self.backlog.note_freed(bytes);
        }
    }

    fn merge(&self, oldest_view: &dyn Fn() -> Lsn) -> Result<()> {
        let outcome = self.merger.merge(oldest_view, self.clock.now());
        self.forget_leaves();
        outcome
    }

    fn prepare_for_reads(&self) {
        self.merger.come_to_rest();
    }

    fn compact(&self, oldest_view: Lsn) -> Result<()> {
        let outcome = self.merger.rewrite(oldest_view);
        self.forget_leaves();
        outcome
    }

    fn give_up_merging(&self) {
        self.backlog.give_up();
    }

    /// Bytes of dead documents and entries that only views need, in extents, log and tables, and of merged tables that
    /// walks still use.
    fn kept_for_views(&self, oldest_view: Lsn) -> Vec<KeptForViews> {
        let keys_bytes = self.merger.kept_bytes(oldest_view) + self.leftovers.unnamed_bytes();
        let bytes = self.mover.kept_bytes(oldest_view) + keys_bytes;
        vec![KeptForViews::on_disk(bytes, self.size_bytes())]
    }

    fn unflushed_bytes(&self) -> u64 {
        self.backlog.unflushed()
    }

    fn flushing_bytes(&self) -> u64 {
        self.backlog.flushing()
    }

    /// Counts the last key of each block of each table twice, in the tree's form and in lists that were searched, and
    /// adds the filters.
    fn pinned_bytes(&self) -> u64 {
        let of_tree = self.tree.pinned_block_index_size() + self.tree.pinned_filter_size();
        of_tree as u64 + self.documents.leaves.blocks.lists_bytes()
    }

    fn space(&self, keyspaces: &[(KeyspaceId, KeyspaceStatistics)]) -> Vec<Space> {
        let flushed = self.marked_accounts.lock().clone();
        space::of_keyspaces(keyspaces, &self.documents.registry.load(), &self.accounts.copy(), &flushed, &self.tree)
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
            flushes: self.backlog.flushes(),
            compactions: self.merger.compactions(),
            pinned_bytes: self.pinned_bytes(),
            unflushed_bytes: self.unflushed_bytes(),
            default_compressor: self.options.compression.to_string(),
        };
        status.document()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dropped::WithoutDropped;
    use bunko_store::{Batch, Direction, EngineKind, EngineTable, KeyRange, Opening, Store, StoreOptions, Survival};
    use bunko_testkit::patience::wait_until;
    use std::sync::mpsc;
    use std::time::Duration;

    fn store(directory: &Path) -> (Arc<Store>, Arc<LsmEngine>) {
        let slot = Arc::new(Mutex::default());
        let opened = Arc::clone(&slot);
        let lsm = LsmOptions { cache_bytes: 8 << 20, compression: Compression::None };
        let open = move |opening: Opening<'_>| -> Result<Arc<dyn Engine>> {
            let engine = LsmEngine::open(opening, lsm)?;
            *opened.lock() = Some(Arc::clone(&engine));
            Ok(engine)
        };
        let own = EngineKind { name: NAME, survival: Survival::Durable, open: Arc::new(open) };
        let store = Store::open(directory, StoreOptions::at_rest(), EngineTable::only(own)).expect("opens");
        let engine = slot.lock().take().expect("opened");
        (store, engine)
    }

    #[test]
    fn a_flush_adds_its_tables_once_those_of_a_merge_are_chosen() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (store, engine) = store(directory.path());
        let mut batch = Batch::new();
        batch.put_key(KeyspaceId(5), b"key", RecordId(1));
        store.commit(&batch).expect("committed");
        let choice = engine.merger.choice.begin();
        let (done, is_done) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                store.checkpoint().expect("checkpoint");
                done.send(()).expect("is awaited");
            });
            let early = is_done.recv_timeout(Duration::from_millis(200));
            // The tree makes the filter once it has chosen tables; then the merge continues while a flush adds its own.
            let filters = WithoutDropped::new(&engine.accounts, &engine.backlog, &engine.merger.choice);
            let _filter = filters.begin();
            let late = is_done.recv_timeout(Duration::from_secs(20));
            drop(choice);
            assert!(early.is_err(), "tables came between");
            late.expect("the flush is over");
        });
        store.close().expect("closes");
    }

    #[test]
    fn few_tables_are_merged_too_once_writes_stop() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (store, engine) = store(directory.path());
        let merge = || engine.merge(&|| store.snapshot().lsn()).expect("merges");
        let flush = |count: u64| {
            for number in 0..count {
                let mut batch = Batch::new();
                // The tables overlap: tables that do not overlap are not rewritten.
                batch.put_key(KeyspaceId(5), &number.to_be_bytes(), RecordId(number));
                batch.put_key(KeyspaceId(5), &(100 + number).to_be_bytes(), RecordId(number));
                store.commit(&batch).expect("committed");
                store.checkpoint().expect("checkpoint");
            }
        };
        flush(4);
        merge();
        assert_eq!(engine.tree.table_count(), 4, "somebody may be writing");
        engine.prepare_for_reads();
        engine.merger.note_flush(100, engine.clock.now());
        merge();
        assert_eq!(engine.tree.table_count(), 1, "what is small does not disturb the rest");
        engine.merger.note_flush(100 << 20, engine.clock.now());
        flush(3);
        merge();
        assert_eq!(engine.tree.table_count(), 4, "a large one does");
        store.close().expect("closes");
    }

    #[test]
    fn bulk_writes_soon_become_one_table() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (store, engine) = store(directory.path());
        let put = |number: u64| {
            let mut batch = Batch::new();
            batch.put_key(KeyspaceId(5), &number.to_be_bytes(), RecordId(number));
            batch.put_key(KeyspaceId(5), &(100 + number).to_be_bytes(), RecordId(number));
            store.commit(&batch).expect("committed");
        };
        for number in 0..3 {
            put(number);
            store.checkpoint().expect("checkpoint");
        }
        put(3);
        assert_eq!(engine.tree.table_count(), 3, "and a memtable");
        store.prepare_for_reads();
        wait_until("there is one table", || engine.tree.table_count() == 1 && engine.unflushed_bytes() == 0);
        store.close().expect("closes");
    }

    #[test]
    fn a_merge_that_is_given_up_changes_nothing() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (store, engine) = store(directory.path());
        for number in 0..20_u8 {
            let mut batch = Batch::new();
            batch.put_key(KeyspaceId(5), b"key", RecordId(number.into()));
            store.commit(&batch).expect("committed");
            store.checkpoint().expect("checkpoint");
        }
        let tables = engine.tree.table_count();
        engine.give_up_merging();
        engine.merge(&|| store.snapshot().lsn()).expect("nothing is wrong");
        assert!(engine.compact(store.snapshot().lsn()).is_err(), "who asks for it is told");
        assert_eq!(engine.tree.table_count(), tables);
        assert_eq!(store.latest().key(KeyspaceId(5), b"key").expect("readable"), Some(RecordId(19)));
        store.close().expect("closes");
        drop((store, engine));
        let (store, engine) = self::store(directory.path());
        engine.compact(store.snapshot().lsn()).expect("compacts");
        assert_eq!(engine.tree.table_count(), 1);
        assert_eq!(store.latest().key(KeyspaceId(5), b"key").expect("readable"), Some(RecordId(19)));
        store.close().expect("closes");
    }

    #[test]
    fn idle_views_and_cursors_keep_no_memtable_and_see_what_they_saw() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (store, engine) = store(directory.path());
        let (mut views, mut cursors) = (Vec::new(), Vec::new());
        for round in 1..=6_u64 {
            let mut batch = Batch::new();
            for number in 0..300_u64 {
                batch.put_key(KeyspaceId(5), &number.to_be_bytes(), RecordId(round));
            }
            store.commit(&batch).expect("committed");
            let view = store.snapshot();
            let direction = if round % 2 == 0 { Direction::Forward } else { Direction::Backward };
            let mut cursor = view.keys(KeyspaceId(5), KeyRange::ALL, direction);
            cursor.next().expect("readable");
            cursors.push((round, cursor));
            views.push(view);
            store.checkpoint().expect("checkpoint");
            engine.release();
        }
        assert_eq!((engine.flushing_bytes(), engine.flushed.lock().len()), (0, 0), "memtables that cannot go");
        for ((round, mut cursor), view) in cursors.into_iter().zip(views) {
            let mut count = 1;
            while let Some((_, record)) = cursor.next().expect("readable") {
                assert_eq!(record, RecordId(round));
                count += 1;
            }
            assert_eq!(count, 300, "of round {round}");
            assert_eq!(view.key(KeyspaceId(5), &7_u64.to_be_bytes()).expect("readable"), Some(RecordId(round)));
        }
        store.close().expect("closes");
    }
}
