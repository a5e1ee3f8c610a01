//! The databases and collections, and changes of them.

mod difference;

pub(crate) use difference::Difference;

use crate::collection::{self, Collection, Parts};
use crate::directory::Directory;
use crate::index_spec::IndexSpec;
use crate::namespace::check_database;
use crate::past::PastStates;
use crate::retry::HistoryRecords;
use crate::subscribers::Subscribers;
use crate::transaction::{Owners, TransactionMemory, announce, exclude_all};
use crate::user_writes;
use crate::waiting::lock;
use crate::{
    EngineChoice, ID_INDEX, Index, IndexBuilds, IndexState, Multikey, Namespace, SearchMemory, Transaction,
    VectorMemory, from_storage, notes, persistence,
};
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::failpoint::{self, Failpoint};
use bunko_store::{Batch, KeyspaceId, Lsn, NOT_LOGGED, RecordId, Role, Store};
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// All databases of one store.
pub struct Catalog {
    pub(crate) store: Arc<Store>,
    pub(crate) collections: RwLock<Directory>,
    /// Held during a change of the catalog: one at a time.
    pub(crate) changes: Mutex<Allocation>,
    pub(crate) history_records: HistoryRecords,
    /// Records and unique keys that transactions have claimed.
    pub(crate) owners: Owners,
    pub(crate) transaction_memory: TransactionMemory,
    vector_memory: VectorMemory,
    search_memory: SearchMemory,
    pub(crate) index_builds: IndexBuilds,
    pub(crate) past_states: PastStates,
    pub(crate) subscribers: Subscribers,
    pub(crate) new_uuid: Box<dyn Fn() -> [u8; 16] + Send + Sync>,
    /// Whether index builds should be left to the next start.
    pub(crate) is_stopping: AtomicBool,
    /// Whether index builds should be left to the next step-up.
    pub(crate) has_stepped_down: AtomicBool,
    /// Whether records of another primary were applied since this member was primary last.
    pub(crate) has_absorbed: AtomicBool,
    /// Records of collections whose rebuild a kill interrupted, until the server writes for the first time after its
    /// start.
    left_at_start: Mutex<Option<Vec<RecordId>>>,
    /// Whether a collection or view with a collation may exist or have existed. Most catalogs have none, and skip the
    /// lookup.
    has_collations: AtomicBool,
    /// Whether a view may exist or have existed.
    has_views: Arc<AtomicBool>,
}

/// Counters of ids. An id is never given twice.
pub(crate) struct Allocation {
    next_keyspace: u32,
    next_record: RecordId,
}

impl Allocation {
    fn keyspace(&mut self) -> KeyspaceId {
        self.next_keyspace += 1;
        KeyspaceId(self.next_keyspace - 1)
    }

    /// Takes over the counter of another member.
    pub(crate) fn absorb_counter(&mut self, next_keyspace: u32) {
        self.next_keyspace = next_keyspace;
    }

    /// Notes that a record of the catalog has this id.
    pub(crate) fn absorb_record(&mut self, record: RecordId) {
        self.next_record = self.next_record.max(RecordId(record.0 + 1));
    }

    pub(crate) fn put_counter(&self, store: &Store, batch: &mut Batch<'_>) -> Result<()> {
        persistence::put_counter(store, batch, self.next_keyspace)
    }
}

/// Options of `create`, checked by the command.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// As `listCollections` shows them.
    pub options: DocumentBuf,
    /// The collection's engine; `None` for the store's own.
    pub engine: Option<EngineChoice>,
    /// The UUID that the collection had elsewhere; `None` for a new one.
    pub uuid: Option<[u8; 16]>,
    /// The version that the `_id` index is shown with; `None` for the newest.
    pub id_version: Option<i32>,
}

impl Catalog {
    /// Reads the catalog of an open store. `new_uuid` returns UUIDs for new collections.
    /// # Errors
    /// `IllegalOperation` if a collection has the name of the oplog that the store should keep; `InternalError` for a
    /// damaged record of the catalog; failures of the storage.
    pub fn open(store: Arc<Store>, new_uuid: Box<dyn Fn() -> [u8; 16] + Send + Sync>) -> Result<Arc<Self>> {
        let loaded = persistence::load(&store)?;
        let history_records = HistoryRecords::load(&store)?;
        store.set_names_of(notes::names_of);
        if store.keeps_history() && loaded.collections.iter().any(|collection| collection.namespace().is_oplog()) {
            let message = "local.oplog.rs is a collection: drop or rename it before an oplog takes its name";
            return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message));
        }
        let has_collations = loaded
            .collections
            .iter()
            .any(|collection| !collection.strings().is_bytes() || collection.namespace().holds_views());
        let mut collections = Directory::default();
        for collection in loaded.collections {
            collections.insert(&Arc::new(collection));
        }
        let catalog = Self {
            vector_memory: VectorMemory::new(store.clock()),
            search_memory: SearchMemory::new(store.clock()),
            store,
            has_views: collections.views_flag(),
            collections: RwLock::new(collections),
            changes: Mutex::new(Allocation { next_keyspace: loaded.next_keyspace, next_record: loaded.next_record }),
            history_records,
            owners: Owners::default(),
            transaction_memory: TransactionMemory::default(),
            index_builds: IndexBuilds::default(),
            past_states: PastStates::default(),
            subscribers: Subscribers::default(),
            new_uuid,
            is_stopping: AtomicBool::new(false),
            has_stepped_down: AtomicBool::new(false),
            has_absorbed: AtomicBool::new(false),
            has_collations: AtomicBool::new(has_collations),
            left_at_start: Mutex::new(Some(loaded.left_by_rebuilds)),
        };
        // A member of a set writes once it has been elected.
        if catalog.store.role() == Role::Standalone {
            catalog.step_up()?;
        }
        Ok(Arc::new(catalog))
    }

    /// Makes the catalog's own writes after a start: a first entry of the oplog, so that it is never empty, and the end
    /// of rebuilds that a kill interrupted. A standalone server makes them when it opens the catalog, a member of a set
    /// when it becomes the primary. Index builds may begin from here on.
    /// # Errors
    /// Failures of the storage.
    pub fn step_up(&self) -> Result<()> {
        self.has_stepped_down.store(false, Ordering::Release);
        let mut left = self.left_at_start.lock();
        let Some(rebuilds) = &*left else { return Ok(()) };
        if self.store.keeps_history() {
            self.store.commit(&notes::batch_of_start()).map_err(from_storage)?;
        }
        self.drop_unfinished_rebuilds(rebuilds)?;
        *left = None;
        Ok(())
    }

    /// Memory of open transactions, and its limits.
    pub fn transaction_memory(&self) -> &TransactionMemory {
        &self.transaction_memory
    }

    /// Limits of index builds: how many run at once, and their memory.
    pub fn index_builds(&self) -> &IndexBuilds {
        &self.index_builds
    }

    /// Memory of the words of search indexes, and its limit.
    pub fn search_memory(&self) -> &SearchMemory {
        &self.search_memory
    }

    /// Memory of the vectors of indexes, and its limit.
    pub fn vector_memory(&self) -> &VectorMemory {
        &self.vector_memory
    }

    /// The store below.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Whether the oplog records changes to a collection with this name.
    pub fn tells_of(&self, namespace: &Namespace) -> bool {
        self.store.keeps_history() && namespace.is_replicated()
    }

    /// The collection with this name, if it exists.
    pub fn collection(&self, namespace: &Namespace) -> Option<Arc<Collection>> {
        self.collections.read().named(namespace.as_str()).cloned()
    }

    /// The default order of strings in a collection or view.
    /// # Errors
    /// As [`Self::view`].
    pub fn default_strings(&self, namespace: &Namespace) -> Result<StringOrder> {
        if !self.has_collations.load(Ordering::Acquire) {
            return Ok(StringOrder::default());
        }
        match self.collection(namespace) {
            Some(collection) => Ok(collection.strings().clone()),
            None => Ok(self.view_strings(namespace)?.unwrap_or_default()),
        }
    }

    /// The default order of strings in a view; `None` if the namespace is not a view.
    /// # Errors
    /// As [`Self::view`].
    pub fn view_strings(&self, namespace: &Namespace) -> Result<Option<StringOrder>> {
        if self.collection(namespace).is_some() {
            return Ok(None);
        }
        self.view(namespace)?.map(|view| view.strings()).transpose()
    }

    /// Whether any view or time series may exist. Without them, a write need not ask what its name stands for.
    pub fn may_have_views(&self) -> bool {
        self.has_views.load(Ordering::Acquire)
    }

    pub(crate) fn note_collation(&self) {
        self.has_collations.store(true, Ordering::Release);
    }

    /// The collection with this UUID, if it exists.
    pub fn collection_by_uuid(&self, uuid: [u8; 16]) -> Option<Arc<Collection>> {
        self.collections.read().with_uuid(uuid).cloned()
    }

    /// Writes since the start that met a claim of a transaction, or a change made after their snapshot.
    pub fn write_conflicts(&self) -> u64 {
        self.owners.conflicts()
    }

    /// Creates a collection. In a transaction, the collection belongs to the transaction until it commits.
    /// # Errors
    /// `NamespaceExists` if the name or the UUID is taken; `DatabaseDifferCase`; `InvalidNamespace` for a name that is
    /// too long. In a transaction, also its errors.
    pub fn create(
        &self,
        namespace: &Namespace,
        create: CreateOptions,
        operation: &dyn OperationSource,
    ) -> Result<(Arc<Collection>, Lsn)> {
        user_writes::check(namespace, operation)?;
        if let Some(transaction) = Transaction::of(operation) {
            return Ok((transaction.create(namespace, create, operation)?, NOT_LOGGED));
        }
        self.create_under(&mut *lock(&self.changes, operation)?, namespace, create)
    }

    /// As [`Self::create`], for a caller that has locked the catalog's changes.
    pub(crate) fn create_under(
        &self,
        changes: &mut Allocation,
        namespace: &Namespace,
        create: CreateOptions,
    ) -> Result<(Arc<Collection>, Lsn)> {
        let collection = Arc::new(self.prepare(changes, namespace, create)?);
        let mut batch = Batch::new();
        changes.put_counter(&self.store, &mut batch)?;
        notes::put_command(&mut batch, &collection, &collection.creation());
        self.put_collection(&mut batch, &collection)?;
        let lsn = self.store.commit(&batch).map_err(from_storage)?;
        collection.occupancy.note_change(lsn);
        self.collections.write().insert(&collection);
        Ok((collection, lsn))
    }

    /// Checks that a new collection may have this name and UUID.
    /// # Errors
    /// `NamespaceExists`; `DatabaseDifferCase`; `InvalidNamespace` for a name that is too long.
    pub(crate) fn refuse_taken_name(&self, namespace: &Namespace, uuid: Option<[u8; 16]>) -> Result<()> {
        namespace.check_length()?;
        if self.collection(namespace).is_some() || self.shows_oplog(namespace) || self.view(namespace)?.is_some() {
            return Err(Failure::new(
                ErrorCode::NAMESPACE_EXISTS,
                format!("Collection already exists. NS: {namespace}"),
            ));
        }
        if let Some(other) = uuid.and_then(|uuid| self.collection_by_uuid(uuid)) {
            return Err(Failure::new(
                ErrorCode::NAMESPACE_EXISTS,
                format!("Collection with the UUID asked for {namespace} already exists. NS: {}", other.namespace()),
            ));
        }
        self.refuse_other_case(namespace.database())
    }

    /// Makes a new collection that is not in the catalog yet.
    pub(crate) fn prepare(
        &self,
        changes: &mut Allocation,
        namespace: &Namespace,
        create: CreateOptions,
    ) -> Result<Collection> {
        self.refuse_taken_name(namespace, create.uuid)?;
        let strings = collection::strings(create.options.as_ref())?;
        let spec = create.id_version.into_iter().fold(id_spec(create.options.as_ref()), IndexSpec::with_version);
        let spec = spec.with_strings(&strings);
        // Definitions of views may be copied into `system.views`.
        if !strings.is_bytes() || namespace.holds_views() {
            self.note_collation();
        }
        let (records, keys) = (changes.keyspace(), changes.keyspace());
        let id_index = Index::new(spec, keys).with_state(IndexState::Ready, Multikey::default());
        let catalog_record = changes.next_record;
        changes.next_record = RecordId(catalog_record.0 + 1);
        let parts = Parts {
            namespace: namespace.clone(),
            uuid: create.uuid.unwrap_or_else(|| (self.new_uuid)()),
            options: create.options,
            engine: create.engine.unwrap_or_else(|| EngineChoice::own(&self.store)),
            records,
            catalog_record,
            indexes: vec![Arc::new(id_index)],
            search_indexes: Vec::new(),
            next_record: RecordId::FIRST,
        };
        Collection::new(Arc::clone(&self.store), parts)
    }

    /// Adds a new collection to a batch: its catalog record and its keyspaces.
    pub(crate) fn put_collection(&self, batch: &mut Batch<'_>, collection: &Collection) -> Result<()> {
        let indexes = collection.indexes();
        let record = persistence::encode(collection, &collection.namespace(), &indexes);
        persistence::put(&self.store, batch, collection.catalog_record, record)?;
        for keyspace in collection.keyspaces(&indexes) {
            collection.engine.create_keyspace(batch, keyspace);
        }
        Ok(())
    }

    /// Replaces a collection's options with those that `change` makes of them, and records `command` in the oplog.
    /// Returns `None` if there is no such collection.
    /// # Errors
    /// As `change`; as `OperationContext::check` while this waits for writers and transactions in the collection.
    pub fn change_options(
        &self,
        namespace: &Namespace,
        command: &DocumentBuf,
        operation: &dyn OperationSource,
        change: &mut dyn FnMut(DocumentRef<'_>) -> Result<DocumentBuf>,
    ) -> Result<Option<Lsn>> {
        user_writes::check(namespace, operation)?;
        let present = self.collection(namespace);
        let _announced = present.as_deref().map(|present| announce(present, operation)).transpose()?;
        let _changes = lock(&self.changes, operation)?;
        let Some(collection) = self.collection(namespace) else { return Ok(None) };
        let _no_writer = exclude_all(&collection, operation)?;
        let before = collection.options();
        let options = change((*before).as_ref())?;
        let mut batch = Batch::new();
        let record = persistence::encode(&collection, namespace, &collection.indexes());
        let record = persistence::with_options(record.as_ref(), &options);
        persistence::put(&self.store, &mut batch, collection.catalog_record, record)?;
        let told = notes::before_modification(&collection, None);
        notes::put_command_after(&mut batch, &collection, command, Some(&told));
        let lsn = self.store.commit(&batch).map_err(from_storage)?;
        collection.occupancy.note_change(lsn);
        collection.set_options(options);
        Ok(Some(lsn))
    }

    /// Whether the name belongs to the oplog, a view of the log.
    pub(crate) fn shows_oplog(&self, namespace: &Namespace) -> bool {
        namespace.is_oplog() && self.store.keeps_history()
    }

    /// The collection with this name. It is created if it is missing.
    /// # Errors
    /// As [`Self::find_or_create`].
    pub fn collection_or_create(
        &self,
        namespace: &Namespace,
        operation: &dyn OperationSource,
    ) -> Result<Arc<Collection>> {
        self.find_or_create(namespace, operation).map(|(collection, _)| collection)
    }

    /// The collection with this name, and the LSN of its creation if it was missing and this call created it.
    /// # Errors
    /// `CommandNotSupportedOnView`; as [`Self::create`] without `NamespaceExists`, except for the oplog.
    pub fn find_or_create(
        &self,
        namespace: &Namespace,
        operation: &dyn OperationSource,
    ) -> Result<(Arc<Collection>, Option<Lsn>)> {
        loop {
            if let Some(collection) = self.collection_for(namespace, operation) {
                return Ok((collection, None));
            }
            self.refuse_view(namespace)?;
            match self.create(namespace, CreateOptions::default(), operation) {
                Ok((collection, lsn)) => {
                    operation.operation().note_created(namespace.to_string());
                    return Ok((collection, Some(lsn)));
                }
                Err(failure) if failure.code() != ErrorCode::NAMESPACE_EXISTS => return Err(failure),
                // Another operation created the collection after the first look.
                Err(failure) => match self.collection(namespace) {
                    Some(collection) => return Ok((collection, None)),
                    None if self.shows_oplog(namespace) => return Err(failure),
                    // A third operation dropped the collection again.
                    None => {}
                },
            }
        }
    }

    /// Refuses a database whose name differs from an existing one only in case. Such names would be one directory on
    /// some systems; MongoDB refuses them everywhere.
    pub(crate) fn refuse_other_case(&self, database: &str) -> Result<()> {
        check_database(database)?;
        match self.collections.read().in_other_case(database) {
            Some(other) => Err(Failure::new(
                ErrorCode::DATABASE_DIFFER_CASE,
                format!("db already exists with different case already have: [{other}] trying to create [{database}]"),
            )),
            None => Ok(()),
        }
    }

    /// Saves a collection's record with `indexes`, and shows them to writers.
    /// # Errors
    /// `NamespaceNotFound` if the collection was dropped meanwhile: its record must not come back.
    pub(crate) fn save_indexes(
        &self,
        collection: &Collection,
        indexes: Vec<Arc<Index>>,
        difference: Difference<'_>,
        operation: &dyn OperationSource,
    ) -> Result<Lsn> {
        let _no_writer = exclude_all(collection, operation)?;
        if collection.is_dropped() {
            return Err(Failure::new(
                ErrorCode::NAMESPACE_NOT_FOUND,
                format!("ns not found {}", collection.namespace()),
            ));
        }
        if let Difference::Built(built, build) = difference {
            self.settle_rest(collection, built, build)?;
        }
        let mut batch = Batch::new();
        let name = collection.namespace();
        let is_ready = |index: &Arc<Index>| difference.completes(index) || index.state() == IndexState::Ready;
        let record = persistence::encode_with(collection, &name, &indexes, |index| index.multikey(), is_ready);
        persistence::put(&self.store, &mut batch, collection.catalog_record, record)?;
        difference.put(collection, &mut batch);
        let changing = collection.change_indexes();
        let lsn = self.store.commit(&batch).map_err(from_storage)?;
        failpoint::pass(Failpoint::IndexesCommitted);
        collection.occupancy.note_change(lsn);
        collection.set_indexes(indexes);
        drop(changing);
        match difference {
            Difference::Built(built, _) => built.iter().for_each(|index| index.set_state(IndexState::Ready)),
            Difference::Created(new) | Difference::Replaced(_, new) => {
                let builds = new.iter().filter_map(|index| index.build());
                builds.for_each(|build| build.begin(collection.next_record(), collection.count()));
            }
            Difference::Dropped(_) | Difference::Respecified(..) => {}
        }
        Ok(lsn)
    }

    /// Allocates a keyspace for a new index. The counter is saved before the id is used.
    pub(crate) fn allocate_keyspace(&self, changes: &mut Allocation) -> Result<KeyspaceId> {
        let keyspace = changes.keyspace();
        self.save_counter(changes)?;
        Ok(keyspace)
    }
}

/// The `_id` index of a collection with these options.
fn id_spec(options: DocumentRef<'_>) -> IndexSpec {
    match options.get("clusteredIndex").and_then(ValueRef::as_document) {
        Some(clustered) => IndexSpec::clustered(clustered.get("name").and_then(ValueRef::as_str).unwrap_or(ID_INDEX)),
        None => IndexSpec::id(),
    }
}
