//! FETCH: the documents of records found by an index.

use super::read_ahead::ReadAhead;
use super::{DocumentStage, Documents, RecordStage, Records, Residual, Row, Stage, StageNumber, WholeDocument};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::DocumentBuf;
use bunko_catalog::from_storage;
use bunko_errors::Result;
use bunko_store::{RecordId, View};

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
    /// Opens it for a stage that filters.
    pub(super) fn open_whole(&self, run: &Run) -> Box<dyn WholeDocuments> {
        self.open_as::<dyn WholeDocuments>(run, |fetching| Box::new(fetching), |fetching| Box::new(fetching))
    }

    fn open_as<D: ?Sized>(
        &self,
        run: &Run,
        alone: impl FnOnce(Fetching) -> Box<D>,
        ahead: impl FnOnce(FetchingAhead) -> Box<D>,
    ) -> Box<D> {
        let (number, residual, input) = (self.number, self.residual.clone(), self.input.open(run));
        // Metadata is at hand only until the next record is found, so this cannot read ahead.
        let knows_more = run.holds_metadata || run.query.reads_keys();
        if self.input.as_index_scan().is_some() && !knows_more {
            let scan = self.input.number();
            return ahead(FetchingAhead { number, residual, input, scan, ahead: ReadAhead::default() });
        }
        alone(Fetching { number, residual, input, document: Vec::new() })
    }
}

impl DocumentStage for Fetch {
    fn open(&self, run: &Run) -> Box<dyn Documents> {
        self.open_as::<dyn Documents>(run, |fetching| Box::new(fetching), |fetching| Box::new(fetching))
    }

    fn decided_by_keys(&self) -> Option<&dyn RecordStage> {
        self.residual.decided_by_keys().map(|_| self.input.as_ref())
    }
}

/// The running side for stages that filter.
pub(super) trait WholeDocuments: Send {
    /// The next record and its document, lent until the next call.
    fn next_whole<'s>(&'s mut self, run: &mut Run) -> Result<Option<(RecordId, WholeDocument<'s>)>>;
}

struct Fetching {
    number: StageNumber,
    residual: Residual,
    input: Box<dyn Records>,
    document: Vec<u8>,
}

impl Fetching {
    fn search(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        let keyspace = run.collection.records();
        while let Some(record) = self.input.next(run)? {
            let found = run.snapshot.record(keyspace, record, &mut self.document).map_err(from_storage)?;
            let Some(location) = found else { continue };
            run.place = Some((record, location));
            run.at(self.number).docs_examined += 1;
            let document = WholeDocument::of_record(&self.document);
            if self.residual.matches(&run.query, document)? {
                if run.holds_metadata {
                    self.document = run.query.scope.at_hand.hold(document.fields()).into_bytes();
                }
                return Ok(Some(record));
            }
            run.at(self.number).rejected += 1;
        }
        Ok(None)
    }
}

impl WholeDocuments for Fetching {
    fn next_whole<'s>(&'s mut self, run: &mut Run) -> Result<Option<(RecordId, WholeDocument<'s>)>> {
        let found = self.search(run)?;
        let row = Row::found(run, self.number, found, &self.document);
        Ok(row.map(|row| (row.record, WholeDocument::of_record(row.document.as_bytes()))))
    }
}

impl Documents for Fetching {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        let found = self.search(run)?;
        Ok(Row::found(run, self.number, found, &self.document))
    }
}

/// As [`Fetching`], for records of an index, a batch at a time.
struct FetchingAhead {
    number: StageNumber,
    residual: Residual,
    input: Box<dyn Records>,
    scan: StageNumber,
    ahead: ReadAhead,
}

impl FetchingAhead {
    fn search(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        while let Some((record, location)) = self.ahead.next((self.input.as_mut(), self.scan), run)? {
            run.place = Some((record, location));
            run.at(self.number).docs_examined += 1;
            if self.residual.matches(&run.query, WholeDocument::of_record(self.ahead.document()))? {
                self.ahead.take();
                return Ok(Some(record));
            }
            run.at(self.number).rejected += 1;
        }
        Ok(None)
    }
}

impl WholeDocuments for FetchingAhead {
    fn next_whole<'s>(&'s mut self, run: &mut Run) -> Result<Option<(RecordId, WholeDocument<'s>)>> {
        let found = self.search(run)?;
        let row = Row::found(run, self.number, found, self.ahead.document());
        Ok(row.map(|row| (row.record, WholeDocument::of_record(row.document.as_bytes()))))
    }
}

impl Documents for FetchingAhead {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        let found = self.search(run)?;
        Ok(Row::found(run, self.number, found, self.ahead.document()))
    }
}
