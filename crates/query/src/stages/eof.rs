//! EOF: no document matches, and nothing is read.

use super::{DocumentStage, Documents, Row, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::DocumentBuf;
use bunko_errors::Result;

/// Yields no documents.
pub(crate) struct Eof {
    pub number: StageNumber,
}

impl Stage for Eof {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "EOF"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }

    fn describe(&self, _query: &FindQuery, facts: &mut Facts<'_>) {
        facts.append("type", "predicateEvalsToFalse");
    }

    fn describe_run(&self, _statistics: &StageStatistics, _facts: &mut DocumentBuf) {}

    fn effort(&self) -> Effort {
        Effort::Lookups(0)
    }
}

impl DocumentStage for Eof {
    fn open(&self, _run: &Run) -> Box<dyn Documents> {
        Box::new(Nothing { number: self.number })
    }
}

struct Nothing {
    number: StageNumber,
}

impl Documents for Nothing {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        run.at(self.number).is_at_end = true;
        Ok(None)
    }
}
