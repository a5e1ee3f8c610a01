//! AND_SORTED: the records that two scans find.
//!
//! Each scan reads the keys of one value, which are in the order of their records. So the scans are walked side by
//! side, and nothing has to be remembered. A scan that is far behind the other seeks instead of reading on. `hash_scan`
//! serves ranges, whose keys are in another order.

use super::index_scan::Scan;
use super::{IndexScan, RecordStage, Records, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::DocumentBuf;
use bunko_errors::Result;
use bunko_store::RecordId;

/// Both scans have bounds that are [in the order of records](crate::planner::IndexBounds::are_in_record_order).
pub(crate) struct AndScan {
    pub number: StageNumber,
    pub scans: [IndexScan; 2],
}

impl Stage for AndScan {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "AND_SORTED"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        self.scans.iter().map(|scan| scan as &dyn Stage).collect()
    }

    fn describe(&self, _query: &FindQuery, _facts: &mut Facts<'_>) {}

    fn describe_run(&self, _statistics: &StageStatistics, _facts: &mut DocumentBuf) {}

    fn effort(&self) -> Effort {
        Effort::Searching
    }
}

impl RecordStage for AndScan {
    fn open(&self, _run: &Run) -> Box<dyn Records> {
        let scans = self.scans.each_ref().map(IndexScan::open_scan);
        Box::new(Intersection { number: self.number, scans, reached: RecordId(0) })
    }
}

struct Intersection {
    number: StageNumber,
    scans: [Scan; 2],
    /// The last record that the second scan returned.
    reached: RecordId,
}

impl Records for Intersection {
    fn next(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        let [one, other] = &mut self.scans;
        let mut least = RecordId(0);
        while let Some(found) = one.next_from(least, run)? {
            if self.reached < found {
                let Some(reached) = other.next_from(found, run)? else { break };
                self.reached = reached;
            }
            if self.reached == found {
                run.at(self.number).advanced += 1;
                return Ok(Some(found));
            }
            run.at(self.number).rejected += 1;
            least = self.reached;
        }
        run.at(self.number).is_at_end = true;
        Ok(None)
    }
}
