//! The search of a statement, for the profiler: kept as it is, and described only if the statement is recorded.

use crate::Execution;
use crate::plan_report::PlanReport;
use crate::run::ExecutionStatistics;
use bunko_bson::DocumentBuf;
use bunko_catalog::Collection;
use std::sync::Arc;

/// The search of a finished statement.
pub enum LastSearch {
    /// A search by `_id`.
    ById {
        /// The collection.
        collection: Arc<Collection>,
        /// Whether a record had the `_id`.
        is_found: bool,
        /// Whether the filter has no other condition.
        is_filter: bool,
    },
    /// A search by a plan.
    Planned(Box<Execution>),
}

impl LastSearch {
    /// Index keys and documents that it examined.
    pub fn statistics(&self) -> ExecutionStatistics {
        match self {
            Self::ById { is_found, .. } => {
                let found = u64::from(*is_found);
                ExecutionStatistics { keys_examined: found, docs_examined: found, returned: found }
            }
            Self::Planned(execution) => execution.statistics(),
        }
    }

    /// The plan below a stage with this name, such as `UPDATE`. If `express` allows it and the filter is only an `_id`,
    /// the report has one stage whose name begins with `EXPRESS`, as on MongoDB.
    pub fn report(&self, stage: &str, express: Express) -> PlanReport {
        let totals = self.statistics();
        match self {
            Self::ById { collection, is_filter: true, .. } if express == Express::Yes => {
                let lookup = PlanReport::of_id_lookup(collection.is_clustered(), totals.docs_examined > 0);
                let name = format!("EXPRESS_{stage}");
                let mut stages = DocumentBuf::new().with("stage", name.as_str());
                for fact in lookup.stages.as_ref().iter().skip(1) {
                    stages.append(fact.name, fact.value);
                }
                PlanReport { summary: format!("{},{name}", lookup.summary), stages, ..lookup }
            }
            Self::ById { collection, is_filter, .. } => {
                let name = match (collection.is_clustered(), is_filter) {
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
            Self::Planned(execution) => {
                let report = execution.report();
                let stages = DocumentBuf::new().with("stage", stage).with("inputStage", &report.stages);
                PlanReport { stages, ..report }
            }
        }
    }
}

/// Whether MongoDB runs the statement without a plan if it is for one `_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Express {
    /// An update without upsert, or a delete, of one document.
    Yes,
    /// Any other.
    No,
}
