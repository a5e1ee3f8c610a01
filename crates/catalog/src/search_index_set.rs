//! Creation, update and removal of a collection's search indexes.

use crate::transaction::{announce, exclude_all};
use crate::waiting::lock;
use crate::{Catalog, Collection, SearchIndex, SearchIndexes, from_storage, persistence, user_writes};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{Batch, Lsn};
use std::sync::Arc;

impl Catalog {
    /// Replaces a collection's search indexes with those that `change` makes of them.
    /// # Errors
    /// As `change`; `NamespaceNotFound` if the collection was dropped meanwhile; as `OperationContext::check` while
    /// this waits for writers and transactions in the collection.
    pub fn change_search_indexes(
        &self,
        collection: &Arc<Collection>,
        operation: &dyn OperationSource,
        change: &mut dyn FnMut(&[Arc<SearchIndex>]) -> Result<SearchIndexes>,
    ) -> Result<Lsn> {
        user_writes::check_collection(collection, operation)?;
        let _announced = announce(collection, operation)?;
        let _changes = lock(&self.changes, operation)?;
        let _no_writer = exclude_all(collection, operation)?;
        let namespace = collection.namespace();
        if collection.is_dropped() {
            return Err(Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, format!("ns not found {namespace}")));
        }
        let before = collection.search_indexes();
        collection.set_search_indexes(change(&before)?);
        let mut batch = Batch::new();
        let record = persistence::encode(collection, &namespace, &collection.indexes());
        let committed = persistence::put(&self.store, &mut batch, collection.catalog_record, record)
            .and_then(|()| self.store.commit(&batch).map_err(from_storage));
        if committed.is_err() {
            collection.set_search_indexes(before.to_vec());
        }
        committed
    }
}
