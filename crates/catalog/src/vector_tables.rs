//! The vectors of a collection's vector indexes, in memory.
//!
//! A table has what an index needs of all documents. It is made when the index is asked for the first time, from the
//! documents themselves, and follows its record store from then on: each search first takes in what changed since. So no
//! write pays for it beyond noting which records it changed, a crash leaves nothing to mend, and a search sees what was
//! acknowledged before it began. What finds no room is searched document by document.
//!
//! Rejected: index entries in the store, which every write would pay for twice, in the log and in the engine, and which a
//! search would have to read from blocks for each query.

use crate::waiting::{exclude, share};
use crate::{Collection, from_storage};
use bunko_bson::{DocumentRef, ObjectId};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use bunko_store::{ChangedRecords, Changes, Direction, RecordId, RecordRange, View};
use bunko_vector::{Definition, Growing, Hit, Request, Scan, Table};
use parking_lot::{Mutex, RwLock};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// What all tables may take in memory where nothing else is said, in bytes.
pub const VECTOR_BYTES_MAX: u64 = 1 << 30;
/// A table that was not asked for so long gives its room to others.
const IDLE: Duration = Duration::from_mins(1);
/// So many documents are taken in between two looks at the room.
const DOCUMENTS_BETWEEN_LOOKS: usize = 256;

/// One state of a vector index: its identity, and how often it was updated.
pub type VectorIndexVersion = (ObjectId, i64);

/// The room of all tables of a server.
#[derive(Debug)]
pub struct VectorMemory {
    bytes_max: AtomicU64,
    tables: Mutex<Vec<Weak<VectorTable>>>,
    /// Whether a thread adds vectors to a graph: one at a time does.
    is_growing: Arc<AtomicBool>,
}

impl Default for VectorMemory {
    fn default() -> Self {
        Self { bytes_max: AtomicU64::new(VECTOR_BYTES_MAX), tables: Mutex::default(), is_growing: Arc::default() }
    }
}

/// The tables of one collection.
#[derive(Debug, Default)]
pub(crate) struct VectorTables(Mutex<Vec<Arc<VectorTable>>>);

/// What one vector index needs of its documents.
#[derive(Debug)]
struct VectorTable {
    version: VectorIndexVersion,
    definition: Definition,
    state: RwLock<State>,
    /// What it takes.
    bytes: AtomicUsize,
    /// What it took when it found no room.
    refused_bytes: AtomicUsize,
    asked_at: Mutex<Instant>,
}

#[derive(Debug)]
struct State {
    table: Table,
    /// What changes in the record store; none while the table is empty.
    changed: Option<Arc<ChangedRecords>>,
    /// The first record that was never looked at; none once all were.
    next: Option<RecordId>,
    /// Records that changed and were not looked at since, the largest first.
    pending: Vec<RecordId>,
}

/// Whether a table has all that it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Found,
    NotFound,
}

impl VectorMemory {
    /// What all tables may take, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Sets it; what is beyond it goes when the next table asks for room.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// What all tables take, in bytes.
    pub fn bytes(&self) -> u64 {
        let tables = self.tables.lock();
        let bytes = |table: Arc<VectorTable>| table.bytes.load(Ordering::Relaxed) as u64;
        tables.iter().filter_map(Weak::upgrade).map(bytes).sum()
    }

    fn add(&self, table: &Arc<VectorTable>) {
        let mut tables = self.tables.lock();
        tables.retain(|table| table.strong_count() > 0);
        tables.push(Arc::downgrade(table));
    }

    /// Whether a table may take so many bytes. Tables that nobody asks for give up theirs for it.
    fn has_room(&self, table: &VectorTable, bytes: usize) -> Room {
        table.bytes.store(bytes, Ordering::Relaxed);
        let tables = self.tables.lock();
        let mut others: Vec<Arc<VectorTable>> = tables.iter().filter_map(Weak::upgrade).collect();
        others.retain(|other| !std::ptr::eq(Arc::as_ptr(other), table));
        others.sort_by_key(|other| *other.asked_at.lock());
        let mut total: u64 = others.iter().map(|other| other.bytes.load(Ordering::Relaxed) as u64).sum();
        for other in others {
            if total + bytes as u64 <= self.bytes_max() {
                return Room::Found;
            }
            let own = other.bytes.load(Ordering::Relaxed);
            let is_idle = other.asked_at.lock().elapsed() >= IDLE;
            if own > 0
                && is_idle
                && let Some(mut state) = other.state.try_write()
            {
                *state = State::empty(&other.definition);
                other.bytes.store(0, Ordering::Relaxed);
                total -= own as u64;
            }
        }
        if total + bytes as u64 <= self.bytes_max() { Room::Found } else { Room::NotFound }
    }

    /// Has a thread put the vectors of a table into its graphs, if none does that for another.
    fn grow(&self, table: &Arc<VectorTable>) {
        if self.is_growing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (is_growing, table) = (Arc::clone(&self.is_growing), Arc::downgrade(table));
        let grow = move || {
            let mut rounds = 0_usize;
            while let Some(table) = table.upgrade() {
                let state = table.state.read();
                let growing = state.table.grow();
                rounds += 1;
                if growing == Growing::Done || rounds.is_multiple_of(DOCUMENTS_BETWEEN_LOOKS) {
                    table.bytes.store(state.table.bytes(), Ordering::Relaxed);
                }
                if growing == Growing::Done {
                    break;
                }
            }
            is_growing.store(false, Ordering::Release);
        };
        if let Err(error) = std::thread::Builder::new().name("vector-graph".to_owned()).spawn(grow) {
            tracing::warn!(%error, "no thread to build a graph of vectors: all of them are looked at");
            self.is_growing.store(false, Ordering::Release);
        }
    }
}

impl VectorTables {
    /// Forgets what `is_kept` does not keep: an index that was dropped or updated.
    pub(crate) fn retain(&self, is_kept: impl Fn(VectorIndexVersion) -> bool) {
        self.0.lock().retain(|table| is_kept(table.version));
    }

    fn table(
        &self,
        version: VectorIndexVersion,
        definition: &dyn Fn() -> Definition,
        memory: &VectorMemory,
    ) -> Arc<VectorTable> {
        let mut tables = self.0.lock();
        if let Some(table) = tables.iter().find(|table| table.version == version) {
            *table.asked_at.lock() = Instant::now();
            return Arc::clone(table);
        }
        tables.retain(|table| table.version.0 != version.0);
        let definition = definition();
        let table = Arc::new(VectorTable {
            version,
            state: RwLock::new(State::empty(&definition)),
            definition,
            bytes: AtomicUsize::new(0),
            refused_bytes: AtomicUsize::new(0),
            asked_at: Mutex::new(Instant::now()),
        });
        memory.add(&table);
        tables.push(Arc::clone(&table));
        table
    }
}

impl State {
    fn empty(definition: &Definition) -> Self {
        Self { table: Table::new(definition.clone()), changed: None, next: Some(RecordId::FIRST), pending: Vec::new() }
    }

    fn is_current(&self) -> bool {
        self.next.is_none()
            && self.pending.is_empty()
            && self.changed.as_ref().is_some_and(|changed| changed.are_none())
    }

    /// Reads all records again.
    fn begin_anew(&mut self, definition: &Definition) {
        *self = Self { changed: self.changed.take(), ..Self::empty(definition) };
    }
}

impl Collection {
    /// The documents whose vectors are nearest to one, the nearest first, by the present state of one of its vector indexes.
    /// # Errors
    /// Those of the search node; those of the storage; what the operation says.
    pub fn nearest(
        &self,
        version: VectorIndexVersion,
        definition: &dyn Fn() -> Definition,
        request: &Request,
        memory: &VectorMemory,
        operation: &OperationContext,
    ) -> Result<Vec<Hit>> {
        let table = self.vector_tables().table(version, definition, memory);
        request.check(&table.definition)?;
        if self.bring_up(&table, memory, operation)? == Room::NotFound {
            return self.nearest_by_scan(&table.definition, request, operation);
        }
        let state = share(&table.state, operation)?;
        if state.next.is_some() {
            // It gave its room away in this instant.
            drop(state);
            return self.nearest_by_scan(&table.definition, request, operation);
        }
        let hits = state.table.search(request, operation)?;
        if state.table.outside_graphs() > 0 {
            memory.grow(&table);
        }
        Ok(hits)
    }

    /// The score that a record's document has for a search, whether that finds it or not; none where it has no vector that
    /// is compared, or the filters leave it out.
    /// # Errors
    /// As [`Self::nearest`].
    pub fn nearness(&self, definition: &Definition, request: &Request, record: RecordId) -> Result<Option<f32>> {
        let mut scan = Scan::new(definition, request)?;
        let mut document = Vec::new();
        let found = self.store.read_latest(|latest| latest.record(self.records, record, &mut document));
        if found.map_err(from_storage)?.is_some() {
            scan.visit(record.0, DocumentRef::trusted(&document));
        }
        Ok(scan.into_hits().first().map(|hit| hit.score))
    }

    /// Has a table take in what changed.
    fn bring_up(&self, table: &VectorTable, memory: &VectorMemory, operation: &OperationContext) -> Result<Room> {
        if share(&table.state, operation)?.is_current() {
            return Ok(Room::Found);
        }
        let refused_bytes = table.refused_bytes.load(Ordering::Relaxed);
        if refused_bytes > 0 && memory.bytes() + refused_bytes as u64 > memory.bytes_max() {
            return Ok(Room::NotFound);
        }
        // The table is everybody's.
        let _uncounted = bunko_heap::Uncounted::begin();
        let mut state = exclude(&table.state, operation)?;
        let room = self.take_in(&mut state, table, memory, operation)?;
        let refused_bytes = if room == Room::Found { 0 } else { state.table.bytes() };
        table.refused_bytes.store(refused_bytes, Ordering::Relaxed);
        if room == Room::NotFound {
            *state = State::empty(&table.definition);
            table.bytes.store(0, Ordering::Relaxed);
        }
        Ok(room)
    }

    fn take_in(
        &self,
        state: &mut State,
        table: &VectorTable,
        memory: &VectorMemory,
        operation: &OperationContext,
    ) -> Result<Room> {
        let changed = Arc::clone(state.changed.get_or_insert_with(|| self.store.follow(self.records)));
        let snapshot = self.store.snapshot();
        match changed.take_before(snapshot.lsn()) {
            Changes::All => state.begin_anew(&table.definition),
            Changes::Records(records) => {
                state.pending.extend(records);
                state.pending.sort_unstable_by(|one, other| other.cmp(one));
                state.pending.dedup();
            }
        }
        if state.table.is_worn() {
            state.begin_anew(&table.definition);
        }
        let mut document = Vec::new();
        let mut looked_at = 0_usize;
        while let Some(record) = state.pending.last().copied() {
            // What comes later is read later.
            if state.next.is_none_or(|next| record < next) {
                match snapshot.record(self.records, record, &mut document).map_err(from_storage)? {
                    Some(_) => state.table.put(record.0, DocumentRef::trusted(&document)),
                    None => state.table.remove(record.0),
                }
            }
            state.pending.pop();
            operation.work(1 + document.len() / 64)?;
        }
        if let Some(next) = state.next {
            let range = RecordRange { start: Bound::Included(next), end: Bound::Unbounded };
            let mut cursor = snapshot.records(self.records, range, Direction::Forward);
            while let Some((record, _, document)) = cursor.next().map_err(from_storage)? {
                state.table.put(record.0, DocumentRef::trusted(document));
                state.next = Some(RecordId(record.0 + 1));
                looked_at += 1;
                if looked_at.is_multiple_of(DOCUMENTS_BETWEEN_LOOKS)
                    && memory.has_room(table, state.table.bytes()) == Room::NotFound
                {
                    return Ok(Room::NotFound);
                }
                operation.work(1 + document.len() / 64)?;
            }
            state.next = None;
        }
        Ok(memory.has_room(table, state.table.bytes()))
    }

    /// The same without a table.
    fn nearest_by_scan(
        &self,
        definition: &Definition,
        request: &Request,
        operation: &OperationContext,
    ) -> Result<Vec<Hit>> {
        let snapshot = self.store.snapshot();
        let mut scan = Scan::new(definition, request)?;
        let mut cursor = snapshot.records(self.records, RecordRange::ALL, Direction::Forward);
        while let Some((record, _, document)) = cursor.next().map_err(from_storage)? {
            operation.work(1 + document.len() / 64)?;
            scan.visit(record.0, DocumentRef::trusted(document));
        }
        self.note_scan();
        Ok(scan.into_hits())
    }
}
