//! A collection in one state, for repeated queries.

use crate::temporary::{document, find_query_of};
use bunko_bson::{ArrayBuf, StringOrder};
use bunko_catalog::{Catalog, Collection, Index, StateAsked};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_query::{DistinctValues, Execution, FindQuery, Hint, Plan, QueryScope, count, distinct_query, plan};
use bunko_store::Snapshot;
use std::sync::Arc;

/// Queries one state.
pub struct Reader {
    collection: Arc<Collection>,
    operation: Arc<OperationContext>,
    /// The string order of queries.
    pub strings: StringOrder,
    shared: Option<Shared>,
}

/// A snapshot, and the indexes that were ready before it was taken.
struct Shared {
    snapshot: Arc<Snapshot>,
    indexes: Arc<[Arc<Index>]>,
}

impl Reader {
    /// Reads the present state; no thread may write meanwhile.
    pub fn of_present(collection: &Arc<Collection>) -> Self {
        let (collection, operation) = (Arc::clone(collection), OperationContext::unlimited());
        Self { collection, operation, strings: StringOrder::default(), shared: None }
    }

    /// Reads the state of this moment as operations at a read timestamp do, until an index is built or dropped.
    pub fn of_this_moment(catalog: &Catalog, collection: &Arc<Collection>) -> Self {
        let reader = Self::of_present(collection);
        let (_, read) =
            catalog.read_past(StateAsked::Present, &*OperationContext::unlimited()).expect("the present state");
        reader.operation.join(read);
        reader
    }

    /// Reads the state of this moment as pipelines over several collections do, whatever happens to the indexes.
    pub fn of_a_snapshot(collection: &Arc<Collection>) -> Self {
        let indexes = collection.ready_indexes().into();
        let snapshot = Arc::new(collection.snapshot());
        Self { shared: Some(Shared { snapshot, indexes }), ..Self::of_present(collection) }
    }

    /// Reads the present state in the string order of an index with a collation, if there is one.
    pub fn collated(collection: &Arc<Collection>) -> Option<Self> {
        let index = collection.ready_indexes().into_iter().find(|index| !index.strings.is_bytes())?;
        Some(Self { strings: index.strings.clone(), ..Self::of_present(collection) })
    }

    /// Indexes that a hint may name and that hold all documents. By other indexes a hint finds only the documents that
    /// they hold.
    pub fn whole_indexes(&self) -> Vec<Arc<Index>> {
        let is_whole = |index: &Arc<Index>| {
            let holds_some = matches!(index.kind.name(), "wildcard" | "2d" | "2dsphere");
            !index.is_hidden && !index.is_sparse && index.partial_filter.is_none() && !holds_some
        };
        let ready = self.shared.as_ref().map_or_else(|| self.collection.ready_indexes(), |own| own.indexes.to_vec());
        ready.into_iter().filter(is_whole).collect()
    }

    /// Wildcard indexes that a hint may name. Partial ones are left out, since they omit documents.
    pub fn wildcard_indexes(&self) -> Vec<Arc<Index>> {
        let ready = self.shared.as_ref().map_or_else(|| self.collection.ready_indexes(), |own| own.indexes.to_vec());
        let is_whole = |index: &Arc<Index>| !index.is_hidden && index.partial_filter.is_none();
        ready.into_iter().filter(|index| is_whole(index) && index.kind.name() == "wildcard").collect()
    }

    /// A query from the fields of a find command.
    pub fn query(&self, find: &str) -> FindQuery {
        let scope = QueryScope { strings: self.strings.clone(), ..QueryScope::new(0, Arc::clone(&self.operation)) };
        let query = find_query_of(document(find).as_ref(), scope);
        let mut query = query.unwrap_or_else(|failure| panic!("{find}: {failure}"));
        // The scan that all others are compared with tests the filter as it was sent.
        if !matches!(query.hint, Some(Hint::Natural(_))) {
            query.simplify();
        }
        query
    }

    /// Runs a query on the state.
    /// # Errors
    /// Errors of the query; see also [`Self::is_lost`].
    pub fn open(&self, query: FindQuery) -> Result<Execution> {
        match &self.shared {
            None => plan(&self.collection, query)?.open(),
            Some(Shared { snapshot, indexes }) => {
                let query = FindQuery { among: Some(Arc::clone(indexes)), ..query };
                plan(&self.collection, query)?.open_shared(snapshot)
            }
        }
    }

    /// Runs the candidates for a query.
    /// # Errors
    /// As [`Self::open`].
    pub fn open_rivals(&self, query: FindQuery) -> Result<Vec<Execution>> {
        match &self.shared {
            None => plan(&self.collection, query)?.rivals()?.iter().map(Plan::open).collect(),
            // A shared snapshot shows the same documents, and the plans of rivals are the same.
            Some(_) => Ok(Vec::new()),
        }
    }

    /// Runs the intersections of two indexes that may answer a query.
    /// # Errors
    /// As [`Self::open`].
    pub fn open_intersections(&self, query: FindQuery) -> Result<Vec<Execution>> {
        match &self.shared {
            None => plan(&self.collection, query)?.intersections()?.iter().map(Plan::open).collect(),
            Some(Shared { snapshot, indexes }) => {
                let query = FindQuery { among: Some(Arc::clone(indexes)), ..query };
                let plans = plan(&self.collection, query)?.intersections()?;
                plans.iter().map(|plan| plan.open_shared(snapshot)).collect()
            }
        }
    }

    /// Number of documents for the fields of a find command.
    /// # Errors
    /// As [`Self::open`].
    pub fn count(&self, find: &str) -> Result<u64> {
        if self.shared.is_some() {
            self.open(self.query(find))?.count(u64::MAX)
        } else {
            count(&self.collection, self.query(find))
        }
    }

    /// The distinct values at a path.
    /// # Errors
    /// As [`Self::open`].
    pub fn distinct(&self, path: &str, find: &str) -> Result<ArrayBuf> {
        let query = distinct_query(self.query(find), path);
        let mut values = DistinctValues::new(Arc::clone(&self.operation), query.scope.strings.clone());
        let mut execution = self.open(query)?;
        while let Some(document) = execution.next()? {
            values.add(document, path)?;
        }
        Ok(values.into_found())
    }

    /// Whether a failure means that the state, or an index of it, can no longer be read because indexes were built or
    /// dropped.
    pub fn is_lost(&self, failure: &Failure) -> bool {
        match &self.shared {
            None => {
                let is_hint = failure.code() == ErrorCode::BAD_VALUE && failure.message().contains("hint provided");
                failure.code() == ErrorCode::SNAPSHOT_UNAVAILABLE || is_hint
            }
            Some(Shared { indexes, .. }) => {
                let present = self.collection.ready_indexes();
                let is_gone = |index: &Arc<Index>| !present.iter().any(|other| Arc::ptr_eq(index, other));
                failure.message().contains("hint provided") && indexes.iter().any(is_gone)
            }
        }
    }
}
