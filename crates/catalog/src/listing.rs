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

    /// All collections of a database with their names, ordered by name. The names are all of one moment: asked later, a
    /// collection may have the name of another one in the list, which it has replaced.
    pub fn named_collections(&self, database: &str) -> Vec<(Arc<Namespace>, Arc<Collection>)> {
        let collections = self.collections.read();
        collections.of_database(database).map(|found| (found.namespace(), Arc::clone(found))).collect()
    }
}
