//! PROJECTION_SIMPLE and PROJECTION_DEFAULT: parts of documents.

use super::{DocumentStage, Documents, Row, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::run::{Output, Run, StageStatistics};
use crate::wanted_fields::names_fields_alone;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::Result;

/// Applies the query's projection, and adds record ids if requested.
pub(crate) struct ProjectionStage {
    pub number: StageNumber,
    pub input: Box<dyn DocumentStage>,
}

impl Stage for ProjectionStage {
    fn name(&self, query: &FindQuery) -> &'static str {
        if is_simple(query.projection_document.as_ref()) { "PROJECTION_SIMPLE" } else { "PROJECTION_DEFAULT" }
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        vec![self.input.as_ref()]
    }

    fn describe(&self, query: &FindQuery, facts: &mut Facts<'_>) {
        facts.append("transformBy", &query.projection_document);
    }

    fn describe_run(&self, _statistics: &StageStatistics, _facts: &mut DocumentBuf) {}

    fn effort(&self) -> Effort {
        self.input.effort()
    }
}

/// Whether a projection only includes or excludes top-level fields.
fn is_simple(projection: DocumentRef<'_>) -> bool {
    names_fields_alone(projection) && projection.iter().all(|element| !element.name.contains('.'))
}

impl DocumentStage for ProjectionStage {
    fn open(&self, run: &Run) -> Box<dyn Documents> {
        Projecting::open(self.number, self.input.as_ref(), run)
    }
}

/// Replaces each document by the query's result; stage RETURN_KEY uses it too, since its result is a key.
pub(super) struct Projecting {
    number: StageNumber,
    input: Box<dyn Documents>,
    projected: Vec<u8>,
    /// The document without its metadata.
    released: DocumentBuf,
}

impl Projecting {
    pub(super) fn open(number: StageNumber, input: &dyn DocumentStage, run: &Run) -> Box<dyn Documents> {
        let input = input.open(run);
        Box::new(Self { number, input, projected: Vec::new(), released: DocumentBuf::new() })
    }
}

impl Documents for Projecting {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        let Some(row) = self.input.next(run)? else {
            run.at(self.number).is_at_end = true;
            return Ok(None);
        };
        run.at(self.number).advanced += 1;
        if run.output != Output::Projected {
            return Ok(Some(row));
        }
        let mut document = row.document;
        if run.holds_metadata {
            self.released = run.query.release(row.record, document)?;
            document = self.released.as_ref();
        }
        let document = run.query.given(row.record, document, &mut self.projected)?;
        Ok(Some(Row { record: row.record, document }))
    }

    fn is_over(&self) -> bool {
        self.input.is_over()
    }
}
