//! The collections, with an index for each way of looking them up.
//!
//! **Invariant:** a lookup takes as long among 20,000 collections as among two, except lists of many collections.

use crate::Collection;
use bunko_store::{KeyspaceId, RecordId};
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// All collections.
#[derive(Default)]
pub(crate) struct Directory {
    by_namespace: HashMap<String, Arc<Collection>>,
    by_uuid: HashMap<[u8; 16], Arc<Collection>>,
    /// By the keyspace of their records, and by their own record in the catalog.
    by_records: HashMap<KeyspaceId, Arc<Collection>>,
    by_catalog_record: HashMap<RecordId, Arc<Collection>>,
    databases: BTreeMap<String, BTreeMap<String, Arc<Collection>>>,
    /// Database names by their lower-case form.
    by_lower_case: HashMap<String, String>,
    /// Whether a collection of view definitions was ever inserted.
    has_views: Arc<AtomicBool>,
}

impl Directory {
    /// Adds a collection under its current name.
    pub fn insert(&mut self, collection: &Arc<Collection>) {
        let namespace = collection.namespace();
        let (name, database) = (namespace.as_str(), namespace.database());
        if namespace.holds_views() {
            self.has_views.store(true, Ordering::Release);
        }
        self.by_namespace.insert(name.to_owned(), Arc::clone(collection));
        self.by_uuid.insert(collection.uuid, Arc::clone(collection));
        self.by_records.insert(collection.records, Arc::clone(collection));
        self.by_catalog_record.insert(collection.catalog_record, Arc::clone(collection));
        if let Some(database) = self.databases.get_mut(database) {
            database.insert(name.to_owned(), Arc::clone(collection));
        } else {
            let only = BTreeMap::from([(name.to_owned(), Arc::clone(collection))]);
            self.databases.insert(database.to_owned(), only);
            self.by_lower_case.insert(database.to_lowercase(), database.to_owned());
        }
    }

    /// Removes a collection. It must still have the name that it was inserted with.
    pub fn remove(&mut self, collection: &Collection) {
        let namespace = collection.namespace();
        self.by_namespace.remove(namespace.as_str());
        self.by_uuid.remove(&collection.uuid);
        self.by_records.remove(&collection.records);
        self.by_catalog_record.remove(&collection.catalog_record);
        let Some(database) = self.databases.get_mut(namespace.database()) else { return };
        database.remove(namespace.as_str());
        if database.is_empty() {
            self.databases.remove(namespace.database());
            self.by_lower_case.remove(&namespace.database().to_lowercase());
        }
    }

    /// A flag that is set once there are views.
    pub fn views_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.has_views)
    }

    /// The collection with this full namespace; `None` if there is none.
    pub fn named(&self, namespace: &str) -> Option<&Arc<Collection>> {
        self.by_namespace.get(namespace)
    }

    pub fn with_uuid(&self, uuid: [u8; 16]) -> Option<&Arc<Collection>> {
        self.by_uuid.get(&uuid)
    }

    /// The collection with this record store; `None` if there is none.
    pub fn with_records(&self, records: KeyspaceId) -> Option<&Arc<Collection>> {
        self.by_records.get(&records)
    }

    /// The collection with this record in the catalog; `None` if there is none.
    pub fn with_catalog_record(&self, record: RecordId) -> Option<&Arc<Collection>> {
        self.by_catalog_record.get(&record)
    }

    /// The collections of a database, ordered by name.
    pub fn of_database(&self, database: &str) -> impl Iterator<Item = &Arc<Collection>> {
        self.databases.get(database).into_iter().flat_map(BTreeMap::values)
    }

    /// The databases that have a collection, ordered by name.
    pub fn databases(&self) -> impl Iterator<Item = &str> {
        self.databases.keys().map(String::as_str)
    }

    /// The database whose name differs from this one only in case; `None` if there is none.
    pub fn in_other_case(&self, database: &str) -> Option<&str> {
        let there = self.by_lower_case.get(&database.to_lowercase())?;
        (there != database).then_some(there)
    }
}
