//! CLUSTERED_IXSCAN: documents of a clustered collection in `_id` order, all or within bounds. They are read through
//! the `_id` index, which explain does not show.
//!
//! The planner uses it wherever it would scan the records of a clustered collection.

use super::{DocumentStage, Documents, Fetch, IndexScan, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::planner::IndexBounds;
use crate::run::{Run, StageStatistics};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_store::Direction;

/// Scans the collection by `_id`.
pub(crate) struct ClusteredScan {
    fetch: Fetch,
    direction: Direction,
    /// The smallest and the largest `_id` to read, if there are bounds.
    bounds: Option<DocumentBuf>,
}

impl ClusteredScan {
    pub fn new(number: StageNumber, scan: IndexScan, direction: Direction, residual: super::Residual) -> Self {
        let bounds = scan.bounds().is_narrowed().then(|| printed(scan.bounds()));
        Self { fetch: Fetch { number, residual, input: Box::new(scan) }, direction, bounds }
    }
}

fn printed(bounds: &IndexBounds) -> DocumentBuf {
    let intervals = &bounds.fields[0];
    let mut printed = DocumentBuf::new();
    let (first, last) = (intervals.iter().next(), intervals.iter().next_back());
    if let Some(least) = first.map(|first| first.start.as_ref()).filter(|least| !matches!(least, ValueRef::MinKey)) {
        printed.append("minRecord", least);
    }
    if let Some(largest) = last.map(|last| last.end.as_ref()).filter(|largest| !matches!(largest, ValueRef::MaxKey)) {
        printed.append("maxRecord", largest);
    }
    printed
}

impl Stage for ClusteredScan {
    fn name(&self, _query: &FindQuery) -> &'static str {
        if self.bounds.is_some() { "CLUSTERED_IXSCAN" } else { "COLLSCAN" }
    }

    fn number(&self) -> StageNumber {
        self.fetch.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }

    fn describe(&self, query: &FindQuery, facts: &mut Facts<'_>) {
        self.fetch.describe(query, facts);
        facts.append("direction", super::index_scan::direction_name(self.direction));
        if let Some(bounds) = &self.bounds {
            facts.extend(bounds.as_ref());
        }
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        facts.append("docsExamined", statistics.docs_examined as i32);
    }

    fn effort(&self) -> Effort {
        self.fetch.effort()
    }
}

impl DocumentStage for ClusteredScan {
    fn open(&self, run: &Run) -> Box<dyn Documents> {
        self.fetch.open(run)
    }
}
