//! COLLSCAN: every document of the collection, in natural or reverse order.

use super::assisted_scan::{AssistedScan, Ended, RECORDS_ALONE};
use super::{DocumentStage, Documents, Residual, Row, RowVisitor, Stage, StageNumber, WholeDocument};
use crate::execution::{Run, StageStatistics};
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::plan::Effort;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_catalog::from_storage;
use bunko_errors::Result;
use bunko_store::{Direction, RecordCursor, RecordId, RecordRange, View};
use std::ops::Bound;
use std::sync::Arc;

/// Scans the record store.
pub(crate) struct CollectionScan {
    pub number: StageNumber,
    pub direction: Direction,
    pub residual: Residual,
}

impl Stage for CollectionScan {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "COLLSCAN"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }

    fn describe(&self, query: &FindQuery, facts: &mut Facts<'_>) {
        if !self.residual.is_nothing() {
            facts.append_parsed_query("filter", &query.filter);
        }
        facts.append("direction", super::index_scan::direction_name(self.direction));
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        facts.append("docsExamined", statistics.docs_examined as i32);
    }

    fn effort(&self) -> Effort {
        if self.residual.is_nothing() { Effort::Steady } else { Effort::Searching }
    }
}

impl DocumentStage for CollectionScan {
    fn open(&self, run: &Run) -> Box<dyn Documents> {
        run.collection.note_scan();
        let cursor = run.snapshot.records(run.collection.records(), RecordRange::ALL, self.direction);
        if self.residual.is_nothing() && !run.holds_metadata {
            return Box::new(Whole { number: self.number, cursor });
        }
        let filtered = Filtered { number: self.number, direction: self.direction, cursor, matched: Vec::new() };
        if run.holds_metadata {
            return Box::new(Holding { filtered, held: DocumentBuf::new() });
        }
        Box::new(filtered)
    }
}

/// Lends every document directly from the cursor.
struct Whole {
    number: StageNumber,
    cursor: Box<dyn RecordCursor>,
}

impl Documents for Whole {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        run.tick()?;
        let statistics = run.at(self.number);
        let Some((record, location, bytes)) = self.cursor.next().map_err(from_storage)? else {
            statistics.is_at_end = true;
            return Ok(None);
        };
        statistics.docs_examined += 1;
        statistics.advanced += 1;
        run.place = Some((record, location));
        Ok(Some(Row { record, document: DocumentRef::trusted(bytes) }))
    }

    fn visit(&mut self, run: &mut Run, visitor: &mut RowVisitor<'_>) -> Result<()> {
        loop {
            run.tick()?;
            let Some((record, _, bytes)) = self.cursor.next().map_err(from_storage)? else { break };
            let statistics = run.at(self.number);
            statistics.docs_examined += 1;
            statistics.advanced += 1;
            if visitor(run, Row { record, document: DocumentRef::trusted(bytes) })?.is_break() {
                return Ok(());
            }
        }
        run.at(self.number).is_at_end = true;
        Ok(())
    }
}

/// Puts empty metadata into documents, where the stages above look for it: a scan finds no metadata.
struct Holding {
    filtered: Filtered,
    held: DocumentBuf,
}

impl Documents for Holding {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        let Some(row) = self.filtered.next(run)? else { return Ok(None) };
        let at_hand = &run.query.scope.at_hand;
        at_hand.set(None);
        self.held = at_hand.hold(row.document);
        Ok(Some(Row { record: row.record, document: self.held.as_ref() }))
    }
}

/// Copies matches, since the cursor's document is only valid until its next step.
struct Filtered {
    number: StageNumber,
    direction: Direction,
    cursor: Box<dyn RecordCursor>,
    matched: Vec<u8>,
}

impl Filtered {
    fn search(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        loop {
            run.tick()?;
            let Some((record, location, bytes)) = self.cursor.next().map_err(from_storage)? else { return Ok(None) };
            let is_match = WholeDocument::of_record(bytes).matches(&run.query)?;
            let statistics = run.at(self.number);
            statistics.docs_examined += 1;
            if is_match {
                self.matched.clear();
                self.matched.extend_from_slice(bytes);
                run.place = Some((record, location));
                return Ok(Some(record));
            }
            statistics.rejected += 1;
        }
    }
}

impl Documents for Filtered {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        let found = self.search(run)?;
        Ok(Row::found(run, self.number, found, &self.matched))
    }

    fn visit(&mut self, run: &mut Run, visitor: &mut RowVisitor<'_>) -> Result<()> {
        let query = Arc::clone(&run.query);
        let mut examined = 0;
        loop {
            run.tick()?;
            let Some((record, _, bytes)) = self.cursor.next().map_err(from_storage)? else { break };
            examined += 1;
            let document = WholeDocument::of_record(bytes);
            let is_match = document.matches(&query)?;
            let statistics = run.at(self.number);
            statistics.docs_examined += 1;
            if is_match {
                statistics.advanced += 1;
                if visitor(run, Row { record, document: document.fields() })?.is_break() {
                    return Ok(());
                }
            } else {
                statistics.rejected += 1;
            }
            if examined == RECORDS_ALONE
                && self.direction == Direction::Forward
                && let Some(rest) = AssistedScan::behind(record, self.number, run)
            {
                match rest.visit(run, visitor)? {
                    Ended::AtEnd => break,
                    Ended::Behind(last) => {
                        let range = RecordRange { start: Bound::Excluded(last), end: Bound::Unbounded };
                        self.cursor = run.snapshot.records(run.collection.records(), range, self.direction);
                        return Ok(());
                    }
                }
            }
        }
        run.at(self.number).is_at_end = true;
        Ok(())
    }
}
