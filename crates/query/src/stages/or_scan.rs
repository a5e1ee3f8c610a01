//! OR: the records that any of several stages finds, each once.

use super::{RecordStage, Records, Stage, StageNumber};
use crate::execution::{Run, StageStatistics};
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::plan::Effort;
use bunko_bson::DocumentBuf;
use bunko_errors::Result;
use bunko_store::RecordId;
use std::collections::HashSet;

/// Runs the branches one after the other.
pub(crate) struct OrScan {
    pub number: StageNumber,
    pub branches: Vec<Box<dyn RecordStage>>,
}

impl Stage for OrScan {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "OR"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        self.branches.iter().map(|branch| branch.as_ref() as &dyn Stage).collect()
    }

    fn describe(&self, _query: &FindQuery, _facts: &mut Facts<'_>) {}

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        facts
            .append("dupsTested", statistics.duplicates_tested as i32)
            .append("dupsDropped", statistics.duplicates_dropped as i32);
    }

    fn effort(&self) -> Effort {
        Effort::sum(self.branches.iter().map(|branch| branch.effort()))
    }
}

impl RecordStage for OrScan {
    fn open(&self, run: &Run) -> Box<dyn Records> {
        Box::new(Union {
            number: self.number,
            branches: self.branches.iter().map(|branch| branch.open(run)).collect(),
            current: 0,
            seen: HashSet::new(),
        })
    }
}

struct Union {
    number: StageNumber,
    branches: Vec<Box<dyn Records>>,
    current: usize,
    seen: HashSet<RecordId>,
}

impl Records for Union {
    fn next(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        while let Some(branch) = self.branches.get_mut(self.current) {
            let Some(record) = branch.next(run)? else {
                self.current += 1;
                continue;
            };
            let statistics = run.at(self.number);
            statistics.duplicates_tested += 1;
            if self.seen.insert(record) {
                statistics.advanced += 1;
                return Ok(Some(record));
            }
            statistics.duplicates_dropped += 1;
            statistics.rejected += 1;
        }
        run.at(self.number).is_at_end = true;
        Ok(None)
    }
}
