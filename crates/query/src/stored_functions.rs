//! Functions in a database's `system.js`.

use crate::{FindQuery, QueryScope, plan};
use bunko_bson::DocumentRef;
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::Result;
use bunko_javascript::{StoredFunctions, StoredVisitor};
use bunko_operation::OperationContext;
use std::sync::Arc;

/// The collection in which clients store functions for scripts.
const COLLECTION: &str = "system.js";

/// Reads the functions again for each operation, so that changes apply from the next operation. As on MongoDB, a user
/// who may run a script needs no privilege on the collection.
pub struct SystemFunctions {
    catalog: Arc<Catalog>,
    database: String,
}

impl SystemFunctions {
    /// The functions of a database.
    pub fn new(catalog: &Arc<Catalog>, database: &str) -> Arc<Self> {
        Arc::new(Self { catalog: Arc::clone(catalog), database: database.to_owned() })
    }
}

impl StoredFunctions for SystemFunctions {
    fn read(&self, operation: &Arc<OperationContext>, visit: &mut StoredVisitor<'_>) -> Result<()> {
        let namespace = Namespace::new(&self.database, COLLECTION)?;
        let Some(collection) = self.catalog.collection(&namespace) else { return Ok(()) };
        let scope = Arc::new(QueryScope::new(0, Arc::clone(operation)));
        let mut execution = plan(&collection, FindQuery::new(DocumentRef::EMPTY, scope)?)?.open()?;
        while let Some(document) = execution.next()? {
            visit(document.get("_id"), document.get("value"))?;
        }
        Ok(())
    }
}
