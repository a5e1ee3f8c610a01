//! RETURN_KEY: the keys by which an index led to documents, instead of the documents.

use super::{DocumentStage, Documents, Row, Stage, StageNumber};
use crate::execution::{Output, Run, StageStatistics};
use crate::find_query::FindQuery;
use crate::plan::Effort;
use bunko_bson::DocumentBuf;
use bunko_errors::Result;

/// Puts the key that is held with a document in its place; where no index was asked, a document without fields.
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

    fn describe(&self, _query: &FindQuery, _facts: &mut DocumentBuf) {}

    fn describe_run(&self, _statistics: &StageStatistics, _facts: &mut DocumentBuf) {}

    fn effort(&self) -> Effort {
        self.input.effort()
    }
}

impl DocumentStage for ReturnKey {
    fn open(&self, run: &Run) -> Box<dyn Documents> {
        Box::new(Returning {
            number: self.number,
            input: self.input.open(run),
            released: DocumentBuf::new(),
            key: Vec::new(),
        })
    }
}

struct Returning {
    number: StageNumber,
    input: Box<dyn Documents>,
    /// The document without what was held with it.
    released: DocumentBuf,
    key: Vec<u8>,
}

impl Documents for Returning {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        let Some(row) = self.input.next(run)? else {
            run.at(self.number).is_at_end = true;
            return Ok(None);
        };
        run.at(self.number).advanced += 1;
        if run.output != Output::Projected {
            return Ok(Some(row));
        }
        self.released = run.query.scope.at_hand.release(row.document);
        let key = run.query.given(row.record, self.released.as_ref(), &mut self.key)?;
        Ok(Some(Row { record: row.record, document: key }))
    }

    fn is_over(&self) -> bool {
        self.input.is_over()
    }
}
