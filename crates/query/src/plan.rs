//! A plan: stages and their order, ready to be opened on snapshots repeatedly.

use crate::contest::{self, Contest};
use crate::estimates::PlanEstimate;
use crate::execution::Execution;
use crate::find_query::FindQuery;
use crate::planner::{self, Chosen, IndexBounds};
use crate::stages::{DocumentStage, Stage};
use bunko_catalog::{Collection, Index, Multikey};
use bunko_errors::Result;
use bunko_store::{KeyspaceId, Snapshot};
use std::sync::Arc;

/// Plans over more documents than this may take long.
const LONG_DOCUMENTS: u64 = 2_000;

/// How to answer one query. Cheap to clone.
#[derive(Clone)]
pub struct Plan {
    parts: Arc<Parts>,
    /// The trial that the plan has won, for explain.
    contest: Option<Arc<Contest>>,
    /// The plan that the rules prefer, with its rivals, if the cache or estimates chose this plan.
    origin: Option<Arc<Plan>>,
    /// Its estimated cost, for explain.
    estimate: Option<Arc<PlanEstimate>>,
}

pub(crate) struct Parts {
    pub collection: Arc<Collection>,
    pub query: Arc<FindQuery>,
    pub root: Box<dyn DocumentStage>,
    /// Number of stages; stage numbers are smaller.
    pub stages: usize,
    pub used: Vec<UsedIndex>,
    /// The candidates of which estimates or a trial choose one, first this plan's own; none if rules prove it the best.
    pub contenders: Vec<Contender>,
    /// Whether an index filter restricted the indexes.
    pub is_filtered: bool,
    /// Whether planning took too many steps, so that it fell back to a scan of the collection.
    pub is_stopped: bool,
}

/// A way to use an index that may be the best for the query.
pub(crate) struct Contender {
    pub bounds: IndexBounds,
    /// Whether its keys come in the query's order.
    pub is_sorted: bool,
    pub reads_documents: bool,
    /// Whether its bounds hold every condition of the query.
    pub decides_all: bool,
}

/// An index that the plan uses, with the assumption that the plan makes about it.
pub(crate) struct UsedIndex {
    pub index: Arc<Index>,
    /// The paths on which documents had arrays at planning. More such paths invalidate the plan.
    pub multikey: Arc<Multikey>,
}

/// The amount of work that a stage may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// A known number of lookups.
    Lookups(u64),
    /// Each document is found with little work.
    Steady,
    /// Many entries may be examined before a document is found.
    Searching,
}

impl Effort {
    /// The effort of several stages together.
    pub fn sum(efforts: impl Iterator<Item = Self>) -> Self {
        efforts.fold(Self::Lookups(0), |all, one| match (all, one) {
            (Self::Lookups(all), Self::Lookups(one)) => Self::Lookups(all + one),
            (Self::Searching, _) | (_, Self::Searching) => Self::Searching,
            _ => Self::Steady,
        })
    }
}

impl Plan {
    pub(crate) fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts), contest: None, origin: None, estimate: None }
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

    pub(crate) fn estimated(self, estimate: Option<PlanEstimate>) -> Self {
        Self { estimate: estimate.map(Arc::new), ..self }
    }

    pub(crate) fn estimate(&self) -> Option<&PlanEstimate> {
        self.estimate.as_deref()
    }

    /// The plan that the rules prefer; its rivals may replace it.
    pub(crate) fn origin(&self) -> &Self {
        self.origin.as_deref().unwrap_or(self)
    }

    pub(crate) fn contest(&self) -> Option<&Contest> {
        self.contest.as_deref()
    }

    /// The plan for explain: if neither rules nor estimates prove the best index, the candidates run against each other.
    /// # Errors
    /// Errors of the operation.
    pub fn contested(&self) -> Result<Self> {
        contest::explained(self)
    }

    /// The intersections of each two candidates, whatever they cost: another way to the same answer.
    /// # Errors
    /// As [`crate::plan`].
    pub fn intersections(&self) -> Result<Vec<Self>> {
        contest::intersections(self)
    }

    /// Whether estimates or a trial have to decide between indexes.
    pub fn is_contested(&self) -> bool {
        !self.parts.contenders.is_empty()
    }

    /// Whether the plan finds documents by an index and not by a collection scan.
    pub fn uses_index(&self) -> bool {
        self.index().is_some()
    }

    /// The keyspace of the first index used.
    pub(crate) fn index(&self) -> Option<KeyspaceId> {
        self.parts.used.first().map(|used| used.index.keyspace)
    }

    /// The indexes that the plan uses, if it is one that is chosen among others.
    pub(crate) fn chosen(&self) -> Option<Chosen> {
        match self.parts.used.as_slice() {
            [only] => Some(Chosen::One(only.index.keyspace)),
            [one, other] => Some(Chosen::Both(one.index.keyspace, other.index.keyspace)),
            _ => None,
        }
    }

    /// Whether the plan has a sort stage.
    pub(crate) fn sorts(&self) -> bool {
        fn any(query: &FindQuery, stage: &dyn Stage) -> bool {
            stage.name(query) == "SORT" || stage.inputs().into_iter().any(|input| any(query, input))
        }
        let root: &dyn Stage = self.parts.root.as_ref();
        any(&self.parts.query, root)
    }

    /// The query of the plan.
    pub fn query(&self) -> &Arc<FindQuery> {
        &self.parts.query
    }

    /// Whether an index filter restricted the indexes.
    pub(crate) fn is_filtered(&self) -> bool {
        self.parts.is_filtered
    }

    /// Whether planning took too many steps.
    pub(crate) fn is_stopped(&self) -> bool {
        self.parts.is_stopped
    }

    /// The collection of the plan.
    pub fn collection(&self) -> &Arc<Collection> {
        &self.parts.collection
    }

    /// Starts the plan on the snapshot of its operation: the present state, or the transaction's. If an index was
    /// dropped or met its first array since planning, plans the query again, on a newer snapshot.
    /// # Errors
    /// As [`crate::plan`] if it has to plan again; errors of the transaction.
    pub fn open(&self) -> Result<Execution> {
        let mut plan = self.clone();
        let snapshot = |plan: &Self| plan.parts.collection.snapshot_for(&*plan.parts.query.scope.operation);
        let mut opened = snapshot(&plan)?;
        while !plan.holds() {
            plan.parts.collection.wait_for_indexes(|| plan.parts.query.scope.operation.check())?;
            plan = planner::plan(&plan.parts.collection, Arc::clone(&plan.parts.query))?;
            // An index may have become ready after the old snapshot was taken.
            opened = snapshot(&plan)?;
        }
        plan.begin(Arc::new(opened))
    }

    /// As [`Self::open`], on a shared snapshot that it keeps even if it plans again. The query's `among` must list the
    /// indexes that were ready when the snapshot was taken.
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

    /// Whether the plan's assumptions about its indexes still hold, so that an earlier snapshot can be read by them.
    fn holds(&self) -> bool {
        (self.parts.used.is_empty() || !self.parts.collection.are_indexes_changing())
            && self.dropped_index().is_none()
            && self.parts.used.iter().all(|used| used.multikey.covers(&used.index.multikey()))
    }

    /// The first index of the plan that was dropped. An index whose options changed still has its keys.
    pub(crate) fn dropped_index(&self) -> Option<&Index> {
        let indexes = self.parts.collection.indexes();
        let is_there = |used: &UsedIndex| indexes.iter().any(|index| index.keyspace == used.index.keyspace);
        self.parts.used.iter().find(|used| !is_there(used)).map(|used| &*used.index)
    }

    /// Whether the plan may take too long to run where other work waits for it: a sort, or a scan of a collection or a
    /// key range, of more than some 2,000 documents.
    pub fn is_long(&self, collection: &Collection) -> bool {
        if collection.count() <= LONG_DOCUMENTS {
            return false;
        }
        match self.parts.root.effort() {
            // A trial may choose another plan.
            _ if self.is_contested() => true,
            Effort::Lookups(count) => count > LONG_DOCUMENTS,
            Effort::Steady => self.parts.query.wanted().is_none_or(|wanted| wanted > LONG_DOCUMENTS),
            Effort::Searching => true,
        }
    }
}
