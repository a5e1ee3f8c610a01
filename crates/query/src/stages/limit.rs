//! LIMIT: passes on a maximum number of documents.

use super::{DocumentStage, Documents, Row, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::DocumentBuf;
use bunko_errors::Result;

/// Ends after `count` documents.
pub(crate) struct Limit {
    pub number: StageNumber,
    pub count: u64,
    pub input: Box<dyn DocumentStage>,
}

impl Stage for Limit {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "LIMIT"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        vec![self.input.as_ref()]
    }

    fn describe(&self, _query: &FindQuery, facts: &mut Facts<'_>) {
        crate::explain::append_count(facts, "limitAmount", self.count);
    }

    fn describe_run(&self, _statistics: &StageStatistics, _facts: &mut DocumentBuf) {}

    fn effort(&self) -> Effort {
        self.input.effort()
    }
}

impl DocumentStage for Limit {
    fn open(&self, run: &Run) -> Box<dyn Documents> {
        Box::new(Limited { number: self.number, left: self.count, input: self.input.open(run) })
    }
}

struct Limited {
    number: StageNumber,
    left: u64,
    input: Box<dyn Documents>,
}

impl Documents for Limited {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        let row = if self.left == 0 { None } else { self.input.next(run)? };
        let statistics = run.at(self.number);
        if row.is_some() {
            self.left -= 1;
            statistics.advanced += 1;
        } else {
            statistics.is_at_end = true;
        }
        Ok(row)
    }

    fn is_over(&self) -> bool {
        self.left == 0 || self.input.is_over()
    }
}
