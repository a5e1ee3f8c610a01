//! SKIP: drops a number of documents at the start.

use super::{DocumentStage, Documents, Row, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::DocumentBuf;
use bunko_errors::Result;

/// Drops the first `count` documents.
pub(crate) struct Skip {
    pub number: StageNumber,
    pub count: u64,
    pub input: Box<dyn DocumentStage>,
}

impl Stage for Skip {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "SKIP"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        vec![self.input.as_ref()]
    }

    fn describe(&self, _query: &FindQuery, facts: &mut Facts<'_>) {
        crate::explain::append_count(facts, "skipAmount", self.count);
    }

    fn describe_run(&self, _statistics: &StageStatistics, _facts: &mut DocumentBuf) {}

    fn effort(&self) -> Effort {
        self.input.effort()
    }
}

impl DocumentStage for Skip {
    fn open(&self, run: &Run) -> Box<dyn Documents> {
        Box::new(Skipping { number: self.number, left: self.count, input: self.input.open(run) })
    }
}

struct Skipping {
    number: StageNumber,
    left: u64,
    input: Box<dyn Documents>,
}

impl Documents for Skipping {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        while self.left > 0 {
            if self.input.next(run)?.is_none() {
                run.at(self.number).is_at_end = true;
                return Ok(None);
            }
            self.left -= 1;
            run.at(self.number).rejected += 1;
        }
        let row = self.input.next(run)?;
        let statistics = run.at(self.number);
        match row {
            Some(_) => statistics.advanced += 1,
            None => statistics.is_at_end = true,
        }
        Ok(row)
    }

    fn is_over(&self) -> bool {
        self.input.is_over()
    }
}
