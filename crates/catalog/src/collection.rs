//! One collection, as writers and readers see it.

use crate::cap::Cap;
use crate::encrypted_fields::EncryptedFields;
use crate::following::{SearchIndexStanding, SearchIndexVersion};
use crate::index_keys::KEY_BYTES_USUAL;
use crate::long_key::shorten_key;
use crate::search_tables::SearchTables;
use crate::transaction::Occupancy;
use crate::validator::Validator;
use crate::vector_tables::VectorTables;
use crate::{EngineChoice, Index, IndexFilters, IndexState, Namespace, PlanCache, SearchIndex};
use arc_swap::{ArcSwap, ArcSwapOption};
use bunko_bson::key_string::Direction;
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, ValueRef};
use bunko_errors::Result;
use bunko_store::{Bell, KeyspaceId, KeyspaceStatistics, RecordId, Store};
use parking_lot::{Mutex, RwLock};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A collection, shared by all operations on it. A dropped collection answers as if it were empty and takes no writes.
pub struct Collection {
    pub(crate) store: Arc<Store>,
    namespace: ArcSwap<Namespace>,
    /// 16 bytes, as `listCollections` shows them.
    pub uuid: [u8; 16],
    options: ArcSwap<DocumentBuf>,
    /// Whether `validator` is set: cheaper for writers than loading it.
    has_validator: AtomicBool,
    validator: ArcSwapOption<Validator>,
    /// Whether `cap` is set.
    is_capped: AtomicBool,
    cap: ArcSwapOption<Cap>,
    /// Held during an insert into a capped collection.
    pub(crate) capped_order: Mutex<()>,
    /// Rung by inserts into a capped collection, and when the collection is dropped or renamed.
    pub(crate) bell: Arc<Bell>,
    strings: StringOrder,
    /// The engine that holds the collection and its indexes.
    pub engine: EngineChoice,
    pub(crate) records: KeyspaceId,
    pub(crate) catalog_record: RecordId,
    indexes: ArcSwap<Vec<Arc<Index>>>,
    /// Whether the store may already have other indexes than `indexes`.
    are_indexes_changing: AtomicBool,
    search_indexes: ArcSwap<Vec<Arc<SearchIndex>>>,
    vector_tables: VectorTables,
    search_tables: SearchTables,
    index_filters: ArcSwap<IndexFilters>,
    plan_cache: PlanCache,
    next_record: AtomicU64,
    is_dropped: AtomicBool,
    /// Whether only the transaction that created the collection knows of it.
    is_private: AtomicBool,
    /// Number of queries that have scanned the collection since the server started.
    scans: AtomicU64,
    /// Shared by writers; exclusive for the instant in which the set of indexes changes, so that no writer misses an
    /// index that is being built.
    pub(crate) structure: RwLock<()>,
    /// Transactions that use the collection.
    pub(crate) occupancy: Arc<Occupancy>,
    /// Taken by a writer that changes the catalog's record of this collection while it shares the structure.
    pub(crate) catalog_record_lock: Mutex<()>,
}

/// How often `Collection::wait_for_indexes` checks whether the change is over.
const INDEXES_POLL_INTERVAL: Duration = Duration::from_micros(50);

/// The parts of a collection, from the catalog's record or from `create`.
pub(crate) struct Parts {
    pub namespace: Namespace,
    pub uuid: [u8; 16],
    pub options: DocumentBuf,
    pub engine: EngineChoice,
    pub records: KeyspaceId,
    pub catalog_record: RecordId,
    pub indexes: Vec<Arc<Index>>,
    pub search_indexes: Vec<Arc<SearchIndex>>,
    pub next_record: RecordId,
}

/// See [`Collection::change_indexes`].
pub(crate) struct IndexesChanging<'c>(&'c Collection);

impl Drop for IndexesChanging<'_> {
    fn drop(&mut self) {
        self.0.are_indexes_changing.store(false, Ordering::Release);
    }
}

impl Collection {
    pub(crate) fn new(store: Arc<Store>, parts: Parts) -> Result<Self> {
        let cap = Cap::of(parts.options.as_ref()).map(Arc::new);
        let strings = strings(parts.options.as_ref())?;
        let validator = Validator::of(parts.options.as_ref(), &store, &strings).map(Arc::new);
        Ok(Self {
            store,
            strings,
            namespace: ArcSwap::from_pointee(parts.namespace),
            uuid: parts.uuid,
            options: ArcSwap::from_pointee(parts.options),
            is_capped: AtomicBool::new(cap.is_some()),
            cap: ArcSwapOption::new(cap),
            capped_order: Mutex::new(()),
            bell: Arc::default(),
            has_validator: AtomicBool::new(validator.is_some()),
            validator: ArcSwapOption::new(validator),
            engine: parts.engine,
            records: parts.records,
            catalog_record: parts.catalog_record,
            indexes: ArcSwap::from_pointee(parts.indexes),
            are_indexes_changing: AtomicBool::new(false),
            search_indexes: ArcSwap::from_pointee(parts.search_indexes),
            vector_tables: VectorTables::default(),
            search_tables: SearchTables::default(),
            index_filters: ArcSwap::default(),
            plan_cache: PlanCache::default(),
            next_record: AtomicU64::new(parts.next_record.0),
            is_dropped: AtomicBool::new(false),
            is_private: AtomicBool::new(false),
            scans: AtomicU64::new(0),
            structure: RwLock::new(()),
            occupancy: Arc::default(),
            catalog_record_lock: Mutex::new(()),
        })
    }

    /// The current name.
    pub fn namespace(&self) -> Arc<Namespace> {
        self.namespace.load_full()
    }

    pub(crate) fn rename(&self, namespace: Namespace) {
        self.namespace.store(Arc::new(namespace));
        self.bell.ring();
    }

    /// The bell that followers of a capped collection wait for.
    pub fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// All indexes, including those being built; `_id` comes first.
    pub fn indexes(&self) -> Arc<Vec<Arc<Index>>> {
        self.indexes.load_full()
    }

    /// As [`Self::indexes`], for the duration of one write: no reference count is raised.
    pub(crate) fn indexes_lent(&self) -> impl Deref<Target = Arc<Vec<Arc<Index>>>> {
        self.indexes.load()
    }

    /// Whether the store is known to have the index's keyspace, complete or not. If so, a view of the store that was
    /// taken earlier can be read through the index.
    pub fn has_index(&self, keyspace: KeyspaceId) -> bool {
        !self.are_indexes_changing() && self.indexes.load().iter().any(|index| index.keyspace == keyspace)
    }

    /// Whether the store may have dropped keys of an index that the collection still lists. A reader that sees this
    /// after it took a snapshot must not read the snapshot through the indexes that it knows.
    pub fn are_indexes_changing(&self) -> bool {
        self.are_indexes_changing.load(Ordering::Acquire)
    }

    /// Waits until the list of indexes agrees with the store, which takes as long as writing one log record. `check`
    /// may end the wait.
    /// # Errors
    /// As `check`.
    pub fn wait_for_indexes(&self, mut check: impl FnMut() -> Result<()>) -> Result<()> {
        while self.are_indexes_changing() {
            check()?;
            std::thread::sleep(INDEXES_POLL_INTERVAL);
        }
        Ok(())
    }

    /// Marks the indexes as changing until the result is dropped. Only one caller at a time may do so.
    pub(crate) fn change_indexes(&self) -> IndexesChanging<'_> {
        self.are_indexes_changing.store(true, Ordering::Release);
        IndexesChanging(self)
    }

    /// The indexes that are complete, which queries may use.
    pub fn ready_indexes(&self) -> Vec<Arc<Index>> {
        self.indexes.load().iter().filter(|index| index.state() == IndexState::Ready).cloned().collect()
    }

    /// The index with this name; `None` if there is none.
    pub fn index(&self, name: &str) -> Option<Arc<Index>> {
        self.indexes.load().iter().find(|index| index.name == name).cloned()
    }

    /// The indexes of one build, if `names` are exactly their names; `None` if there is no such build.
    pub fn indexes_built_together(&self, names: &[&str]) -> Option<Vec<Arc<Index>>> {
        let indexes = self.indexes();
        let build = indexes.iter().find(|index| names.contains(&index.name.as_str()))?.build()?;
        let is_of_build = |index: &&Arc<Index>| index.build().is_some_and(|other| Arc::ptr_eq(other, build));
        let built: Vec<_> = indexes.iter().filter(is_of_build).cloned().collect();
        let is_named = |index: &Arc<Index>| names.contains(&index.name.as_str());
        (built.len() == names.len() && built.iter().all(is_named)).then_some(built)
    }

    /// The index on `_id`.
    pub fn id_index(&self) -> Arc<Index> {
        Arc::clone(&self.indexes.load()[0])
    }

    /// Whether the natural order is that of `_id`.
    pub fn is_clustered(&self) -> bool {
        self.indexes.load()[0].is_clustered
    }

    pub(crate) fn set_indexes(&self, indexes: Vec<Arc<Index>>) {
        self.indexes.store(Arc::new(indexes));
        self.plan_cache.clear(None);
    }

    /// Search indexes of both types, in order of creation.
    pub fn search_indexes(&self) -> Arc<Vec<Arc<SearchIndex>>> {
        self.search_indexes.load_full()
    }

    /// The search index with this name; `None` if there is none.
    pub fn search_index(&self, name: &str) -> Option<Arc<SearchIndex>> {
        self.search_indexes.load().iter().find(|index| index.name == name).cloned()
    }

    /// Replaces the search indexes. The caller keeps writers out.
    pub(crate) fn set_search_indexes(&self, indexes: Vec<Arc<SearchIndex>>) {
        let is_kept = |version| indexes.iter().any(|index| (index.id, index.version) == version);
        self.vector_tables.retain(is_kept);
        self.search_tables.retain(is_kept);
        self.search_indexes.store(Arc::new(indexes));
    }

    /// Whether a search index is in memory, being built, or found no room.
    pub fn search_index_standing(&self, version: SearchIndexVersion) -> SearchIndexStanding {
        match self.vector_tables.standing(version) {
            SearchIndexStanding::Ready => self.search_tables.standing(version),
            other => other,
        }
    }

    /// Tables in memory of the indexes of type `search`.
    pub(crate) fn search_tables(&self) -> &SearchTables {
        &self.search_tables
    }

    /// Tables in memory of the vector indexes.
    pub(crate) fn vector_tables(&self) -> &VectorTables {
        &self.vector_tables
    }

    /// The best plans found so far, by query shape.
    pub fn plan_cache(&self) -> &PlanCache {
        &self.plan_cache
    }

    /// The indexes that the planner may use, by query shape.
    pub fn index_filters(&self) -> Arc<IndexFilters> {
        self.index_filters.load_full()
    }

    /// Changes the index filters and returns the result of `change`, which may be called more than once.
    pub fn change_index_filters<T>(&self, mut change: impl FnMut(&mut IndexFilters) -> T) -> T {
        let mut outcome = None;
        self.index_filters.rcu(|before| {
            let mut filters = IndexFilters::clone(before);
            outcome = Some(change(&mut filters));
            filters
        });
        outcome.expect("the change was called")
    }

    /// The record store, for cursors over a snapshot.
    pub fn records(&self) -> KeyspaceId {
        self.records
    }

    /// Number of documents, exact.
    pub fn count(&self) -> u64 {
        self.store.entries(self.records)
    }

    /// Bytes of all documents, exact.
    pub fn data_bytes(&self) -> u64 {
        self.store.keyspace_statistics(self.records).bytes
    }

    /// Average length of a document, in bytes.
    pub fn usual_document_bytes(&self) -> u64 {
        self.data_bytes() / self.count().max(1)
    }

    /// Number of keys of an index and their bytes, exact.
    pub fn index_statistics(&self, index: &Index) -> KeyspaceStatistics {
        self.store.keyspace_statistics(index.keyspace)
    }

    /// The keyspaces to ask the store about: the record store, then those of `indexes`.
    pub fn keyspaces(&self, indexes: &[Arc<Index>]) -> Vec<KeyspaceId> {
        std::iter::once(self.records).chain(indexes.iter().map(|index| index.keyspace)).collect()
    }

    /// The store, for reads of the current state.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Counts a query that scans the collection.
    pub fn note_scan(&self) {
        self.scans.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of queries that have scanned the collection since the server started.
    pub fn scans(&self) -> u64 {
        self.scans.load(Ordering::Relaxed)
    }

    /// Whether the collection has been dropped since the caller looked it up.
    pub fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Acquire)
    }

    /// Whether only the transaction that created the collection knows of it; the store then has none of it.
    pub(crate) fn is_private(&self) -> bool {
        self.is_private.load(Ordering::Acquire)
    }

    pub(crate) fn set_private(&self, is_private: bool) {
        self.is_private.store(is_private, Ordering::Release);
    }

    /// The oplog's `create` command for this collection.
    pub(crate) fn creation(&self) -> DocumentBuf {
        let mut created = DocumentBuf::new().with("create", self.namespace().collection());
        created.extend((*self.options()).as_ref());
        if !self.is_clustered() {
            created.append("idIndex", &self.id_index().document);
        }
        created
    }

    pub(crate) fn set_dropped(&self) {
        self.is_dropped.store(true, Ordering::Release);
        self.bell.ring();
    }

    /// The id of the next record. It is exact while the caller keeps writers out.
    pub(crate) fn next_record(&self) -> RecordId {
        RecordId(self.next_record.load(Ordering::Relaxed))
    }

    /// An id above all records of any snapshot taken before the call.
    pub fn record_ids_end(&self) -> RecordId {
        self.next_record()
    }

    pub(crate) fn take_record_ids(&self, count: u64) -> RecordId {
        RecordId(self.next_record.fetch_add(count, Ordering::Relaxed))
    }

    /// Notes that a record has this id, which another member gave it.
    pub(crate) fn absorb_record_id(&self, record: RecordId) {
        self.next_record.fetch_max(record.0 + 1, Ordering::Relaxed);
    }

    /// The key of an `_id` in the `_id` index.
    pub(crate) fn id_key(&self, id: ValueRef<'_>) -> Vec<u8> {
        let mut key = Vec::with_capacity(KEY_BYTES_USUAL);
        self.append_id_key(&mut key, id);
        key
    }

    /// Appends the key of an `_id` in the `_id` index to `key`, which must be empty. Equal values of `_id` have equal
    /// keys.
    pub fn append_id_key(&self, key: &mut Vec<u8>, id: ValueRef<'_>) {
        debug_assert!(key.is_empty(), "a key stands alone");
        self.strings.append_key(key, id, Direction::Ascending);
        shorten_key(key);
    }

    /// The default collation: the order of strings unless an operation asks for another.
    pub fn strings(&self) -> &StringOrder {
        &self.strings
    }

    /// The options given to `create` and `collMod`, without those that only matter during creation.
    pub fn options(&self) -> Arc<DocumentBuf> {
        self.options.load_full()
    }

    /// Replaces the options. The caller keeps writers out.
    pub(crate) fn set_options(&self, options: DocumentBuf) {
        let validator = Validator::of(options.as_ref(), &self.store, &self.strings).map(Arc::new);
        self.has_validator.store(validator.is_some(), Ordering::Release);
        self.validator.store(validator);
        let cap = Cap::of(options.as_ref()).map(Arc::new);
        self.is_capped.store(cap.is_some(), Ordering::Release);
        self.cap.store(cap);
        self.options.store(Arc::new(options));
    }

    /// The fields that clients encrypt; `None` if the options name none.
    pub fn encrypted_fields(&self) -> Option<EncryptedFields> {
        EncryptedFields::of((*self.options()).as_ref())
    }

    /// Whether the collection is capped.
    pub fn is_capped(&self) -> bool {
        self.cap().is_some()
    }

    /// The limits of a capped collection; `None` for any other.
    pub(crate) fn cap(&self) -> Option<Cap> {
        if self.is_capped.load(Ordering::Acquire) { self.cap.load().as_deref().copied() } else { None }
    }

    /// The validator of the collection's documents; `None` if there is none.
    pub(crate) fn validator(&self) -> Option<Arc<Validator>> {
        if self.has_validator.load(Ordering::Acquire) { self.validator.load_full() } else { None }
    }
}

/// The default order of strings in a collection with these options.
/// # Errors
/// As `bunko_collation::parse`.
pub(crate) fn strings(options: DocumentRef<'_>) -> Result<StringOrder> {
    match options.get("collation").and_then(ValueRef::as_document) {
        Some(collation) => bunko_collation::parse(collation),
        None => Ok(StringOrder::default()),
    }
}
