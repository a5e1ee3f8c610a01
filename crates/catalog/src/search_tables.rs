//! Postings in memory of a collection's indexes of type `search`.

use crate::Collection;
use crate::following::{Derived, FollowingTables, SearchIndexVersion, TableMemory};
use bunko_bson::DocumentRef;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use bunko_search::{Postings, Schema};
use bunko_store::{Clock, Snapshot};
use std::sync::Arc;

/// Default memory limit of all postings, in bytes.
pub const SEARCH_BYTES_MAX: u64 = 512 << 20;

/// The postings of one collection.
pub(crate) type SearchTables = FollowingTables<Postings>;

/// Memory of all postings of a server.
#[derive(Debug)]
pub struct SearchMemory(TableMemory<Postings>);

impl SearchMemory {
    /// Memory of a server that has no postings yet, with the default limit.
    pub(crate) fn new(clock: &Clock) -> Self {
        Self(TableMemory::new(SEARCH_BYTES_MAX, clock))
    }

    /// Memory limit of all postings, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.0.bytes_max()
    }

    /// Sets the limit. Postings above it are emptied when the next index asks for room.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.0.set_bytes_max(bytes_max);
    }

    /// Memory of all postings, in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}

impl Derived for Postings {
    type Definition = Arc<Schema>;
    const NAME: &'static str = "search";

    fn empty(schema: &Arc<Schema>) -> Self {
        Self::new(schema)
    }

    fn put(&mut self, record: u64, document: DocumentRef<'_>, operation: &OperationContext) -> Result<()> {
        Self::put(self, record, document, operation)
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

impl Collection {
    /// Calls `ask` with the postings of one search index for exactly the documents of the current state, and with a
    /// snapshot of that state. Returns `None` if the index finds no room.
    /// # Errors
    /// As `ask` and as `OperationContext::check`; failures of the storage.
    pub fn ask_postings<A>(
        &self,
        version: SearchIndexVersion,
        schema: &Arc<Schema>,
        memory: &SearchMemory,
        operation: &OperationContext,
        ask: impl FnOnce(&Postings, Snapshot) -> Result<A>,
    ) -> Result<Option<A>> {
        let table = self.search_tables().table(version, &|| Arc::clone(schema), &memory.0);
        self.ask_current(&table, &memory.0, operation, ask)
    }
}
