//! Index filters: an operator's choice of the indexes that the planner may use for a query shape.
//!
//! Filters are kept in memory, as in MongoDB: a restart or a drop of the collection removes them.

use bunko_bson::{DocumentBuf, DocumentRef, Value, order};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of filters of one collection; further ones are refused. A filter stays until it is cleared.
pub const INDEX_FILTERS_MAX: usize = 1_000;

/// The filter of one query shape.
#[derive(Clone, Debug)]
pub struct IndexFilter {
    /// A query filter of the shape, as an example.
    pub query: DocumentBuf,
    /// The sort order of the shape.
    pub sort: DocumentBuf,
    /// The projection of the shape.
    pub projection: DocumentBuf,
    /// The collation of the shape; empty for none.
    pub collation: DocumentBuf,
    /// Key patterns and names of the allowed indexes, which may not exist.
    pub indexes: Vec<Value>,
}

impl IndexFilter {
    /// Whether an index with this name and key pattern is allowed.
    pub fn allows(&self, name: &str, key_pattern: DocumentRef<'_>) -> bool {
        self.indexes.iter().any(|allowed| match allowed {
            Value::String(allowed) => allowed == name,
            Value::Document(pattern) => order::compare_documents(pattern.as_ref(), key_pattern).is_eq(),
            _ => false,
        })
    }
}

/// The filters of a collection, by the bytes of their shapes.
pub type IndexFilters = BTreeMap<Vec<u8>, Arc<IndexFilter>>;
