//! Counting: without a filter from the collection's own figure, with one that keys decide from the index alone.

use crate::execution::Execution;
use crate::find_query::FindQuery;
use crate::plan::Plan;
use crate::planner;
use bunko_catalog::{Collection, Reading};
use bunko_errors::Result;
use std::sync::Arc;

/// How to count what a query matches.
pub struct CountPlan {
    method: Method,
    skip: u64,
    limit: Option<u64>,
}

enum Method {
    /// The collection's number of documents, which the store keeps.
    RecordStore(Arc<Collection>),
    Scan(Plan),
}

impl CountPlan {
    /// Plans counting; the query's sort and projection make no difference.
    /// # Errors
    /// As [`crate::plan`].
    pub fn new(collection: &Arc<Collection>, query: FindQuery) -> Result<Self> {
        let (skip, limit) = (query.skip, query.limit);
        // The collection's figure is that of the present.
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
    /// What the operation says.
    pub fn contested(self) -> Result<Self> {
        let method = match self.method {
            Method::Scan(plan) => Method::Scan(plan.contested()?),
            known @ Method::RecordStore(_) => known,
        };
        Ok(Self { method, ..self })
    }

    /// The plan that finds what is counted; `None` where the collection knows the number.
    pub fn plan(&self) -> Option<&Plan> {
        match &self.method {
            Method::RecordStore(_) => None,
            Method::Scan(plan) => Some(plan),
        }
    }

    /// Counts, and gives the execution, if there was one, for explain.
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

/// Counts what a query matches, as of now.
/// # Errors
/// As [`crate::plan`] and [`Execution::next`].
pub fn count(collection: &Arc<Collection>, query: FindQuery) -> Result<u64> {
    Ok(CountPlan::new(collection, query)?.run()?.0)
}
