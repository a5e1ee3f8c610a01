//! Query settings of one query shape, as the planner sees them.

use crate::hint::Hint;
use bunko_bson::{DocumentBuf, DocumentRef, order};
use bunko_catalog::Index;
use bunko_store::Direction;

/// Settings of one shape. They apply to all that a command of the shape reads, also in nested pipelines.
#[derive(Clone, Debug, Default)]
pub struct QuerySettings {
    /// The settings as the administrator sent them, for explain.
    pub document: DocumentBuf,
    /// The indexes allowed, by collection.
    pub allowed: Vec<AllowedIndexes>,
}

/// The allowed indexes of one collection.
#[derive(Clone, Debug)]
pub struct AllowedIndexes {
    /// `database.collection`.
    pub namespace: String,
    /// Names, key patterns, and scans of the collection, whether they exist or not.
    pub hints: Vec<Hint>,
}

impl QuerySettings {
    /// The allowed indexes of a collection, if they are restricted.
    pub fn allowed_in(&self, namespace: &str) -> Option<&AllowedIndexes> {
        self.allowed.iter().find(|allowed| allowed.namespace == namespace)
    }
}

impl AllowedIndexes {
    /// Whether an index may be used.
    pub fn allows(&self, index: &Index) -> bool {
        self.hints.iter().any(|hint| match hint {
            Hint::Name(name) => *name == index.name,
            Hint::KeyPattern(pattern) => is_same(pattern.as_ref(), index.key_pattern()),
            Hint::Natural(_) => false,
        })
    }

    /// The direction in which the collection may be scanned, if it may be scanned.
    pub(crate) fn scan(&self) -> Option<Direction> {
        self.hints.iter().find_map(|hint| match hint {
            Hint::Natural(direction) => Some(*direction),
            _ => None,
        })
    }
}

fn is_same(one: DocumentRef<'_>, other: DocumentRef<'_>) -> bool {
    order::compare_documents(one, other).is_eq()
}
