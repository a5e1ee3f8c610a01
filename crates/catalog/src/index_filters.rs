//! Index filters: which indexes the planner may use for queries of a shape, as an operator said.
//!
//! They are kept in memory, as MongoDB keeps them: a restart or a drop forgets them.

use bunko_bson::{DocumentBuf, DocumentRef, Value, order};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most filters of one collection; further ones are refused. Each is kept until it is cleared.
pub const INDEX_FILTERS_MAX: usize = 1_000;

/// What was said of one shape.
#[derive(Clone, Debug)]
pub struct IndexFilter {
    /// A filter of that shape.
    pub query: DocumentBuf,
    /// Its order.
    pub sort: DocumentBuf,
    /// Its projection.
    pub projection: DocumentBuf,
    /// Its collation; empty for none.
    pub collation: DocumentBuf,
    /// Key patterns and names of the indexes that may be used, whether they exist or not.
    pub indexes: Vec<Value>,
}

impl IndexFilter {
    /// Whether an index of that name and key pattern may be used.
    pub fn allows(&self, name: &str, key_pattern: DocumentRef<'_>) -> bool {
        self.indexes.iter().any(|allowed| match allowed {
            Value::String(allowed) => allowed == name,
            Value::Document(pattern) => order::compare_documents(pattern.as_ref(), key_pattern).is_eq(),
            _ => false,
        })
    }
}

/// The filters of a collection by the bytes of their shapes.
pub type IndexFilters = BTreeMap<Vec<u8>, Arc<IndexFilter>>;
