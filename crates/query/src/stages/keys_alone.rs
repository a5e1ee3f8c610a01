//! COUNT_SCAN: records whose documents are not read, since the index alone answers.

use super::{DecidedByKeys, DocumentStage, Documents, RecordStage, Records, Row, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::{Facts, describe_count};
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::Result;

/// Yields an empty document for each record. Explain shows the stage below in its place.
pub(crate) struct KeysAlone {
    input: Box<dyn RecordStage>,
}

impl KeysAlone {
    pub fn new(input: Box<dyn RecordStage>, _: DecidedByKeys) -> Self {
        Self { input }
    }

    fn counts(&self) -> bool {
        self.input.as_index_scan().is_some_and(super::IndexScan::is_one_range)
    }
}

impl Stage for KeysAlone {
    fn name(&self, query: &FindQuery) -> &'static str {
        if self.counts() { "COUNT_SCAN" } else { self.input.name(query) }
    }

    fn number(&self) -> StageNumber {
        self.input.number()
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        self.input.inputs()
    }

    fn describe(&self, query: &FindQuery, facts: &mut Facts<'_>) {
        match self.input.as_index_scan() {
            Some(scan) if self.counts() => describe_count(scan.bounds(), facts),
            _ => self.input.describe(query, facts),
        }
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        if self.counts() {
            facts.append("keysExamined", statistics.keys_examined as i32);
        } else {
            self.input.describe_run(statistics, facts);
        }
    }

    fn effort(&self) -> Effort {
        self.input.effort()
    }
}

impl DocumentStage for KeysAlone {
    fn open(&self, run: &Run) -> Box<dyn Documents> {
        Box::new(Finding { input: self.input.open(run) })
    }

    fn decided_by_keys(&self) -> Option<&dyn RecordStage> {
        Some(self.input.as_ref())
    }
}

struct Finding {
    input: Box<dyn Records>,
}

impl Documents for Finding {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        Ok(self.input.next(run)?.map(|record| Row { record, document: DocumentRef::EMPTY }))
    }
}
