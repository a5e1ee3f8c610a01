//! The collections by all that they are looked up by.
//!
//! **Invariant:** whatever is asked takes as long among 20,000 collections as among two, but for lists of many.

use crate::Collection;
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All collections.
#[derive(Default)]
pub(crate) struct Directory {
    by_namespace: HashMap<String, Arc<Collection>>,
    by_uuid: HashMap<[u8; 16], Arc<Collection>>,
    databases: BTreeMap<String, BTreeMap<String, Arc<Collection>>>,
    /// The name of the database that has it in lower case.
    by_lower_case: HashMap<String, String>,
}

impl Directory {
    /// Adds a collection under its present name.
    pub fn insert(&mut self, collection: &Arc<Collection>) {
        let namespace = collection.namespace();
        let (name, database) = (namespace.as_str(), namespace.database());
        self.by_namespace.insert(name.to_owned(), Arc::clone(collection));
        self.by_uuid.insert(collection.uuid, Arc::clone(collection));
        if let Some(database) = self.databases.get_mut(database) {
            database.insert(name.to_owned(), Arc::clone(collection));
        } else {
            let only = BTreeMap::from([(name.to_owned(), Arc::clone(collection))]);
            self.databases.insert(database.to_owned(), only);
            self.by_lower_case.insert(database.to_lowercase(), database.to_owned());
        }
    }

    /// Removes a collection, which still has the name that it had when it came.
    pub fn remove(&mut self, collection: &Collection) {
        let namespace = collection.namespace();
        self.by_namespace.remove(namespace.as_str());
        self.by_uuid.remove(&collection.uuid);
        let Some(database) = self.databases.get_mut(namespace.database()) else { return };
        database.remove(namespace.as_str());
        if database.is_empty() {
            self.databases.remove(namespace.database());
            self.by_lower_case.remove(&namespace.database().to_lowercase());
        }
    }

    /// The collection with that name, database and all.
    pub fn named(&self, namespace: &str) -> Option<&Arc<Collection>> {
        self.by_namespace.get(namespace)
    }

    pub fn with_uuid(&self, uuid: [u8; 16]) -> Option<&Arc<Collection>> {
        self.by_uuid.get(&uuid)
    }

    /// Those of a database by name.
    pub fn of_database(&self, database: &str) -> impl Iterator<Item = &Arc<Collection>> {
        self.databases.get(database).into_iter().flat_map(BTreeMap::values)
    }

    /// Databases that have a collection, by name.
    pub fn databases(&self) -> impl Iterator<Item = &str> {
        self.databases.keys().map(String::as_str)
    }

    /// The database whose name differs from that one only in case.
    pub fn in_other_case(&self, database: &str) -> Option<&str> {
        let there = self.by_lower_case.get(&database.to_lowercase())?;
        (there != database).then_some(there)
    }
}
