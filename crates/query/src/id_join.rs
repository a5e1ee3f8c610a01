//! Repeated lookups by `_id` on one snapshot. At first each lookup reads the index. After enough lookups to pay for it,
//! they use a table of the whole collection, if the table fits into the stage's memory.

use crate::lookup_table::{LookupMethod, LookupTable};
use bunko_bson::{DocumentRef, ValueRef};
use bunko_catalog::Collection;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use bunko_store::Snapshot;
use std::sync::Arc;

/// Looks documents of one collection up by `_id`.
pub struct IdJoin {
    collection: Arc<Collection>,
    snapshot: Arc<Snapshot>,
    operation: Arc<OperationContext>,
    method: LookupMethod,
    key: Vec<u8>,
    document: Vec<u8>,
    starts: Vec<usize>,
}

impl IdJoin {
    /// Lookups by an operation, over a snapshot of a collection.
    pub fn new(collection: Arc<Collection>, snapshot: Arc<Snapshot>, operation: Arc<OperationContext>) -> Self {
        Self {
            collection,
            snapshot,
            operation,
            method: LookupMethod::FIRST,
            key: Vec::new(),
            document: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// Shows the document with this `_id`, if there is one. Returns false if the value can match several `_id`s.
    /// # Errors
    /// Errors of storage, of the visitor and of the operation.
    pub fn find(&mut self, id: ValueRef<'_>, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<()>) -> Result<bool> {
        if matches!(id, ValueRef::Array(_) | ValueRef::Null | ValueRef::Undefined | ValueRef::Regex { .. }) {
            return Ok(false);
        }
        let (collection, operation) = (&*self.collection, &*self.operation);
        self.method.count(collection, || table(collection, &self.snapshot, operation))?;
        if let LookupMethod::Table(table) = &self.method {
            self.key.clear();
            collection.append_id_key(&mut self.key, id);
            table.find(&self.key, &mut self.starts, visitor)?;
            return Ok(true);
        }
        if self.collection.find_id_at(&self.snapshot, id, &mut self.document)? {
            visitor(DocumentRef::trusted(&self.document))?;
        }
        Ok(true)
    }
}

/// The documents of a snapshot by `_id`.
fn table(collection: &Collection, snapshot: &Snapshot, operation: &OperationContext) -> Result<Option<LookupTable>> {
    let mut key = Vec::new();
    LookupTable::of(collection, snapshot, operation, &mut |document, keys| {
        let Some(id) = document.get("_id") else { return Ok(()) };
        key.clear();
        collection.append_id_key(&mut key, id);
        keys.add(&key);
        Ok(())
    })
}
