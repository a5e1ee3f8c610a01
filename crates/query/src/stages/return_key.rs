//! RETURN_KEY: the index keys that led to documents, instead of the documents.

use super::projection::Projecting;
use super::{DocumentStage, Documents, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::DocumentBuf;

/// Replaces each document by the key stored with it; without an index, by an empty document.
pub(crate) struct ReturnKey {
    pub number: StageNumber,
    pub input: Box<dyn DocumentStage>,
}

impl Stage for ReturnKey {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "RETURN_KEY"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        vec![self.input.as_ref()]
    }

    fn describe(&self, _query: &FindQuery, _facts: &mut Facts<'_>) {}

    fn describe_run(&self, _statistics: &StageStatistics, _facts: &mut DocumentBuf) {}

    fn effort(&self) -> Effort {
        self.input.effort()
    }
}

impl DocumentStage for ReturnKey {
    fn open(&self, run: &Run) -> Box<dyn Documents> {
        // The query returns keys, and documents carry them: see `FindQuery::given` and `FindQuery::holds_metadata`.
        Projecting::open(self.number, self.input.as_ref(), run)
    }
}
