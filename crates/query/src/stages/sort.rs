//! SORT: reads all input before it returns the first document.

use super::kept_fields::KeptFields;
use super::{DocumentStage, Documents, Row, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::Result;
use bunko_operation::Gatherer;
use bunko_scratch::{Sorted, Sorter};
use bunko_store::RecordId;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Sorts by the query's pattern; with a limit it keeps only that many documents.
pub(crate) struct Sort {
    pub number: StageNumber,
    pub limit: Option<u64>,
    pub input: Box<dyn DocumentStage>,
}

impl Stage for Sort {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "SORT"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        vec![self.input.as_ref()]
    }

    fn describe(&self, query: &FindQuery, facts: &mut Facts<'_>) {
        let pattern = query.sort.as_ref().map(crate::explain::sort_document).unwrap_or_default();
        let memory_bytes_max = query.scope.operation.stage_bytes_max(Gatherer::Sort);
        facts.append("sortPattern", &pattern);
        crate::explain::append_count(facts, "memLimit", memory_bytes_max as u64);
        if let Some(limit) = self.limit {
            crate::explain::append_count(facts, "limitAmount", limit);
        }
        facts.append("type", "simple");
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        facts.append("totalDataSizeSorted", statistics.gathered_bytes as i64);
        crate::explain::append_spilled(facts, statistics.spilled);
    }

    fn effort(&self) -> Effort {
        match self.input.effort() {
            Effort::Lookups(count) => Effort::Lookups(count),
            _ => Effort::Searching,
        }
    }
}

impl DocumentStage for Sort {
    fn open(&self, run: &Run) -> Box<dyn Documents> {
        Box::new(Sorting { number: self.number, limit: self.limit, input: self.input.open(run), sorted: None })
    }
}

struct Sorting {
    number: StageNumber,
    limit: Option<u64>,
    input: Box<dyn Documents>,
    /// Record ids and documents in sort order, once all are read.
    sorted: Option<Sorted>,
}

impl Sorting {
    fn sort(&mut self, run: &mut Run) -> Result<Sorted> {
        let query = Arc::clone(&run.query);
        let operation = &query.scope.operation;
        let mut sorter = Sorter::new().first(self.limit);
        let mut key = Vec::new();
        let number = self.number;
        // With a limit, most documents are read only for their keys, so narrowing them would be wasted.
        let kept = if self.limit.is_none() { KeptFields::behind_sort(&query) } else { None };
        let mut narrow = Vec::new();
        self.input.visit(run, &mut |run, row| {
            key.clear();
            operation.work(1 + row.document.len_bytes() / 64)?;
            if let Some(pattern) = &query.sort {
                pattern.append_key(&mut key, row.document, operation, &query.scope.strings)?;
            }
            let document = match &kept {
                Some(kept) => {
                    narrow.clear();
                    kept.append(row.document, &mut narrow);
                    DocumentRef::trusted(&narrow)
                }
                None => row.document,
            };
            sorter.add(&key, &[&row.record.0.to_le_bytes(), document.as_bytes()], operation)?;
            run.at(number).rejected += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        let sorted_bytes = sorter.sorted_bytes();
        let sorted = sorter.finish(operation)?;
        let statistics = run.at(self.number);
        (statistics.gathered_bytes, statistics.spilled) = (sorted_bytes, sorted.spilled());
        Ok(sorted)
    }
}

impl Documents for Sorting {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        if self.sorted.is_none() {
            self.sorted = Some(self.sort(run)?);
        }
        let Some(sorted) = &mut self.sorted else { return Ok(None) };
        let next = sorted.next(&run.query.scope.operation)?;
        let statistics = run.at(self.number);
        // `sort` stored each document after its record id.
        let Some((id, document)) = next.and_then(|(_, value)| value.split_first_chunk()) else {
            statistics.is_at_end = true;
            return Ok(None);
        };
        statistics.advanced += 1;
        Ok(Some(Row { record: RecordId(u64::from_le_bytes(*id)), document: DocumentRef::trusted(document) }))
    }

    fn is_over(&self) -> bool {
        self.sorted.as_ref().is_some_and(Sorted::is_over)
    }
}
