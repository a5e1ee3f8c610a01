//! Tables in memory that follow a collection's records: the vectors or the words of its documents.
//!
//! A table has the data that an index needs of all documents. The first search that uses the index builds it from the
//! documents. From then on the table follows the record store: each search first takes in the records that changed
//! since. So a write only notes which records it changed, a crash leaves nothing to repair, and a search sees every
//! write that was acknowledged before it began. An index whose table finds no room is searched document by document.
//!
//! Rejected: index entries in the store. Every write would pay for them twice, in the log and in the engine, and each
//! search would have to read them from blocks.

use crate::waiting::{exclude, share};
use crate::{Collection, from_storage};
use bunko_bson::{DocumentRef, ObjectId};
use bunko_errors::Result;
use bunko_operation::{Draw, OperationContext, Purpose, ServerMemory};
use bunko_store::{ChangedRecords, Changes, Clock, Direction, RecordId, RecordRange, Snapshot, View};
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use std::fmt::Debug;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// A table unused for this long can be emptied to make room for others.
const IDLE: Duration = Duration::from_mins(1);
/// The operation and the memory are checked again after this many documents.
pub(crate) const DOCUMENTS_BETWEEN_LOOKS: usize = 256;
const BYTES_BETWEEN_LOOKS: usize = 4 << 20;

/// One version of a search index: its id and its number of updates.
pub type SearchIndexVersion = (ObjectId, i64);

/// Data derived from documents.
pub(crate) trait Derived: Debug + Send + Sync + Sized {
    /// Description of how the data is derived.
    type Definition: Debug + Send + Sync;
    /// Name of the data in the log, if it finds no room.
    const NAME: &'static str;

    /// A table of no documents.
    fn empty(definition: &Self::Definition) -> Self;

    /// Adds a record's document, replacing the record's earlier one.
    /// # Errors
    /// As `OperationContext::check`. The record is then put again by the next search.
    fn put(&mut self, record: u64, document: DocumentRef<'_>, operation: &OperationContext) -> Result<()>;

    /// Removes a record's document.
    fn remove(&mut self, record: u64);

    /// Whether the table should be rebuilt, because most of it belongs to documents that are gone.
    fn is_worn(&self) -> bool;

    /// Approximate size in bytes.
    fn bytes(&self) -> usize;
}

/// Memory of all tables of one kind.
#[derive(Debug)]
pub(crate) struct TableMemory<D: Derived> {
    bytes_max: AtomicU64,
    clock: Clock,
    tables: Mutex<Vec<Weak<FollowingTable<D>>>>,
}

/// The tables of one kind, for one collection.
#[derive(Debug)]
pub(crate) struct FollowingTables<D: Derived>(Mutex<Vec<Arc<FollowingTable<D>>>>);

/// The table of one index.
#[derive(Debug)]
pub(crate) struct FollowingTable<D: Derived> {
    version: SearchIndexVersion,
    pub definition: D::Definition,
    pub state: RwLock<FollowingState<D>>,
    /// Size of the table in bytes.
    bytes: AtomicUsize,
    /// Memory drawn from the server's budget.
    drawn: Mutex<Option<Draw>>,
    /// Size in bytes at which the table found no room; 0 if that did not happen.
    refused_bytes: AtomicUsize,
    /// Whether a search is reading all documents to build the table.
    is_building: AtomicBool,
    asked_at: Mutex<Instant>,
}

#[derive(Debug)]
pub(crate) struct FollowingState<D> {
    pub table: D,
    /// Changes of the record store; `None` while the table is empty.
    changed: Option<Arc<ChangedRecords>>,
    /// The first record not read yet; `None` once all were read.
    next: Option<RecordId>,
    /// Records that changed and were not read again yet, the largest first.
    pending: Vec<RecordId>,
}

/// The state of a search index's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchIndexStanding {
    /// In memory, or not used yet.
    Ready,
    /// A search is reading all documents to build it; other searches wait.
    Building,
    /// The table found no room: each search reads all documents.
    NoRoom,
}

/// Whether there is memory for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Found,
    NotFound,
}

impl<D: Derived> TableMemory<D> {
    /// Room for `bytes_max` bytes.
    pub(crate) fn new(bytes_max: u64, clock: &Clock) -> Self {
        Self { bytes_max: AtomicU64::new(bytes_max), clock: clock.clone(), tables: Mutex::default() }
    }

    /// Limit for all tables, in bytes.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Sets the limit. Tables above it are emptied when the next one asks for room.
    pub(crate) fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Size of all tables, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let tables = self.tables.lock();
        let bytes = |table: Arc<FollowingTable<D>>| table.bytes.load(Ordering::Relaxed) as u64;
        tables.iter().filter_map(Weak::upgrade).map(bytes).sum()
    }

    fn add(&self, table: &Arc<FollowingTable<D>>) {
        let mut tables = self.tables.lock();
        tables.retain(|table| table.strong_count() > 0);
        tables.push(Arc::downgrade(table));
    }

    /// Notes that a table takes `bytes`, and returns whether there is room for them. Idle tables are emptied to make
    /// room, the longest unused first.
    fn has_room(&self, table: &FollowingTable<D>, bytes: usize) -> Room {
        table.bytes.store(bytes, Ordering::Relaxed);
        let tables = self.tables.lock();
        let mut others: Vec<Arc<FollowingTable<D>>> = tables.iter().filter_map(Weak::upgrade).collect();
        others.retain(|other| !std::ptr::eq(Arc::as_ptr(other), table));
        others.sort_by_key(|other| *other.asked_at.lock());
        let mut total: u64 = others.iter().map(|other| other.bytes.load(Ordering::Relaxed) as u64).sum();
        for other in others {
            if total + bytes as u64 <= self.bytes_max() {
                return Room::Found;
            }
            let own = other.bytes.load(Ordering::Relaxed);
            let is_idle = self.clock.since(*other.asked_at.lock()) >= IDLE;
            if own > 0
                && is_idle
                && let Some(mut state) = other.state.try_write()
            {
                uncounted(|| *state = FollowingState::empty(&other.definition));
                other.note_bytes(0);
                total -= own as u64;
            }
        }
        if total + bytes as u64 <= self.bytes_max() { Room::Found } else { Room::NotFound }
    }
}

impl<D: Derived> Default for FollowingTables<D> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<D: Derived> FollowingTables<D> {
    /// Drops the tables of indexes that `is_kept` rejects, because they were dropped or updated.
    pub(crate) fn retain(&self, is_kept: impl Fn(SearchIndexVersion) -> bool) {
        self.0.lock().retain(|table| is_kept(table.version));
    }

    /// The state of an index's table.
    pub(crate) fn standing(&self, version: SearchIndexVersion) -> SearchIndexStanding {
        let tables = self.0.lock();
        match tables.iter().find(|table| table.version == version) {
            Some(table) if table.is_building.load(Ordering::Relaxed) => SearchIndexStanding::Building,
            Some(table) if table.refused_bytes.load(Ordering::Relaxed) > 0 => SearchIndexStanding::NoRoom,
            _ => SearchIndexStanding::Ready,
        }
    }

    /// The table of an index, created empty if there is none. Tables of other versions of the index are dropped.
    pub(crate) fn table(
        &self,
        version: SearchIndexVersion,
        definition: &dyn Fn() -> D::Definition,
        memory: &TableMemory<D>,
    ) -> Arc<FollowingTable<D>> {
        let mut tables = self.0.lock();
        if let Some(table) = tables.iter().find(|table| table.version == version) {
            *table.asked_at.lock() = memory.clock.now();
            return Arc::clone(table);
        }
        tables.retain(|table| table.version.0 != version.0);
        let definition = definition();
        let table = Arc::new(FollowingTable {
            version,
            state: RwLock::new(FollowingState::empty(&definition)),
            definition,
            bytes: AtomicUsize::new(0),
            drawn: Mutex::default(),
            refused_bytes: AtomicUsize::new(0),
            is_building: AtomicBool::new(false),
            asked_at: Mutex::new(memory.clock.now()),
        });
        memory.add(&table);
        tables.push(Arc::clone(&table));
        table
    }
}

impl<D: Derived> FollowingTable<D> {
    /// Notes the size of a table that has already been filled or emptied.
    pub(crate) fn note_bytes(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
        if let Some(drawn) = &mut *self.drawn.lock() {
            drawn.set(bytes as u64);
        }
    }

    /// Draws `bytes` from the server's budget. A table that grows is refused while memory is short: searches work
    /// without it.
    fn draw(&self, bytes: usize, server: &Arc<ServerMemory>) -> Room {
        let mut drawn = self.drawn.lock();
        let drawn = drawn.get_or_insert_with(|| server.count(0, Purpose::Work));
        match (bytes as u64).checked_sub(drawn.bytes()) {
            Some(0) => Room::Found,
            Some(more) if server.is_short() || !drawn.grow(more) => Room::NotFound,
            Some(_) => Room::Found,
            None => {
                drawn.set(bytes as u64);
                Room::Found
            }
        }
    }
}

impl<D: Derived> FollowingState<D> {
    fn empty(definition: &D::Definition) -> Self {
        Self { table: D::empty(definition), changed: None, next: Some(RecordId::FIRST), pending: Vec::new() }
    }

    /// Whether the table has everything that a snapshot taken before this call shows.
    fn is_current(&self) -> bool {
        self.next.is_none()
            && self.pending.is_empty()
            && self.changed.as_ref().is_some_and(|changed| changed.are_none())
    }

    /// Begins to read all records again.
    fn begin_anew(&mut self, definition: &D::Definition) {
        *self = Self { changed: self.changed.take(), ..Self::empty(definition) };
    }
}

/// Runs one change of a table. The table serves all searches, so its memory counts neither for the operation nor
/// against the operation's limit. The operation is checked only between two calls, so a call must not run more than one
/// change.
fn uncounted<T>(change: impl FnOnce() -> T) -> T {
    let _uncounted = bunko_heap::Uncounted::begin();
    change()
}

/// Marks a table as being built while it exists.
struct Building<'t>(&'t AtomicBool);

impl<'t> Building<'t> {
    fn begin(flag: &'t AtomicBool) -> Self {
        flag.store(true, Ordering::Relaxed);
        Self(flag)
    }
}

impl Drop for Building<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Collection {
    /// Calls `ask` with a table of exactly the documents of the current state, and with a snapshot of that state.
    /// Returns `None` if the table finds no room.
    /// # Errors
    /// As `ask` and as `OperationContext::check`; failures of the storage.
    pub(crate) fn ask_current<D: Derived, A>(
        &self,
        table: &FollowingTable<D>,
        memory: &TableMemory<D>,
        operation: &OperationContext,
        ask: impl FnOnce(&D, Snapshot) -> Result<A>,
    ) -> Result<Option<A>> {
        {
            let state = share(&table.state, operation)?;
            let snapshot = self.store.snapshot();
            if state.is_current() {
                return ask(&state.table, snapshot).map(Some);
            }
        }
        let refused_bytes = table.refused_bytes.load(Ordering::Relaxed);
        if refused_bytes > 0 && memory.bytes() + refused_bytes as u64 > memory.bytes_max() {
            return Ok(None);
        }
        let mut state = exclude(&table.state, operation)?;
        // First follow, then take the snapshot: every change is then either in the snapshot or noted.
        state.changed.get_or_insert_with(|| self.store.follow(self.records));
        let snapshot = self.store.snapshot();
        let room = self.take_in(&mut state, &snapshot, table, memory, operation)?;
        if room == Room::NotFound {
            let bytes = state.table.bytes();
            tracing::warn!(
                target: "INDEX", id = 148, collection = %self.namespace(), kind = D::NAME, bytes, bytes_max = memory.bytes_max(),
                "There is no memory for a search index: each search looks at all documents"
            );
            // At least 1, because 0 means that the table was not refused.
            table.refused_bytes.store(bytes.max(1), Ordering::Relaxed);
            uncounted(|| *state = FollowingState::empty(&table.definition));
            table.note_bytes(0);
            return Ok(None);
        }
        table.refused_bytes.store(0, Ordering::Relaxed);
        let state = RwLockWriteGuard::downgrade(state);
        ask(&state.table, snapshot).map(Some)
    }

    /// Applies the changes up to a snapshot to a table. If the operation ends early, the changes applied so far are
    /// kept.
    fn take_in<D: Derived>(
        &self,
        state: &mut FollowingState<D>,
        snapshot: &Snapshot,
        table: &FollowingTable<D>,
        memory: &TableMemory<D>,
        operation: &OperationContext,
    ) -> Result<Room> {
        let changes = state.changed.as_ref().map_or(Changes::All, |changed| changed.take_before(snapshot.lsn()));
        match changes {
            Changes::All => uncounted(|| state.begin_anew(&table.definition)),
            Changes::Records(records) => {
                state.pending.extend(records);
                state.pending.sort_unstable_by(|one, other| other.cmp(one));
                state.pending.dedup();
            }
        }
        if state.table.is_worn() {
            uncounted(|| state.begin_anew(&table.definition));
        }
        let _building = state.next.map(|_| Building::begin(&table.is_building));
        let (mut document, mut documents, mut bytes) = (Vec::new(), 0_usize, 0_usize);
        let server = operation.server_memory();
        let room = |bytes: usize| match memory.has_room(table, bytes) {
            Room::Found => table.draw(bytes, &server),
            Room::NotFound => Room::NotFound,
        };
        let mut is_looked_at = |length: usize| {
            (documents, bytes) = (documents + 1, bytes + length);
            let is_due = documents >= DOCUMENTS_BETWEEN_LOOKS || bytes >= BYTES_BETWEEN_LOOKS;
            if is_due {
                (documents, bytes) = (0, 0);
            }
            is_due
        };
        while let Some(record) = state.pending.last().copied() {
            // Records that were not reached yet are read below, in their newest version.
            if state.next.is_none_or(|next| record < next) {
                match snapshot.record(self.records, record, &mut document).map_err(from_storage)? {
                    Some(_) => {
                        uncounted(|| state.table.put(record.0, DocumentRef::trusted(&document), operation))?;
                    }
                    None => uncounted(|| state.table.remove(record.0)),
                }
            }
            state.pending.pop();
            if is_looked_at(document.len()) && room(state.table.bytes()) == Room::NotFound {
                return Ok(Room::NotFound);
            }
            operation.work(1 + document.len() / 64)?;
        }
        if let Some(next) = state.next {
            let range = RecordRange { start: Bound::Included(next), end: Bound::Unbounded };
            let mut cursor = snapshot.records(self.records, range, Direction::Forward);
            while let Some((record, _, document)) = cursor.next().map_err(from_storage)? {
                uncounted(|| state.table.put(record.0, DocumentRef::trusted(document), operation))?;
                state.next = Some(RecordId(record.0 + 1));
                if is_looked_at(document.len()) && room(state.table.bytes()) == Room::NotFound {
                    return Ok(Room::NotFound);
                }
                operation.work(1 + document.len() / 64)?;
            }
            state.next = None;
        }
        Ok(room(state.table.bytes()))
    }
}
