//! GEO_NEAR_2DSPHERE and GEO_NEAR_2D: documents by distance from a point, nearest first.
//!
//! Looks up the documents within some distance and sorts them. Once these are returned, it looks further away.

use super::{DocumentStage, Documents, IndexScan, Row, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use crate::near::NearSearch;
use crate::planner::{IndexBounds, with_numbers};
use crate::run::{Run, StageStatistics};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_catalog::{GeoField, Reach, Surface, from_storage};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::held;
use bunko_geometry::FlatPoint;
use bunko_store::{Direction, RecordId, View};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;

/// Factors by which the distance grows if documents were found, and if none were found.
const FURTHER: f64 = 2.0;
const MUCH_FURTHER: f64 = 4.0;
/// If a limit is known, the next distance aims at this multiple of the documents wanted, but grows at least by
/// `FURTHER_MIN`.
const WANTED_PART: f64 = 1.5;
const FURTHER_MIN: f64 = 1.25;
/// Limits of one batch: records whose documents are read together, and bytes after which no more are read.
const RECORDS_MAX: usize = 256;
const BYTES_MAX: usize = 256 << 10;

/// Searches an index by distance.
pub(crate) struct GeoNear {
    pub number: StageNumber,
    /// The bounds of the index's other fields.
    pub beside: IndexBounds,
    pub field: GeoField,
    pub search: Arc<NearSearch>,
}

impl Stage for GeoNear {
    fn name(&self, _query: &FindQuery) -> &'static str {
        match self.field.surface {
            Surface::Sphere => "GEO_NEAR_2DSPHERE",
            Surface::Plane(_) => "GEO_NEAR_2D",
        }
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }

    fn describe(&self, query: &FindQuery, facts: &mut Facts<'_>) {
        let index = &self.beside.index;
        facts.append_filter("filter", &query.filter);
        facts.append("keyPattern", index.key_pattern()).append("indexName", index.name.as_str());
        facts.append("indexVersion", 2_i32);
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        facts
            .append("keysExamined", statistics.keys_examined as i32)
            .append("docsExamined", statistics.docs_examined as i32);
    }

    fn effort(&self) -> Effort {
        Effort::Searching
    }
}

impl DocumentStage for GeoNear {
    fn open(&self, _run: &Run) -> Box<dyn Documents> {
        let centre = self.search.near.centre;
        Box::new(Nearing {
            number: self.number,
            beside: self.beside.clone(),
            field: self.field,
            search: Arc::clone(&self.search),
            within: -1.0,
            next: self.field.first_distance(centre).max(self.search.near.min),
            reach: Reach::Part,
            matched: 0,
            seen: HashSet::new(),
            found: BinaryHeap::new(),
            document: Vec::new(),
        })
    }
}

/// A document found; the nearest one is the greatest.
struct NearRecord {
    distance: f64,
    record: RecordId,
}

impl Ord for NearRecord {
    fn cmp(&self, other: &Self) -> Ordering {
        other.distance.total_cmp(&self.distance).then(other.record.0.cmp(&self.record.0))
    }
}

impl PartialOrd for NearRecord {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for NearRecord {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for NearRecord {}

struct Nearing {
    number: StageNumber,
    beside: IndexBounds,
    field: GeoField,
    search: Arc<NearSearch>,
    /// All documents within this distance have been found.
    within: f64,
    /// The next distance to search within.
    next: f64,
    /// Whether the index has keys beyond those examined.
    reach: Reach,
    /// Number of documents found.
    matched: u64,
    /// Records examined.
    seen: HashSet<RecordId>,
    /// Documents found and not returned yet.
    found: BinaryHeap<NearRecord>,
    document: Vec<u8>,
}

/// Growth factor for the next distance, from the number found and the number wanted; assumes an even density of
/// documents.
fn further(found: u64, wanted: Option<u64>) -> f64 {
    match wanted {
        _ if found == 0 => MUCH_FURTHER,
        None => FURTHER,
        Some(wanted) => (WANTED_PART * wanted as f64 / found as f64).sqrt().clamp(FURTHER_MIN, MUCH_FURTHER),
    }
}

impl Nearing {
    /// Searches a greater distance.
    /// # Errors
    /// 16433 if the point is outside the index's square; errors of documents and of the operation.
    fn widen(&mut self, run: &mut Run) -> Result<()> {
        let near = Arc::clone(&self.search.near);
        if let Surface::Plane(grid) = self.field.surface
            && !grid.holds(near.point)
        {
            let FlatPoint { x, y } = near.point;
            let message = format!(
                "point not in interval of [ {}, {} ] :: caused by :: {{ 0: {x:?}, 1: {y:?} }}",
                grid.min, grid.max
            );
            return Err(Failure::new(ErrorCode(16433), message));
        }
        let distance = self.next.min(near.max);
        let (numbers, reach) = self.field.numbers_around(near.centre, near.point, distance);
        let bounds = with_numbers(self.beside.clone(), &self.search.path, numbers);
        let mut around = IndexScan::new(self.number, bounds, Direction::Forward).open_scan();
        let mut fresh = Vec::new();
        while let Some(record) = around.next_entry(run)? {
            if self.seen.insert(record) {
                fresh.push(record);
                if fresh.len() == RECORDS_MAX {
                    self.judge_all(&fresh, run)?;
                    fresh.clear();
                }
            }
        }
        self.judge_all(&fresh, run)?;
        // The last search covers everything, so that rounding excludes no document.
        let is_last = distance >= near.max;
        (self.within, self.reach) = (distance, if is_last { Reach::Everything } else { reach });
        self.next = distance * further(self.matched, run.query.wanted());
        Ok(())
    }

    /// Examines the documents of records.
    fn judge_all(&mut self, mut records: &[RecordId], run: &mut Run) -> Result<()> {
        let (snapshot, keyspace) = (Arc::clone(&run.snapshot), run.collection.records());
        while !records.is_empty() {
            let mut outcome = Ok(());
            let read = snapshot.some_records(keyspace, records, BYTES_MAX, &mut |number, _, document| {
                if outcome.is_ok() {
                    outcome = self.judge(records[number], DocumentRef::trusted(document), run);
                }
            });
            records = &records[read.map_err(from_storage)?..];
            outcome?;
        }
        Ok(())
    }

    fn judge(&mut self, record: RecordId, document: DocumentRef<'_>, run: &mut Run) -> Result<()> {
        run.at(self.number).docs_examined += 1;
        match self.search.nearest(document, &run.query.scope.operation)? {
            Some((distance, _)) if run.query.filter.try_matches(document)? => {
                self.matched += 1;
                self.found.push(NearRecord { distance, record });
            }
            _ => run.at(self.number).rejected += 1,
        }
        Ok(())
    }

    /// Reads the next document again, and adds the output fields.
    fn read(&mut self, found: &NearRecord, run: &mut Run) -> Result<bool> {
        let keyspace = run.collection.records();
        if run.snapshot.record(keyspace, found.record, &mut self.document).map_err(from_storage)?.is_none() {
            return Ok(false);
        }
        if self.search.adds_nothing() && !run.holds_metadata {
            return Ok(true);
        }
        let document = DocumentRef::trusted(&self.document);
        let Some((distance, geometry)) = self.search.nearest(document, &run.query.scope.operation)? else {
            return Ok(false);
        };
        let mut told = self.search.told(document, distance, geometry)?;
        if run.holds_metadata {
            told = held(told.as_ref(), self.search.metadata(distance, geometry).as_ref());
        }
        self.document = told.into_bytes();
        Ok(true)
    }
}

impl Documents for Nearing {
    fn next<'s>(&'s mut self, run: &mut Run) -> Result<Option<Row<'s>>> {
        loop {
            let is_known = |found: &NearRecord| self.reach == Reach::Everything || found.distance <= self.within;
            if self.found.peek().is_some_and(is_known) {
                let Some(found) = self.found.pop() else { continue };
                if !self.read(&found, run)? {
                    continue;
                }
                run.at(self.number).advanced += 1;
                return Ok(Some(Row { record: found.record, document: DocumentRef::trusted(&self.document) }));
            }
            if self.reach == Reach::Everything {
                run.at(self.number).is_at_end = true;
                return Ok(None);
            }
            self.widen(run)?;
        }
    }
}
