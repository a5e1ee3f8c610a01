//! A plan: stages and their order, ready to be opened on snapshots repeatedly, and how it was chosen among others.

use crate::effort::Effort;
use crate::find_query::FindQuery;
use crate::planner::{BranchScan, IndexBounds, OrBounds, Order};
use crate::run::{ExecutionStatistics, StageStatistics};
use crate::stages::{DocumentStage, Stage};
use bunko_catalog::{Collection, Estimate, Index, Multikey};
use bunko_store::KeyspaceId;
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
    /// The choice among the candidates that the plan is.
    pub chosen: Option<Chosen>,
    /// The candidates of which estimates or a trial choose one, first this plan's own; none if rules prove it the best.
    pub contenders: Vec<Contender>,
    /// Whether an index filter restricted the indexes.
    pub is_filtered: bool,
    /// Whether planning took too many steps, so that it fell back to a scan of the collection.
    pub is_stopped: bool,
    /// Number of steps that planning took.
    pub steps: usize,
}

/// A choice of indexes, with the scans of an `$or`'s branches if these are known.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'u> {
    pub chosen: Chosen,
    pub union: Option<&'u OrBounds>,
}

/// A way to use indexes that may be the best for the query.
pub(crate) struct Contender {
    pub chosen: Chosen,
    /// Its scans: one, or those of the branches of an `$or`. If there are very many, some of them.
    pub scans: Vec<BranchScan>,
    /// Number of all scans.
    pub scans_count: usize,
    /// All scans of an `$or`'s branches, so that a plan of them need not look for them again while they hold; `None` for a
    /// large filter, whose scans are not kept twice.
    pub union: Option<Arc<OrBounds>>,
    /// Whether its keys come in the query's order.
    pub is_sorted: bool,
    pub reads_documents: bool,
    /// Whether its bounds hold every condition of the query.
    pub decides_all: bool,
}

impl Contender {
    /// The request for a plan of it.
    pub fn asked(&self) -> Asked<'_> {
        Asked { chosen: self.chosen, union: self.union.as_deref() }
    }

    /// The bounds, if it is one scan of an index.
    pub fn bounds(&self) -> Option<&IndexBounds> {
        match (self.chosen, self.scans.as_slice()) {
            (Chosen::One(_), [BranchScan::Keys(bounds, _)]) => Some(bounds),
            _ => None,
        }
    }
}

/// An index that the plan uses, with the assumption that the plan makes about it.
pub(crate) struct UsedIndex {
    pub index: Arc<Index>,
    /// The paths on which documents had arrays at planning. More such paths invalidate the plan.
    pub multikey: Arc<Multikey>,
}

/// The reason for the choice of the executed plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanChoice {
    /// By the planner's rules.
    #[default]
    Rules,
    /// By estimates: it was clearly the cheapest.
    Estimates,
    /// By a trial against its rivals.
    Trial,
    /// From the plan cache: it won an earlier trial for the shape.
    Cache,
    /// By another trial, after the cached plan had examined `works` entries without a result.
    Replanned {
        /// Entries that the cached plan examined.
        works: u64,
    },
}

/// The indexes of a plan that was chosen among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    One(KeyspaceId),
    /// The intersection of two.
    Both(KeyspaceId, KeyspaceId),
    /// A geospatial index, by the keys of a region.
    Region(KeyspaceId),
    /// The indexes of the branches of the `$or` at a position among the conditions.
    Branches {
        position: usize,
        order: Order,
    },
}

/// The estimate of one candidate, or of the intersection of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanEstimate {
    pub chosen: Chosen,
    /// Keys read, without a limit.
    pub keys: Estimate,
    /// Documents read, without a limit.
    pub documents: Estimate,
    /// Results of the query.
    pub results: Estimate,
    pub cost: Estimate,
    /// Version of the sample.
    pub version: u64,
}

/// One candidate's run.
pub(crate) struct Trial {
    pub plan: Plan,
    pub stages: Vec<StageStatistics>,
    pub totals: ExecutionStatistics,
    pub works: u64,
    pub score: f64,
    /// Whether it reached its end, or enough results.
    pub is_enough: bool,
}

/// Candidates that ran against each other or were estimated, winner first.
pub(crate) struct Contest {
    pub trials: Vec<Trial>,
    pub decided_by: DecidedBy,
    /// Whether the winner is the plan that the cache uses for this shape.
    pub is_cached: bool,
}

/// How a contest was decided.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecidedBy {
    Estimates,
    Trial,
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

    /// The choice that the plan is, if it is one that is made among others.
    pub(crate) fn chosen(&self) -> Option<Chosen> {
        self.parts.chosen
    }

    /// Whether the plan uses an index.
    pub(crate) fn uses(&self, index: &Index) -> bool {
        self.parts.used.iter().any(|used| used.index.keyspace == index.keyspace)
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
    pub fn is_stopped(&self) -> bool {
        self.parts.is_stopped
    }

    /// Number of steps that planning took, each about a tenth of a microsecond.
    pub fn planning_steps(&self) -> usize {
        self.parts.steps
    }

    /// The collection of the plan.
    pub fn collection(&self) -> &Arc<Collection> {
        &self.parts.collection
    }

    /// Whether the plan's assumptions about its indexes still hold, so that an earlier snapshot can be read by them.
    pub(crate) fn holds(&self) -> bool {
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
