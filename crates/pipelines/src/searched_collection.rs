//! A collection as a search sees it: its documents, and the postings of its indexes.
//!
//! If the collection is long and its present state is read, [`Documents::ask`] first lets the index's postings take in
//! the changes (`search_tables.rs` and `following.rs` of `catalog`). The search then reads that state, and only the
//! documents that the postings name. Otherwise it scans all documents of the snapshot.

use bunko_aggregate::Searched;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_catalog::{Catalog, Collection, SearchIndex, from_storage};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use bunko_search::{Documents, Postings, Schema, SearchIndexDefinition};
use bunko_store::{Direction, RecordId, RecordRange, Snapshot, View};
use std::sync::Arc;

/// Largest collection, in documents and in bytes, that a search scans in no noticeable time.
const DOCUMENTS_SHORT_MAX: u64 = 200;
const BYTES_SHORT_MAX: u64 = 64 << 10;

/// The documents of a collection, in one snapshot.
pub(crate) struct SearchedCollection {
    collection: Arc<Collection>,
    snapshot: Arc<Snapshot>,
    /// Access to the postings of the index; `None` when a past state is read, for which there are no postings.
    present: Option<Present>,
    /// The index in use.
    index: Option<Arc<SearchIndex>>,
    document: Vec<u8>,
}

/// The catalog for the present state of the collection, and the operation that reads it.
pub(crate) struct Present {
    pub catalog: Arc<Catalog>,
    pub operation: Arc<OperationContext>,
}

impl SearchedCollection {
    pub fn new(collection: Arc<Collection>, snapshot: Arc<Snapshot>, present: Option<Present>) -> Self {
        Self { collection, snapshot, present, index: None, document: Vec::new() }
    }
}

impl Searched for SearchedCollection {
    fn index(&mut self, name: &str) -> Option<SearchIndexDefinition> {
        self.index = self.collection.search_index(name);
        self.index.as_ref().map(|index| index.definition.clone())
    }

    fn is_long(&self) -> bool {
        self.collection.count() > DOCUMENTS_SHORT_MAX || self.collection.data_bytes() > BYTES_SHORT_MAX
    }

    fn documents(&mut self) -> &mut dyn Documents {
        self
    }

    fn document(&mut self, record: i64) -> Result<Option<DocumentBuf>> {
        let record = RecordId(record as _);
        let found = self.snapshot.record(self.collection.records(), record, &mut self.document);
        Ok(found.map_err(from_storage)?.map(|_| DocumentBuf::from_trusted(self.document.clone())))
    }
}

impl Documents for SearchedCollection {
    fn scan(&mut self, visit: &mut dyn FnMut(i64, DocumentRef<'_>) -> Result<()>) -> Result<()> {
        let mut cursor = self.snapshot.records(self.collection.records(), RecordRange::ALL, Direction::Forward);
        while let Some((record, _, bytes)) = cursor.next().map_err(from_storage)? {
            visit(record.0 as i64, DocumentRef::trusted(bytes))?;
        }
        Ok(())
    }

    fn read(&mut self, records: &[u64], visit: &mut dyn FnMut(i64, DocumentRef<'_>) -> Result<()>) -> Result<()> {
        let keyspace = self.collection.records();
        for record in records {
            let found = self.snapshot.record(keyspace, RecordId(*record), &mut self.document).map_err(from_storage)?;
            if found.is_some() {
                visit(*record as i64, DocumentRef::trusted(&self.document))?;
            }
        }
        Ok(())
    }

    fn ask(&mut self, schema: &Arc<Schema>, ask: &mut dyn FnMut(&Postings) -> Result<()>) -> Result<bool> {
        // Scanning a short collection is faster than building its postings.
        if !self.is_long() {
            return Ok(false);
        }
        let (Some(present), Some(index)) = (&self.present, &self.index) else { return Ok(false) };
        let (version, memory) = ((index.id, index.version), present.catalog.search_memory());
        let asked =
            self.collection.ask_postings(version, schema, memory, &present.operation, |postings, snapshot| {
                ask(postings)?;
                Ok(snapshot)
            })?;
        let Some(snapshot) = asked else { return Ok(false) };
        self.snapshot = Arc::new(snapshot);
        Ok(true)
    }
}
