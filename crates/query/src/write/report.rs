//! The search of a statement, for the profiler: kept as it is, and described only where the statement is noted.

use super::search::Search;
use crate::Execution;
use crate::execution::ExecutionStatistics;
use crate::plan_report::PlanReport;
use bunko_bson::DocumentBuf;
use bunko_catalog::Collection;
use std::sync::Arc;

/// The search of a statement that is over.
pub struct LastSearch {
    by: By,
}

enum By {
    Id(Arc<Collection>, FoundById),
    Plan(Box<Execution>),
}

/// A search by `_id`.
#[derive(Clone, Copy)]
pub(super) struct FoundById {
    /// Whether a record had it.
    pub is_found: bool,
    /// Whether the filter asks for nothing else.
    pub is_filter: bool,
}

impl LastSearch {
    pub(super) fn of(search: Search, collection: Arc<Collection>, by_id: FoundById) -> Self {
        let by = match search {
            Search::One(_) => By::Id(collection, by_id),
            Search::Plan(execution) => By::Plan(execution),
        };
        Self { by }
    }

    /// Index keys and documents that it looked at.
    pub fn statistics(&self) -> ExecutionStatistics {
        match &self.by {
            By::Id(_, by_id) => {
                let found = u64::from(by_id.is_found);
                ExecutionStatistics { keys_examined: found, docs_examined: found, returned: found }
            }
            By::Plan(execution) => execution.statistics(),
        }
    }

    /// The plan below a stage of that name, such as `UPDATE`. A lookup by `_id` that is all of `is_express`' statement is told
    /// as MongoDB tells it: as one stage, whose name begins with `EXPRESS`.
    pub fn report(&self, stage: &str, express: Express) -> PlanReport {
        let totals = self.statistics();
        match &self.by {
            By::Id(collection, by_id) if express == Express::Yes && by_id.is_filter => {
                let lookup = PlanReport::of_id_lookup(collection.is_clustered(), totals.docs_examined > 0);
                let name = format!("EXPRESS_{stage}");
                let mut stages = DocumentBuf::new().with("stage", name.as_str());
                for fact in lookup.stages.as_ref().iter().skip(1) {
                    stages.append(fact.name, fact.value);
                }
                PlanReport { summary: format!("{},{name}", lookup.summary), stages, ..lookup }
            }
            By::Id(collection, by_id) => {
                let name = match (collection.is_clustered(), by_id.is_filter) {
                    (true, _) => "CLUSTERED_IXSCAN",
                    (false, true) => "IDHACK",
                    (false, false) => "IXSCAN",
                };
                let mut lookup = DocumentBuf::new().with("stage", name);
                if name == "IXSCAN" {
                    lookup.append("keyPattern", &DocumentBuf::new().with("_id", 1)).append("indexName", "_id_");
                }
                lookup
                    .append("keysExamined", totals.keys_examined as i32)
                    .append("docsExamined", totals.docs_examined as i32);
                PlanReport::of_tree(DocumentBuf::new().with("stage", stage).with("inputStage", &lookup))
            }
            By::Plan(execution) => {
                let report = execution.report();
                let stages = DocumentBuf::new().with("stage", stage).with("inputStage", &report.stages);
                PlanReport { stages, ..report }
            }
        }
    }
}

/// Whether a statement is one that MongoDB runs without a plan where it is for one `_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Express {
    /// An update or a delete of one document that inserts none.
    Yes,
    /// Any other.
    No,
}
