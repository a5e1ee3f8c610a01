//! Counting. Without a filter the collection knows its count; if keys decide the filter, only the index is read.

use crate::execution::Execution;
use crate::find_query::FindQuery;
use crate::plan::Plan;
use crate::planner;
use bunko_catalog::{Collection, Reading};
use bunko_errors::Result;
use std::sync::Arc;

/// The way to count a query's matches.
pub struct CountPlan {
    method: Method,
    skip: u64,
    limit: Option<u64>,
}

enum Method {
    /// The number of documents that the store keeps for the collection.
    RecordStore(Arc<Collection>),
    Scan(Plan),
}

impl CountPlan {
    /// Plans a count; ignores the query's sort and projection.
    /// # Errors
    /// As [`crate::plan`].
    pub fn new(collection: &Arc<Collection>, query: FindQuery) -> Result<Self> {
        let (skip, limit) = (query.skip, query.limit);
        // The stored count is that of the present state.
        let is_present = Reading::of(&*query.scope.operation).is_present();
        let method = if is_present && query.has_no_filter() && query.hint.is_none() {
            Method::RecordStore(Arc::clone(collection))
        } else {
            let all = FindQuery { skip: 0, limit: None, sort: None, projection: None, ..query };
            Method::Scan(planner::plan(collection, all)?)
        };
        Ok(Self { method, skip, limit })
    }

    /// As [`Plan::contested`].
    /// # Errors
    /// Errors of the operation.
    pub fn contested(self) -> Result<Self> {
        let method = match self.method {
            Method::Scan(plan) => Method::Scan(plan.contested()?),
            known @ Method::RecordStore(_) => known,
        };
        Ok(Self { method, ..self })
    }

    /// The plan that finds the documents to count; `None` if the stored count is used.
    pub fn plan(&self) -> Option<&Plan> {
        match &self.method {
            Method::RecordStore(_) => None,
            Method::Scan(plan) => Some(plan),
        }
    }

    /// Counts. Returns the execution too, if there was one, for explain.
    /// # Errors
    /// As [`Execution::next`].
    pub fn run(&self) -> Result<(u64, Option<Execution>)> {
        let (all, execution) = match &self.method {
            Method::RecordStore(collection) => (collection.count(), None),
            Method::Scan(plan) => {
                let mut execution = plan.open()?;
                let most = self.limit.map_or(u64::MAX, |limit| limit.saturating_add(self.skip));
                (execution.count(most)?, Some(execution))
            }
        };
        let behind_skip = all.saturating_sub(self.skip);
        Ok((self.limit.map_or(behind_skip, |limit| behind_skip.min(limit)), execution))
    }

    pub(crate) fn skip(&self) -> u64 {
        self.skip
    }
}

/// Counts a query's matches in the present state.
/// # Errors
/// As [`crate::plan`] and [`Execution::next`].
pub fn count(collection: &Arc<Collection>, query: FindQuery) -> Result<u64> {
    Ok(CountPlan::new(collection, query)?.run()?.0)
}
