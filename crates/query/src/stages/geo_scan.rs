//! IXSCAN of a geospatial index: the records of all keys that a region may have.

use super::{RecordStage, Records, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::{Facts, describe_index_run, describe_spans};
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::DocumentBuf;
use bunko_catalog::{Index, KeySpan, from_storage};
use bunko_errors::Result;
use bunko_store::{Direction, KeyCursor, KeyRange, RecordId, View};
use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;

/// Scans spans of keys.
pub(crate) struct GeoScan {
    pub number: StageNumber,
    pub index: Arc<Index>,
    pub spans: Arc<[KeySpan]>,
}

impl Stage for GeoScan {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "IXSCAN"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }

    fn describe(&self, _query: &FindQuery, facts: &mut Facts<'_>) {
        describe_spans(&self.index, Direction::Forward, facts);
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        describe_index_run(statistics, facts);
    }

    fn effort(&self) -> Effort {
        Effort::Steady
    }
}

impl RecordStage for GeoScan {
    fn open(&self, _run: &Run) -> Box<dyn Records> {
        Box::new(Scan {
            number: self.number,
            index: Arc::clone(&self.index),
            spans: Arc::clone(&self.spans),
            begun: 0,
            cursor: None,
            is_within: false,
            seen: HashSet::new(),
        })
    }
}

struct Scan {
    number: StageNumber,
    index: Arc<Index>,
    spans: Arc<[KeySpan]>,
    /// Number of spans started.
    begun: usize,
    /// Kept at the end of a span, since it may be reused for the next span.
    cursor: Option<Box<dyn KeyCursor>>,
    /// Whether the cursor is within its span.
    is_within: bool,
    /// Records found so far; a shape may have several cells.
    seen: HashSet<RecordId>,
}

impl Records for Scan {
    fn next(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        loop {
            run.tick()?;
            let Some(cursor) = self.cursor.as_mut().filter(|_| self.is_within) else {
                let Some((start, end)) = self.spans.get(self.begun) else {
                    run.at(self.number).is_at_end = true;
                    return Ok(None);
                };
                (self.begun, self.is_within) = (self.begun + 1, true);
                if !self.cursor.as_mut().is_some_and(|cursor| cursor.go_to(start, end)) {
                    let range = KeyRange { start: Bound::Included(start.clone()), end: Bound::Excluded(end.clone()) };
                    self.cursor = Some(run.snapshot.keys(self.index.keyspace, range, Direction::Forward));
                }
                run.at(self.number).seeks += 1;
                continue;
            };
            let Some((_, record)) = cursor.next().map_err(from_storage)? else {
                self.is_within = false;
                continue;
            };
            run.note_key(self.number);
            if run.at(self.number).admits(record, Some(&mut self.seen)) {
                return Ok(Some(record));
            }
        }
    }
}
