//! MULTI_ITERATOR: documents at random places of the collection, for a `$sample` of few of many.
//!
//! A collection with few records for its range of ids gives all of its documents instead, in record order: the
//! `$sample` above chooses among them.

use super::{DocumentStage, Documents, Row, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::DocumentBuf;
use bunko_catalog::{RandomPlaces, from_storage};
use bunko_errors::Result;
use bunko_store::{Direction, RecordCursor, RecordId, RecordRange, View};
use std::collections::HashSet;

/// A sample of more than one document in this many reads the whole collection. Source: MongoDB manual, "$sample".
const COLLECTION_PART: u64 = 20;
/// Minimum number of documents of a collection whose places are drawn. Source: MongoDB manual, "$sample".
const COLLECTION_MIN: u64 = 100;
/// Maximum number of places drawn for each wanted document, on average.
const DRAWS_MAX: u64 = 64;

/// Draws documents.
pub(crate) struct RandomScan {
    pub number: StageNumber,
    /// Number of documents wanted.
    pub size: u64,
}

impl RandomScan {
    /// Whether drawing places pays for a sample of this size.
    pub fn pays(size: u64, documents: u64) -> bool {
        documents >= COLLECTION_MIN && size.saturating_mul(COLLECTION_PART) < documents
    }
}

impl Stage for RandomScan {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "MULTI_ITERATOR"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }

    fn describe(&self, _query: &FindQuery, _facts: &mut Facts<'_>) {}

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        facts.append("docsExamined", statistics.docs_examined as i32);
    }

    fn effort(&self) -> Effort {
        Effort::Lookups(self.size)
    }
}

impl DocumentStage for RandomScan {
    fn open(&self, run: &Run) -> Box<dyn Documents> {
        run.collection.note_scan();
        Box::new(Drawing {
            number: self.number,
            size: self.size,
            places: None,
            draws_left: self.size.saturating_mul(DRAWS_MAX),
            given: HashSet::new(),
            rest: None,
            document: Vec::new(),
        })
    }
}

struct Drawing {
    number: StageNumber,
    size: u64,
    /// Made at the first draw.
    places: Option<RandomPlaces>,
    draws_left: u64,
    /// Records already given.
    given: HashSet<RecordId>,
    /// A scan of all records, begun once too many places were drawn; it skips documents that were already given.
    rest: Option<Box<dyn RecordCursor>>,
    document: Vec<u8>,
}

impl Drawing {
    /// Draws until a place has a record that was not given yet; `None` if too many places were drawn.
    fn draw(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        let records = run.collection.records();
        let places = match self.places {
            Some(places) => places,
            None => *self.places.insert(RandomPlaces::of(&*run.snapshot, records)?),
        };
        while self.draws_left > 0 {
            self.draws_left -= 1;
            run.tick()?;
            let record = places.draw(run.query.scope.operation.random());
            if self.given.contains(&record) {
                continue;
            }
            if run.snapshot.record(records, record, &mut self.document).map_err(from_storage)?.is_some() {
                self.given.insert(record);
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Reads the next document in record order that was not given; `None` at the end.
    fn next_of_rest(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        let records = run.collection.records();
        let rest = self.rest.get_or_insert_with(|| run.snapshot.records(records, RecordRange::ALL, Direction::Forward));
        loop {
            run.tick()?;
            let Some((record, _, bytes)) = rest.next().map_err(from_storage)? else { return Ok(None) };
            if !self.given.contains(&record) {
                self.document.clear();
                self.document.extend_from_slice(bytes);
                return Ok(Some(record));
            }
        }
    }
}

impl Documents for Drawing {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        let mut found = None;
        if self.rest.is_none() {
            if self.given.len() as u64 == self.size {
                run.at(self.number).is_at_end = true;
                return Ok(None);
            }
            found = self.draw(run)?;
        }
        if found.is_none() {
            found = self.next_of_rest(run)?;
        }
        run.at(self.number).docs_examined += u64::from(found.is_some());
        Ok(Row::found(run, self.number, found, &self.document))
    }
}
