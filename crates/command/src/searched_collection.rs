//! A collection as a search sees it.

use bunko_aggregate::Searched;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_catalog::{Collection, from_storage};
use bunko_errors::Result;
use bunko_search::{Documents, SearchIndexDefinition};
use bunko_store::{Direction, RecordId, RecordRange, Snapshot, View};
use std::sync::Arc;

/// Documents, and their bytes, that are looked at in no noticeable time.
const DOCUMENTS_SHORT_MAX: u64 = 200;
const BYTES_SHORT_MAX: u64 = 64 << 10;

/// The documents of a collection at one moment.
pub(crate) struct SearchedCollection {
    collection: Arc<Collection>,
    snapshot: Arc<Snapshot>,
    document: Vec<u8>,
}

impl SearchedCollection {
    pub fn new(collection: Arc<Collection>, snapshot: Arc<Snapshot>) -> Self {
        Self { collection, snapshot, document: Vec::new() }
    }
}

impl Searched for SearchedCollection {
    fn index(&self, name: &str) -> Option<SearchIndexDefinition> {
        self.collection.search_index(name).map(|index| index.definition.clone())
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
}
