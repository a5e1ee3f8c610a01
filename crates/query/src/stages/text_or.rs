//! TEXT_OR: records whose texts contain any of the terms, with the sum of their scores.
//!
//! If scores are read and there are several terms, all keys are read first; otherwise each record is returned as it is
//! found.

use super::{RecordStage, Records, Stage, StageNumber};
use crate::effort::Effort;
use crate::explain::{Facts, describe_spans};
use crate::find_query::FindQuery;
use crate::planner::TextSuffix;
use crate::run::{Run, StageStatistics};
use bunko_bson::DocumentBuf;
use bunko_catalog::{Index, KeySpan, TextIndex, from_storage};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::Gatherer;
use bunko_store::{Direction, KeyCursor, KeyRange, RecordId, View};
use std::collections::{HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;

/// Approximate memory of a record and its score.
const RECORD_BYTES: usize = 32;

/// Whether scores are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScoreUse {
    Wanted,
    Ignored,
}

/// The keys of one term.
#[derive(Clone)]
pub(crate) struct TermScan {
    pub number: StageNumber,
    pub index: Arc<Index>,
    pub span: KeySpan,
    /// The bounds of the fields after the texts.
    pub suffix: Arc<TextSuffix>,
}

/// Searches records by several terms.
pub(crate) struct TextOr {
    pub number: StageNumber,
    pub terms: Vec<TermScan>,
    pub score: ScoreUse,
}

impl Stage for TermScan {
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
        describe_spans(&self.index, Direction::Backward, facts);
    }

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        facts.append("keysExamined", statistics.keys_examined as i32).append("seeks", statistics.seeks as i32);
    }

    fn effort(&self) -> Effort {
        Effort::Steady
    }
}

impl Stage for TextOr {
    fn name(&self, _query: &FindQuery) -> &'static str {
        match self.score {
            ScoreUse::Wanted => "TEXT_OR",
            ScoreUse::Ignored => "OR",
        }
    }

    fn number(&self) -> StageNumber {
        self.number
    }

    fn inputs(&self) -> Vec<&dyn Stage> {
        self.terms.iter().map(|term| term as &dyn Stage).collect()
    }

    fn describe(&self, _query: &FindQuery, _facts: &mut Facts<'_>) {}

    fn describe_run(&self, statistics: &StageStatistics, facts: &mut DocumentBuf) {
        statistics.append_duplicates(facts);
    }

    fn effort(&self) -> Effort {
        match self.score {
            ScoreUse::Wanted => Effort::Searching,
            ScoreUse::Ignored => Effort::Steady,
        }
    }
}

impl RecordStage for TextOr {
    fn open(&self, _run: &Run) -> Box<dyn Records> {
        let terms = Terms { scans: self.terms.clone(), begun: 0, cursor: None };
        if self.score == ScoreUse::Wanted && self.terms.len() > 1 {
            return Box::new(Scored { number: self.number, terms, found: None });
        }
        Box::new(TermRecords { number: self.number, terms, seen: HashSet::new() })
    }
}

/// Puts the score of the next record at hand, if a stage reads scores.
fn put_at_hand(score: Option<f64>, run: &Run) {
    if run.holds_metadata {
        let metadata = score.map(|score| Arc::new(DocumentBuf::new().with("textScore", score)));
        run.query.scope.at_hand.set(metadata);
    }
}

/// Walks the keys of each term in turn.
struct Terms {
    scans: Vec<TermScan>,
    /// Number of terms started.
    begun: usize,
    cursor: Option<Box<dyn KeyCursor>>,
}

impl Terms {
    /// The next record with a term, and its score for that term.
    fn next(&mut self, run: &mut Run) -> Result<Option<(RecordId, f64)>> {
        loop {
            run.tick()?;
            if let Some(cursor) = &mut self.cursor {
                let scan = &self.scans[self.begun - 1];
                if let Some((key, record)) = cursor.next().map_err(from_storage)? {
                    run.note_key(scan.number);
                    if !scan.suffix.admits(&scan.index, &scan.span, key) {
                        run.at(scan.number).rejected += 1;
                        continue;
                    }
                    run.at(scan.number).advanced += 1;
                    return Ok(Some((record, TextIndex::score(&scan.span, key))));
                }
                run.at(scan.number).is_at_end = true;
                self.cursor = None;
            }
            let Some(scan) = self.scans.get(self.begun) else { return Ok(None) };
            let (start, end) = scan.span.clone();
            let range = KeyRange { start: Bound::Included(start), end: Bound::Excluded(end) };
            run.at(scan.number).seeks += 1;
            self.cursor = Some(run.snapshot.keys(scan.index.keyspace, range, Direction::Backward));
            self.begun += 1;
        }
    }
}

/// Records as they are found.
struct TermRecords {
    number: StageNumber,
    terms: Terms,
    /// Records found so far; several terms may lead to one record.
    seen: HashSet<RecordId>,
}

impl Records for TermRecords {
    fn next(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        let are_several = self.terms.scans.len() > 1;
        while let Some((record, score)) = self.terms.next(run)? {
            let statistics = run.at(self.number);
            statistics.duplicates_tested += 1;
            if are_several && !self.seen.insert(record) {
                statistics.duplicates_dropped += 1;
                continue;
            }
            statistics.advanced += 1;
            put_at_hand(Some(score), run);
            return Ok(Some(record));
        }
        run.at(self.number).is_at_end = true;
        put_at_hand(None, run);
        Ok(None)
    }
}

/// Records with summed scores.
struct Scored {
    number: StageNumber,
    terms: Terms,
    /// All records in reverse order, once the keys are read.
    found: Option<Vec<(RecordId, f64)>>,
}

impl Scored {
    fn read(&mut self, run: &mut Run) -> Result<Vec<(RecordId, f64)>> {
        let memory_bytes_max = run.query.scope.operation.stage_bytes_max(Gatherer::Sort);
        let mut scores: HashMap<RecordId, f64> = HashMap::new();
        while let Some((record, score)) = self.terms.next(run)? {
            let statistics = run.at(self.number);
            statistics.duplicates_tested += 1;
            match scores.get_mut(&record) {
                Some(sum) => {
                    *sum += score;
                    statistics.duplicates_dropped += 1;
                }
                None => drop(scores.insert(record, score)),
            }
            if scores.len() * RECORD_BYTES > memory_bytes_max {
                let message = format!(
                    "TEXT_OR exceeded memory limit of {memory_bytes_max} bytes, but did not opt in to external sorting."
                );
                return Err(Failure::new(ErrorCode::QUERY_EXCEEDED_MEMORY_LIMIT_NO_DISK_USE_ALLOWED, message));
            }
        }
        let found = scores.into_iter().collect();
        // Record order is the same for each run.
        run.query.scope.operation.sort_by(found, |one: &(RecordId, f64), other| other.0.0.cmp(&one.0.0))
    }
}

impl Records for Scored {
    fn next(&mut self, run: &mut Run) -> Result<Option<RecordId>> {
        if self.found.is_none() {
            self.found = Some(self.read(run)?);
        }
        let next = self.found.as_mut().and_then(Vec::pop);
        put_at_hand(next.map(|(_, score)| score), run);
        match next {
            Some(_) => run.at(self.number).advanced += 1,
            None => run.at(self.number).is_at_end = true,
        }
        Ok(next.map(|(record, _)| record))
    }
}
