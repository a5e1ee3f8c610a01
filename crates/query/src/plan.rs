//! A plan: which stages run in which order, ready to be opened on a snapshot, again and again.

use crate::contest::{self, Contest};
use crate::execution::Execution;
use crate::find_query::FindQuery;
use crate::planner;
use crate::stages::{DocumentStage, Stage};
use bunko_catalog::{Collection, Index, Multikey};
use bunko_errors::Result;
use bunko_store::{KeyspaceId, Snapshot};
use std::sync::Arc;

/// Beyond that many documents a walk may take long.
const LONG_DOCUMENTS: u64 = 2_000;

/// How to answer one query. Cheap to clone.
#[derive(Clone)]
pub struct Plan {
    parts: Arc<Parts>,
    /// The trial that it has won, where it is to be explained.
    contest: Option<Arc<Contest>>,
    /// The plan of the rules, with its rivals, where this one is kept from an earlier trial.
    origin: Option<Arc<Plan>>,
}

pub(crate) struct Parts {
    pub collection: Arc<Collection>,
    pub query: Arc<FindQuery>,
    pub root: Box<dyn DocumentStage>,
    /// Number of stages; their numbers are below it.
    pub stages: usize,
    pub used: Vec<UsedIndex>,
    /// Other indexes that may serve the query better: only a trial can tell.
    pub rivals: Vec<Arc<Index>>,
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
        Self { parts: Arc::new(parts), contest: None, origin: None }
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    pub(crate) fn after(self, contest: Contest) -> Self {
        Self { contest: Some(Arc::new(contest)), ..self }
    }

    pub(crate) fn kept_for(self, origin: Self) -> Self {
        Self { origin: Some(Arc::new(origin)), ..self }
    }

    /// The plan whose rivals may take its place.
    pub(crate) fn origin(&self) -> &Self {
        self.origin.as_deref().unwrap_or(self)
    }

    pub(crate) fn contest(&self) -> Option<&Contest> {
        self.contest.as_deref()
    }

    /// The plan as it is explained: where no rule says which of several indexes serves best, they run against each other.
    /// # Errors
    /// What the operation says.
    pub fn contested(&self) -> Result<Self> {
        contest::explained(self)
    }

    /// Whether only a trial tells which index serves the query best.
    pub fn is_contested(&self) -> bool {
        !self.parts.rivals.is_empty()
    }

    /// Whether documents are found by an index rather than by a scan of all.
    pub fn uses_index(&self) -> bool {
        self.index().is_some()
    }

    /// Where the keys of its first index are.
    pub(crate) fn index(&self) -> Option<KeyspaceId> {
        self.parts.used.first().map(|used| used.index.keyspace)
    }

    /// Whether it sorts what it has found.
    pub(crate) fn sorts(&self) -> bool {
        fn any(query: &FindQuery, stage: &dyn Stage) -> bool {
            stage.name(query) == "SORT" || stage.inputs().into_iter().any(|input| any(query, input))
        }
        let root: &dyn Stage = self.parts.root.as_ref();
        any(&self.parts.query, root)
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
            plan.parts.collection.wait_for_indexes(|| plan.parts.query.scope.operation.check())?;
            plan = planner::plan(&plan.parts.collection, Arc::clone(&plan.parts.query))?;
            // An index may have been finished after the old snapshot was taken.
            opened = snapshot(&plan)?;
        }
        plan.begin(Arc::new(opened))
    }

    /// The same on a snapshot that others share, which it stays on. The query must name the indexes that it may use:
    /// those that were ready when the snapshot was taken.
    /// # Errors
    /// As [`Self::open`].
    pub fn open_shared(&self, snapshot: &Arc<Snapshot>) -> Result<Execution> {
        debug_assert!(self.parts.query.among.is_some());
        let mut plan = self.clone();
        while !plan.holds() {
            plan.parts.collection.wait_for_indexes(|| plan.parts.query.scope.operation.check())?;
            plan = planner::plan(&plan.parts.collection, Arc::clone(&plan.parts.query))?;
        }
        plan.begin(Arc::clone(snapshot))
    }

    fn begin(self, snapshot: Arc<Snapshot>) -> Result<Execution> {
        let (plan, works_max, choice) = contest::settle(self, &snapshot)?;
        plan.parts.used.iter().for_each(|used| used.index.note_use());
        let mut execution = Execution::new(plan, snapshot);
        execution.note_choice(choice);
        execution.watch(works_max);
        Ok(execution)
    }

    /// Whether the plan's indexes still are what it took them for. A snapshot that was taken before can be read by them then.
    fn holds(&self) -> bool {
        (self.parts.used.is_empty() || !self.parts.collection.are_indexes_changing())
            && self.dropped_index().is_none()
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
            // Another plan may be the one that runs.
            _ if self.is_contested() => true,
            Effort::Lookups(count) => count > LONG_DOCUMENTS,
            Effort::Steady => self.parts.query.wanted().is_none_or(|wanted| wanted > LONG_DOCUMENTS),
            Effort::Searching => true,
        }
    }
}
