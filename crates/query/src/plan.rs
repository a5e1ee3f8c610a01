//! A plan: which stages run in which order, ready to be opened on a snapshot, again and again.

use crate::execution::Execution;
use crate::find_query::FindQuery;
use crate::planner;
use crate::stages::DocumentStage;
use bunko_catalog::{Collection, Index, Multikey};
use bunko_errors::Result;
use bunko_store::Snapshot;
use std::sync::Arc;

/// Beyond that many documents a walk may take long.
const LONG_DOCUMENTS: u64 = 2_000;

/// How to answer one query. Cheap to clone.
#[derive(Clone)]
pub struct Plan {
    parts: Arc<Parts>,
}

pub(crate) struct Parts {
    pub collection: Arc<Collection>,
    pub query: Arc<FindQuery>,
    pub root: Box<dyn DocumentStage>,
    /// Number of stages; their numbers are below it.
    pub stages: usize,
    pub used: Vec<UsedIndex>,
    /// Whether an index filter had a say.
    pub is_filtered: bool,
}

/// An index that the plan relies on, and what it relied on.
pub(crate) struct UsedIndex {
    pub index: Arc<Index>,
    /// Where documents had arrays on its paths; more of them make the plan wrong.
    pub multikey: Arc<Multikey>,
}

/// How much a stage may have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// A known number of lookups.
    Lookups(u64),
    /// Documents are found as soon as they are asked for.
    Steady,
    /// Many may have to be looked at before one is found.
    Searching,
}

impl Plan {
    pub(crate) fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The query that was planned.
    pub fn query(&self) -> &Arc<FindQuery> {
        &self.parts.query
    }

    /// Whether an operator said which indexes it may use.
    pub(crate) fn is_filtered(&self) -> bool {
        self.parts.is_filtered
    }

    /// The collection that was planned for.
    pub fn collection(&self) -> &Arc<Collection> {
        &self.parts.collection
    }

    /// Starts the plan on the state that its operation reads: the present one, or that of its transaction. Where an index
    /// has been dropped or has met its first array since the planning, the query is planned again, on a newer snapshot.
    /// # Errors
    /// As [`crate::plan`], when it has to plan again; those of the transaction.
    pub fn open(&self) -> Result<Execution> {
        let mut plan = self.clone();
        let snapshot = |plan: &Self| plan.parts.collection.snapshot_for(&*plan.parts.query.scope.operation);
        let mut opened = snapshot(&plan)?;
        while !plan.holds() {
            plan = planner::plan(&plan.parts.collection, Arc::clone(&plan.parts.query))?;
            // An index may have been finished after the old snapshot was taken.
            opened = snapshot(&plan)?;
        }
        Ok(Execution::new(plan, Arc::new(opened)))
    }

    /// The same on a snapshot that others share, which it stays on. The query must name the indexes that it may use:
    /// those that were ready when the snapshot was taken.
    /// # Errors
    /// As [`Self::open`].
    pub fn open_shared(&self, snapshot: &Arc<Snapshot>) -> Result<Execution> {
        debug_assert!(self.parts.query.among.is_some());
        let mut plan = self.clone();
        while !plan.holds() {
            plan = planner::plan(&plan.parts.collection, Arc::clone(&plan.parts.query))?;
        }
        Ok(Execution::new(plan, Arc::clone(snapshot)))
    }

    /// Whether the plan's indexes still are what it took them for.
    fn holds(&self) -> bool {
        self.dropped_index().is_none()
            && self.parts.used.iter().all(|used| used.multikey.covers(&used.index.multikey()))
    }

    /// One of the plan's indexes that is no more; one whose options have changed still has its keys.
    pub(crate) fn dropped_index(&self) -> Option<&Index> {
        let indexes = self.parts.collection.indexes();
        let is_there = |used: &UsedIndex| indexes.iter().any(|index| index.keyspace == used.index.keyspace);
        self.parts.used.iter().find(|used| !is_there(used)).map(|used| &*used.index)
    }

    /// Whether running the plan may take long, so that it should not run where others wait for it: a scan of a
    /// collection or of a range of keys, or a sort, of more than some 2,000 documents.
    pub fn is_long(&self, collection: &Collection) -> bool {
        if collection.count() <= LONG_DOCUMENTS {
            return false;
        }
        match self.parts.root.effort() {
            Effort::Lookups(count) => count > LONG_DOCUMENTS,
            Effort::Steady => self.parts.query.wanted().is_none_or(|wanted| wanted > LONG_DOCUMENTS),
            Effort::Searching => true,
        }
    }
}
