//! IXSCAN: records by the keys of one index within bounds.

use super::{RecordStage, Records, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::{Facts, describe_index, describe_index_run};
use crate::find_query::{FindQuery, INDEX_KEY};
use crate::planner::{IndexBounds, KeyCheck, KeyRanges, Outside, RangeRef};
use crate::run::{Run, StageStatistics};
use bunko_bson::DocumentBuf;
use bunko_bson::key_string::{MAX_BYTE, decode};
use bunko_catalog::{Index, from_storage, is_shortened};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_matcher::planted::{Fault, active};
use bunko_store::{Direction, KeyCursor, KeyRange, KeyspaceId, RecordId, View};
use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;

/// Walks ranges of one index.
pub(crate) struct IndexScan {
    number: StageNumber,
    bounds: Arc<IndexBounds>,
    ranges: Arc<KeyRanges>,
    direction: Direction,
}

/// Entries that a scan reads on the way to a record before it seeks.
const STEPS_BEFORE_SEEK: usize = 8;

/// The direction's name in explain.
pub(super) fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "forward",
        Direction::Backward => "backward",
    }
}

impl IndexScan {
    pub fn new(number: StageNumber, bounds: IndexBounds, direction: Direction) -> Self {
        let ranges = Arc::new(KeyRanges::of(&bounds));
        Self { number, bounds: Arc::new(bounds), ranges, direction }
    }

    pub fn bounds(&self) -> &IndexBounds {
        &self.bounds
    }

    /// Whether the bounds form one range of keys.
    pub fn is_one_range(&self) -> bool {
        self.ranges.len() == 1 && self.ranges.checked.is_empty()
    }

    pub fn open_scan(&self) -> Scan {
        Scan {
            number: self.number,
            bounds: Arc::clone(&self.bounds),
            ranges: Arc::clone(&self.ranges),
            next_range: 0,
            direction: self.direction,
            range: None,
            cursor: None,
            is_within: false,
            kept_key: None,
            check: KeyCheck::new(&self.bounds, &self.ranges),
            outside: Outside::default(),
            seen: (!self.bounds.multikey.is_empty() || self.bounds.spans_paths)
                .then(HashSet::new)
                .filter(|_| !active(Fault::RecordsRepeat)),
        }
    }
}

impl Stage for IndexScan {
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
        describe_index(&self.bounds, self.direction, facts);
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        describe_index_run(statistics, facts);
    }

    fn effort(&self) -> Effort {
        if self.ranges.are_keys() {
            return Effort::Lookups(self.ranges.len() as u64);
        }
        if self.ranges.checked.is_empty() && self.bounds.on_keys.is_empty() {
            Effort::Steady
        } else {
            Effort::Searching
        }
    }
}

impl RecordStage for IndexScan {
    fn open(&self, _run: &Run) -> Box<dyn Records> {
        Box::new(self.open_scan())
    }

    fn as_index_scan(&self) -> Option<&IndexScan> {
        Some(self)
    }
}

/// The scan while it runs.
pub(crate) struct Scan {
    number: StageNumber,
    bounds: Arc<IndexBounds>,
    ranges: Arc<KeyRanges>,
    /// Number of ranges started, in scan direction.
    next_range: usize,
    direction: Direction,
    /// The range started last.
    range: Option<usize>,
    /// Kept at the end of a range, since it may be reused for the next range.
    cursor: Option<Box<dyn KeyCursor>>,
    /// Whether the cursor is within its range.
    is_within: bool,
    /// The key of the last record, if a stage reads it.
    kept_key: Option<Vec<u8>>,
    check: KeyCheck,
    /// The last keys that the check rejected.
    outside: Outside,
    /// Records found so far; set if a record may have several keys.
    seen: Option<HashSet<RecordId>>,
}

impl Scan {
    fn index(&self) -> &Index {
        &self.bounds.index
    }

    /// Makes the scan keep the key of each record.
    pub(super) fn keeping_keys(self) -> Self {
        Self { kept_key: Some(Vec::new()), ..self }
    }

    /// The key of the last record.
    pub(super) fn key(&self) -> &[u8] {
        self.kept_key.as_deref().unwrap_or_default()
    }

    /// Puts the key of the last record at hand again, after other scans ran.
    pub(super) fn hold_last_key(&self, run: &Run) -> Result<()> {
        hold_key(&self.bounds, self.key(), run)
    }

    fn keep_key(kept: &mut Option<Vec<u8>>, key: &[u8]) {
        if let Some(kept) = kept {
            kept.clear();
            kept.extend_from_slice(key);
        }
    }

    /// Skips all keys that begin with `prefix`.
    pub(super) fn skip(&mut self, prefix: &[u8], run: &mut Run) {
        let next = match self.direction {
            Direction::Forward => [prefix, &[MAX_BYTE]].concat(),
            Direction::Backward => prefix.to_vec(),
        };
        self.seek_key(&next, run);
    }

    /// Goes on from a key in the present range: with it, or backward with the one before it.
    fn seek_key(&mut self, next: &[u8], run: &mut Run) {
        let Some(RangeRef::Between { start, end }) = self.range.map(|range| self.ranges.get(range)) else { return };
        let left = match self.direction {
            Direction::Forward => (next, &*end),
            Direction::Backward => (start, next),
        };
        run.at(self.number).seeks += 1;
        Self::walk(&mut self.cursor, run, self.bounds.index.keyspace, left, self.direction);
    }

    /// Positions the cursor on the keys from `start` up to, not including, `end`.
    fn walk(
        cursor: &mut Option<Box<dyn KeyCursor>>,
        run: &Run,
        keyspace: KeyspaceId,
        (start, end): (&[u8], &[u8]),
        direction: Direction,
    ) {
        // A forward cursor can move on to a following range.
        if !cursor.as_mut().is_some_and(|cursor| cursor.go_to(start, end)) {
            let range = KeyRange { start: Bound::Included(start.to_vec()), end: Bound::Excluded(end.to_vec()) };
            *cursor = Some(run.snapshot.keys(keyspace, range, direction));
        }
    }

    fn begin_range(&mut self) -> Option<usize> {
        let begun = self.next_range;
        if begun == self.ranges.len() {
            return None;
        }
        self.next_range += 1;
        Some(if self.direction == Direction::Forward { begun } else { self.ranges.len() - 1 - begun })
    }

    /// The first record from `least` on that has not been read. The bounds are in the order of records.
    pub(super) fn next_from(&mut self, least: RecordId, run: &mut Run) -> Result<Option<RecordId>> {
        let mut found = self.next_entry(run)?;
        for _ in 0..STEPS_BEFORE_SEEK {
            if found.is_none_or(|record| record >= least) {
                break;
            }
            run.at(self.number).rejected += 1;
            found = self.next_entry(run)?;
        }
        if found.is_some_and(|record| record < least) {
            run.at(self.number).rejected += 1;
            self.seek(least, run);
            found = self.next_entry(run)?;
        }
        let statistics = run.at(self.number);
        match found {
            Some(_) => statistics.advanced += 1,
            None => statistics.is_at_end = true,
        }
        Ok(found)
    }

    /// Goes to the key of a record, or to the next one, in the present range.
    fn seek(&mut self, record: RecordId, run: &mut Run) {
        let Some(RangeRef::Between { start, .. }) = self.range.map(|range| self.ranges.get(range)) else { return };
        let next = [start, &record.0.to_be_bytes()].concat();
        self.seek_key(&next, run);
    }

    /// The next entry within the bounds; a record comes once for each of its keys.
    pub(super) fn next_entry(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        loop {
            if let Some(cursor) = self.cursor.as_mut().filter(|_| self.is_within) {
                run.tick()?;
                if let Some((key, record)) = cursor.next().map_err(from_storage)? {
                    run.note_key(self.number);
                    let Some(failing) = self.check.first_failing(key, &run.query.scope.operation)? else {
                        hold_key(&self.bounds, key, run)?;
                        Self::keep_key(&mut self.kept_key, key);
                        return Ok(Some(record));
                    };
                    run.at(self.number).rejected += 1;
                    if let Some(next) = self.outside.add(key, failing, &self.check, self.direction) {
                        self.seek_key(&next, run);
                    }
                    continue;
                }
                self.is_within = false;
            }
            let Some(range) = self.begin_range() else { return Ok(None) };
            self.range = Some(range);
            run.at(self.number).seeks += 1;
            match self.ranges.get(range) {
                RangeRef::Key(key) => {
                    run.tick()?;
                    if let Some(record) = run.snapshot.key(self.index().keyspace, key).map_err(from_storage)? {
                        run.note_key(self.number);
                        hold_key(&self.bounds, key, run)?;
                        Self::keep_key(&mut self.kept_key, key);
                        return Ok(Some(record));
                    }
                }
                RangeRef::Between { start, end } => {
                    let keyspace = self.bounds.index.keyspace;
                    Self::walk(&mut self.cursor, run, keyspace, (start, &end), self.direction);
                    self.is_within = true;
                }
            }
        }
    }
}

/// Holds the key of the next record for expressions, if they read it. A clustered collection is its own index, and its
/// key does not count.
fn hold_key(bounds: &IndexBounds, key: &[u8], run: &Run) -> Result<()> {
    if !run.query.reads_keys() {
        return Ok(());
    }
    if is_shortened(&bounds.index, key) {
        return Err(Failure::new(
            ErrorCode::COMMAND_NOT_SUPPORTED,
            format!("showing a long key of index {} is not supported yet", bounds.index.name),
        ));
    }
    let directions: Vec<_> = bounds.pattern.iter().map(|field| field.direction).collect();
    let values = decode(key, &directions).filter(|_| !bounds.index.is_clustered);
    let known = values.map(|values| {
        let mut key = DocumentBuf::new();
        for (field, value) in bounds.pattern.iter().zip(&values) {
            key.append(&field.path, value);
        }
        Arc::new(DocumentBuf::new().with(INDEX_KEY, &key))
    });
    run.query.scope.at_hand.set(known);
    Ok(())
}

impl Records for Scan {
    fn next(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        while let Some(record) = self.next_entry(run)? {
            if run.at(self.number).admits(record, self.seen.as_mut()) {
                return Ok(Some(record));
            }
        }
        run.at(self.number).is_at_end = true;
        Ok(None)
    }
}
