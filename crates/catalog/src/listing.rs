//! Lists databases and collections.

use crate::{Catalog, Collection, Namespace};
use std::sync::Arc;

impl Catalog {
    /// The names of databases that have a collection, in order.
    pub fn databases(&self) -> Vec<String> {
        self.collections.read().databases().map(str::to_owned).collect()
    }

    /// All collections of a database, ordered by name.
    pub fn collections(&self, database: &str) -> Vec<Arc<Collection>> {
        self.collections.read().of_database(database).cloned().collect()
    }

    /// All collections of a database with their names, which all are of one moment, ordered by name. A collection that is
    /// asked for its name later may have got that of another one in the list, which it replaced.
    pub fn named_collections(&self, database: &str) -> Vec<(Arc<Namespace>, Arc<Collection>)> {
        let collections = self.collections.read();
        collections.of_database(database).map(|found| (found.namespace(), Arc::clone(found))).collect()
    }
}
