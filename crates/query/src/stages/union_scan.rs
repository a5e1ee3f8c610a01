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
use bunko_bson::key_string::{Direction, leading_bytes};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::SortPattern;
use bunko_matcher::planted::{Fault, active};
use bunko_store::RecordId;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
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
    /// The end of the keys that the sort compares, if the compared fields follow each other after fields with one
    /// value.
    tail: Option<Tail>,
}

/// The end of a key, after some of its fields. Fields after the compared ones only decide between documents that the
/// sort takes as equal.
#[derive(Clone, Copy)]
struct Tail {
    /// Number of fields before it; each has one value in the scan.
    fields_before: usize,
    /// Each byte is compared after an exclusive or with it: 255 where the sort goes against the order of the index,
    /// else 0.
    turned: u8,
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
        let directions: Vec<_> = pattern[..last].iter().map(|field| field.direction).collect();
        let tail = Self::tail(scan, &directions, &compared);
        Self { directions, compared, tail }
    }

    fn tail(scan: &IndexScan, directions: &[Direction], compared: &[(usize, Direction)]) -> Option<Tail> {
        let (fields_before, direction) = *compared.first()?;
        let turned = turned(directions[fields_before], direction);
        let are_together = compared.iter().enumerate().all(|(number, (position, direction))| {
            *position == fields_before + number && self::turned(directions[*position], *direction) == turned
        });
        let are_constant = || (0..fields_before).all(|position| scan.bounds().is_constant_at(position));
        (are_together && are_constant()).then_some(Tail { fields_before, turned })
    }

    /// Writes the part of a key that the sort compares into `compared`; keys in the sort's order are ascending byte
    /// strings. `start` is the start of the tail, once it is known.
    fn write_key(&self, key: &[u8], start: &mut Option<usize>, compared: &mut Vec<u8>) -> Result<()> {
        compared.clear();
        let end_of = |fields: &[Direction]| leading_bytes(key, fields).ok_or_else(shortened);
        if let Some(tail) = self.tail {
            let start = match *start {
                Some(start) => start,
                None => *start.insert(end_of(&self.directions[..tail.fields_before])?),
            };
            compared.extend_from_slice(&key[start..]);
            if tail.turned != 0 {
                for byte in compared.iter_mut() {
                    *byte ^= tail.turned;
                }
            }
            return Ok(());
        }
        for (position, direction) in &self.compared {
            let (start, end) = (end_of(&self.directions[..*position])?, end_of(&self.directions[..=*position])?);
            let turned = turned(self.directions[*position], *direction);
            compared.extend(key[start..end].iter().map(|byte| byte ^ turned));
        }
        Ok(())
    }
}

fn shortened() -> Failure {
    Failure::new(ErrorCode::INTERNAL_ERROR, "a long key has no place in a sort's order")
}

/// The bytes of a value are inverted if the index has it in the other direction than the sort.
fn turned(stored: Direction, wanted: Direction) -> u8 {
    let wanted = if active(Fault::MergedAscending) { Direction::Ascending } else { wanted };
    if stored == wanted { 0 } else { u8::MAX }
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
        let opened = |branch: &Branch| MergedScan {
            scan: branch.scan.open_scan().keeping_keys(),
            sorted: Arc::clone(&branch.sorted),
            tail_start: None,
        };
        Box::new(Merging {
            number: self.number,
            scans: self.branches.iter().map(opened).collect(),
            heads: BinaryHeap::with_capacity(self.branches.len()),
            unread: (0..self.branches.len()).collect(),
            is_first_returned: false,
            seen: (self.overlap == Overlap::Possible).then(HashSet::new),
        })
    }
}

struct MergedScan {
    scan: Scan,
    sorted: Arc<SortedFields>,
    /// The start of the compared end of its keys: the fields before it have one value.
    tail_start: Option<usize>,
}

impl MergedScan {
    /// Reads the next record, and its place in the sort's order into `place`.
    fn next(&mut self, place: &mut Vec<u8>, run: &mut Run) -> Result<Option<RecordId>> {
        let record = self.scan.next(run)?;
        if record.is_some() {
            self.sorted.write_key(self.scan.key(), &mut self.tail_start, place)?;
        }
        Ok(record)
    }
}

/// The next record of a scan.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    /// Its place in the sort's order.
    place: Vec<u8>,
    scan: usize,
    record: RecordId,
}

struct Merging {
    number: StageNumber,
    scans: Vec<MergedScan>,
    heads: BinaryHeap<Reverse<Head>>,
    /// Scans that have not been read yet.
    unread: Vec<usize>,
    /// Whether the first head was returned. Its scan must be read before the next record is known.
    is_first_returned: bool,
    /// Records found so far, if a record may come again.
    seen: Option<HashSet<RecordId>>,
}

impl Merging {
    /// Reads the scans whose next record is not known.
    fn read_heads(&mut self, run: &mut Run) -> Result<()> {
        while let Some(number) = self.unread.pop() {
            let mut place = Vec::new();
            if let Some(record) = self.scans[number].next(&mut place, run)? {
                self.heads.push(Reverse(Head { place, scan: number, record }));
            }
        }
        if !std::mem::take(&mut self.is_first_returned) {
            return Ok(());
        }
        // The new head takes the place of the old one, and moves once.
        let Some(mut first) = self.heads.peek_mut() else { return Ok(()) };
        let Head { place, scan, .. } = &mut first.0;
        match self.scans[*scan].next(place, run)? {
            Some(record) => first.0.record = record,
            None => _ = PeekMut::pop(first),
        }
        Ok(())
    }
}

impl Records for Merging {
    fn next(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        loop {
            self.read_heads(run)?;
            let Some(Reverse(Head { scan, record, .. })) = self.heads.peek() else {
                run.at(self.number).is_at_end = true;
                return Ok(None);
            };
            self.is_first_returned = true;
            if run.at(self.number).admits(*record, self.seen.as_mut()) {
                self.scans[*scan].scan.hold_last_key(run)?;
                return Ok(Some(*record));
            }
        }
    }
}
