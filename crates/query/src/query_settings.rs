//! What an operator set for all queries of one shape, as the planner sees it.

use crate::find_query::Hint;
use bunko_bson::{DocumentBuf, DocumentRef, order};
use bunko_catalog::Index;
use bunko_store::Direction;

/// The settings of one shape. They hold for whatever a command of the shape reads, also in pipelines inside its pipeline.
#[derive(Clone, Debug, Default)]
pub struct QuerySettings {
    /// As they were set, for explain.
    pub document: DocumentBuf,
    /// Which indexes may be used.
    pub allowed: Vec<AllowedIndexes>,
}

/// The indexes of one collection that may be used.
#[derive(Clone, Debug)]
pub struct AllowedIndexes {
    /// `database.collection`.
    pub namespace: String,
    /// Names, key patterns, and scans of the collection, whether they exist or not.
    pub hints: Vec<Hint>,
}

impl QuerySettings {
    /// What is said of a collection's indexes, if anything.
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

    /// In which direction the collection may be scanned, if it may.
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
