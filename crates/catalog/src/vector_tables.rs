//! Vectors in memory of a collection's vector indexes.
//!
//! Filters select rows of a table by its postings. A scan, or a walk through the graph, then finds the nearest of the
//! selected rows. One thread adds vectors to graphs, a few at a time. No table is on disk. A table that finds no room
//! in [`VectorMemory`] is replaced by a scan of the documents ([`Scan`]).

use crate::following::{
    DOCUMENTS_BETWEEN_LOOKS, Derived, FollowingTable, FollowingTables, SearchIndexVersion, TableMemory,
};
use crate::{Collection, from_storage};
use bunko_bson::DocumentRef;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use bunko_store::{Clock, Direction, RecordId, RecordRange, View};
use bunko_vector::{Definition, Growing, Hit, Request, Scan, Table};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Default memory limit of all tables, in bytes.
pub const VECTOR_BYTES_MAX: u64 = 1 << 30;

/// The tables of one collection.
pub(crate) type VectorTables = FollowingTables<Table>;
type VectorTable = FollowingTable<Table>;

/// Memory of all tables of a server.
#[derive(Debug)]
pub struct VectorMemory {
    tables: TableMemory<Table>,
    /// Whether a thread is adding vectors to a graph; only one at a time does.
    is_growing: Arc<AtomicBool>,
}

impl Derived for Table {
    type Definition = Definition;
    const NAME: &'static str = "vectorSearch";

    fn empty(definition: &Definition) -> Self {
        Self::new(definition.clone())
    }

    fn put(&mut self, record: u64, document: DocumentRef<'_>, _: &OperationContext) -> Result<()> {
        Self::put(self, record, document);
        Ok(())
    }

    fn remove(&mut self, record: u64) {
        Self::remove(self, record);
    }

    fn is_worn(&self) -> bool {
        Self::is_worn(self)
    }

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }
}

impl VectorMemory {
    /// Memory of a server that has no tables yet, with the default limit.
    pub(crate) fn new(clock: &Clock) -> Self {
        Self { tables: TableMemory::new(VECTOR_BYTES_MAX, clock), is_growing: Arc::default() }
    }

    /// Memory limit of all tables, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.tables.bytes_max()
    }

    /// Sets the limit. Tables above it are emptied when the next one asks for room.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.tables.set_bytes_max(bytes_max);
    }

    /// Starts a thread that adds a table's vectors to its graphs, unless such a thread is running for any table.
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
                    table.note_bytes(state.table.bytes());
                }
                if growing == Growing::Done {
                    break;
                }
            }
            is_growing.store(false, Ordering::Release);
        };
        if let Err(error) = std::thread::Builder::new().name("vector-graph".to_owned()).spawn(grow) {
            tracing::warn!(
                target: "INDEX", id = 149, %error,
                "No thread could be started to build a graph of vectors: each search looks at all vectors"
            );
            self.is_growing.store(false, Ordering::Release);
        }
    }
}

impl Collection {
    /// The documents whose vectors are nearest to the request's, the nearest first, in the current state.
    /// # Errors
    /// As `Request::check`; failures of the storage; as `OperationContext::check`.
    pub fn nearest(
        &self,
        version: SearchIndexVersion,
        definition: &dyn Fn() -> Definition,
        request: &Request,
        memory: &VectorMemory,
        operation: &OperationContext,
    ) -> Result<Vec<Hit>> {
        let table = self.vector_tables().table(version, definition, &memory.tables);
        request.check(&table.definition)?;
        let found = self.ask_current(&table, &memory.tables, operation, |vectors, _| {
            Ok((vectors.search(request, operation)?, vectors.outside_graphs()))
        })?;
        let Some((hits, outside_graphs)) = found else {
            return self.nearest_by_scan(&table.definition, request, operation);
        };
        if outside_graphs > 0 {
            memory.grow(&table);
        }
        Ok(hits)
    }

    /// The score of a record's document for a search, whether or not the search finds it. `None` if the document has no
    /// vector to compare, or the filters exclude it.
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

    /// As [`Self::nearest`], without a table.
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
