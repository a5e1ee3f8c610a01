//! The records that any of several scans finds, each once: OR, and SORT_MERGE in the order of the query's sort.
//!
//! Each scan of a SORT_MERGE has the order on its own. The merge reads one key of each scan ahead, so a limit above it
//! leaves the rest of the keys unread.

use super::index_scan::Scan;
use super::{IndexScan, RecordStage, Records, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::{Facts, sort_document};
use crate::find_query::FindQuery;
use crate::run::{Run, StageStatistics};
use bunko_bson::DocumentBuf;
use bunko_bson::key_string::{self, Direction, decode};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::SortPattern;
use bunko_matcher::planted::{Fault, active};
use bunko_store::RecordId;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;

/// Runs the branches one after the other.
pub(crate) struct OrScan {
    pub number: StageNumber,
    pub branches: Vec<Box<dyn RecordStage>>,
}

impl Stage for OrScan {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "OR"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        self.branches.iter().map(|branch| branch.as_ref() as &dyn Stage).collect()
    }

    fn describe(&self, _query: &FindQuery, _facts: &mut Facts<'_>) {}

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        statistics.append_duplicates(facts);
    }

    fn effort(&self) -> Effort {
        Effort::sum(self.branches.iter().map(|branch| branch.effort()))
    }
}

impl RecordStage for OrScan {
    fn open(&self, run: &Run) -> Box<dyn Records> {
        Box::new(Union {
            number: self.number,
            branches: self.branches.iter().map(|branch| branch.open(run)).collect(),
            current: 0,
            seen: HashSet::new(),
        })
    }
}

struct Union {
    number: StageNumber,
    branches: Vec<Box<dyn Records>>,
    current: usize,
    seen: HashSet<RecordId>,
}

impl Records for Union {
    fn next(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        while let Some(branch) = self.branches.get_mut(self.current) {
            let Some(record) = branch.next(run)? else {
                self.current += 1;
                continue;
            };
            if run.at(self.number).admits(record, Some(&mut self.seen)) {
                return Ok(Some(record));
            }
        }
        run.at(self.number).is_at_end = true;
        Ok(None)
    }
}

/// Whether a record may be found by several scans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    Possible,
    /// The scans read different keys of an index in which each document has one.
    Excluded,
}

/// Merges scans by their keys.
pub(crate) struct MergeScan {
    pub number: StageNumber,
    branches: Vec<Branch>,
    overlap: Overlap,
}

struct Branch {
    scan: IndexScan,
    sorted: Arc<SortedFields>,
}

/// The fields of an index that a sort compares.
struct SortedFields {
    /// Directions of the fields up to the last compared one.
    directions: Vec<Direction>,
    /// The position of each field, and its direction in the sort.
    compared: Vec<(usize, Direction)>,
}

impl SortedFields {
    /// Every field of the sort is in the index: see `sort_order`.
    fn of(scan: &IndexScan, sort: Option<&SortPattern>) -> Self {
        let pattern = &scan.bounds().pattern;
        let position = |path: &str| pattern.iter().position(|field| field.path == path);
        let compared: Vec<_> = sort
            .into_iter()
            .flat_map(SortPattern::parts)
            .filter_map(|(path, direction)| Some((position(&path.dotted())?, direction)))
            .collect();
        let last = compared.iter().map(|(position, _)| position + 1).max().unwrap_or(0);
        Self { directions: pattern[..last].iter().map(|field| field.direction).collect(), compared }
    }

    /// The part of a key that the sort compares; keys in the sort's order are ascending byte strings.
    fn key(&self, key: &[u8]) -> Result<Vec<u8>> {
        let Some(values) = decode(key, &self.directions) else {
            return Err(Failure::new(ErrorCode::INTERNAL_ERROR, "a long key has no place in a sort's order"));
        };
        let mut compared = Vec::new();
        for (position, direction) in &self.compared {
            let direction = if active(Fault::MergedAscending) { Direction::Ascending } else { *direction };
            key_string::append(&mut compared, values[*position].as_ref(), direction);
        }
        Ok(compared)
    }
}

impl MergeScan {
    pub fn new(number: StageNumber, scans: Vec<IndexScan>, sort: Option<&SortPattern>, overlap: Overlap) -> Self {
        let branch = |scan: IndexScan| Branch { sorted: Arc::new(SortedFields::of(&scan, sort)), scan };
        Self { number, branches: scans.into_iter().map(branch).collect(), overlap }
    }
}

impl Stage for MergeScan {
    fn name(&self, _query: &FindQuery) -> &'static str {
        "SORT_MERGE"
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        self.branches.iter().map(|branch| &branch.scan as &dyn Stage).collect()
    }

    fn describe(&self, query: &FindQuery, facts: &mut Facts<'_>) {
        let pattern = query.sort.as_ref().map(sort_document).unwrap_or_default();
        facts.append("sortPattern", &pattern);
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        statistics.append_duplicates(facts);
    }

    fn effort(&self) -> Effort {
        Effort::sum(self.branches.iter().map(|branch| branch.scan.effort()))
    }
}

impl RecordStage for MergeScan {
    fn open(&self, _run: &Run) -> Box<dyn Records> {
        let opened = |branch: &Branch| (branch.scan.open_scan().keeping_keys(), Arc::clone(&branch.sorted));
        Box::new(Merging {
            number: self.number,
            scans: self.branches.iter().map(opened).collect(),
            heads: BinaryHeap::with_capacity(self.branches.len()),
            unread: (0..self.branches.len()).collect(),
            seen: (self.overlap == Overlap::Possible).then(HashSet::new),
        })
    }
}

struct Merging {
    number: StageNumber,
    scans: Vec<(Scan, Arc<SortedFields>)>,
    /// The next record of each scan that has one, by its place in the sort's order and the number of its scan.
    heads: BinaryHeap<Reverse<(Vec<u8>, usize, RecordId)>>,
    /// The scans to read before the next record is known: all at first, then the scan of the last record.
    unread: Vec<usize>,
    /// Records found so far, if a record may come again.
    seen: Option<HashSet<RecordId>>,
}

impl Records for Merging {
    fn next(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        loop {
            while let Some(number) = self.unread.pop() {
                let (scan, sorted) = &mut self.scans[number];
                if let Some(record) = scan.next(run)? {
                    self.heads.push(Reverse((sorted.key(scan.key())?, number, record)));
                }
            }
            let Some(Reverse((_, number, record))) = self.heads.pop() else {
                run.at(self.number).is_at_end = true;
                return Ok(None);
            };
            self.unread.push(number);
            if run.at(self.number).admits(record, self.seen.as_mut()) {
                self.scans[number].0.hold_last_key(run)?;
                return Ok(Some(record));
            }
        }
    }
}
