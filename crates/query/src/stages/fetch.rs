//! FETCH: the documents of records found by an index.

use super::read_ahead::{RECORDS_MAX, ReadAhead};
use super::{DocumentStage, Documents, RecordStage, Records, Residual, Row, Stage, StageNumber, WholeDocument};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::DocumentBuf;
use bunko_errors::Result;
use bunko_store::RecordId;

/// Reads documents and drops those that do not match. Metadata of a record goes with its document.
///
/// Only text searches find records with metadata: a search by distance reads the documents itself.
pub(crate) struct Fetch {
    pub number: StageNumber,
    pub residual: Residual,
    pub input: Box<dyn RecordStage>,
}

impl Stage for Fetch {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "FETCH"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        vec![self.input.as_ref()]
    }

    fn describe(&self, query: &FindQuery, facts: &mut Facts<'_>) {
        self.residual.describe(query, facts);
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        facts.append("docsExamined", statistics.docs_examined as i32).append("alreadyHasObj", 0_i32);
    }

    fn effort(&self) -> Effort {
        match self.input.effort() {
            Effort::Steady if !self.residual.is_nothing() => Effort::Searching,
            effort => effort,
        }
    }
}

impl Fetch {
    /// Opens this stage below a stage that filters. Documents are read one by one, since the filter may drop any of
    /// them.
    pub(super) fn open_whole(&self, run: &Run) -> Fetching {
        self.opened(run, 1)
    }

    fn opened(&self, run: &Run, records_max: usize) -> Fetching {
        // Metadata is at hand only until the next record is found, so this cannot read ahead.
        let records_max = if run.holds_metadata { 1 } else { records_max };
        Fetching {
            number: self.number,
            residual: self.residual.clone(),
            input: self.input.open(run),
            ahead: ReadAhead::new(records_max),
            held: None,
        }
    }
}

impl DocumentStage for Fetch {
    fn open(&self, run: &Run) -> Box<dyn Documents> {
        Box::new(self.opened(run, RECORDS_MAX))
    }

    fn decided_by_keys(&self) -> Option<&dyn RecordStage> {
        self.residual.decided_by_keys().map(|_| self.input.as_ref())
    }
}

/// The stage while it runs.
pub(super) struct Fetching {
    number: StageNumber,
    residual: Residual,
    input: Box<dyn Records>,
    ahead: ReadAhead,
    /// The last document with its metadata, if the run holds any.
    held: Option<Vec<u8>>,
}

impl Fetching {
    fn search(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        while let Some((record, location)) = self.ahead.next(self.input.as_mut(), run)? {
            run.place = Some((record, location));
            run.at(self.number).docs_examined += 1;
            let document = WholeDocument::of_record(self.ahead.document());
            if self.residual.matches(&run.query, document)? {
                if run.holds_metadata {
                    self.held = Some(run.query.scope.at_hand.hold(document.fields()).into_bytes());
                }
                self.ahead.take();
                return Ok(Some(record));
            }
            run.at(self.number).rejected += 1;
        }
        Ok(None)
    }

    /// The next record and its document, lent until the next call.
    pub(super) fn next_whole<'s>(&'s mut self, run: &mut Run) -> Result<Option<(RecordId, WholeDocument<'s>)>> {
        let row = self.next(run)?;
        Ok(row.map(|row| (row.record, WholeDocument::of_record(row.document.as_bytes()))))
    }
}

impl Documents for Fetching {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        let found = self.search(run)?;
        let document = self.held.as_deref().unwrap_or_else(|| self.ahead.document());
        Ok(Row::found(run, self.number, found, document))
    }
}
