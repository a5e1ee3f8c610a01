//! RECORD_STORE_FAST_COUNT: the number of a collection's documents, for a stage that asks for no more.

use super::{DocumentStage, Documents, Row, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::Result;
use bunko_store::RecordId;

/// Yields an empty document for each document of the collection, and reads none. A reader that can take the number at
/// once asks [`crate::Execution::take_count`].
pub(crate) struct StoredCount {
    pub number: StageNumber,
}

impl Stage for StoredCount {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "RECORD_STORE_FAST_COUNT"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }

    fn describe(&self, _query: &FindQuery, _facts: &mut Facts<'_>) {}

    fn describe_run(&self, _statistics: &StageStatistics, _facts: &mut DocumentBuf) {}

    fn effort(&self) -> Effort {
        Effort::Lookups(1)
    }
}

impl DocumentStage for StoredCount {
    fn open(&self, run: &Run) -> Box<dyn Documents> {
        Box::new(Counting { number: self.number, left: run.collection.count() })
    }
}

struct Counting {
    number: StageNumber,
    left: u64,
}

impl Documents for Counting {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        if self.left == 0 {
            run.at(self.number).is_at_end = true;
            return Ok(None);
        }
        run.tick()?;
        self.left -= 1;
        run.at(self.number).advanced += 1;
        Ok(Some(Row { record: RecordId(0), document: DocumentRef::EMPTY }))
    }

    fn take_count(&mut self, run: &mut Run) -> Option<u64> {
        let statistics = run.at(self.number);
        statistics.advanced += self.left;
        statistics.is_at_end = true;
        Some(std::mem::take(&mut self.left))
    }
}
