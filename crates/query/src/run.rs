//! The state of a running plan that its stages share.

use crate::find_query::FindQuery;
use bunko_bson::DocumentBuf;
use bunko_catalog::{Collection, dropped};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_scratch::Spilled;
use bunko_store::{Location, RecordId, Snapshot};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Entries examined between two checks for interruption: at first, and at most.
const ENTRIES_PER_POLL: u32 = 16;
const ENTRIES_PER_POLL_MAX: u32 = 128;
/// A longer time between two checks halves the number of entries up to the next check.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// A run longer than this fails if its collection is dropped. MongoDB's plans yield for the first time after this
/// duration. Source: MongoDB manual 8.2, `internalQueryExecYieldPeriodMS`.
const LONG_RUN: Duration = Duration::from_millis(10);

/// A stage's number in its plan: the index of its statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StageNumber(pub usize);

/// Work done by a running plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutionStatistics {
    /// Index keys looked at.
    pub keys_examined: u64,
    /// Documents read.
    pub docs_examined: u64,
    /// Documents returned.
    pub returned: u64,
}

/// Work done by one stage, for explain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StageStatistics {
    pub keys_examined: u64,
    pub docs_examined: u64,
    pub advanced: u64,
    /// Entries examined without a result.
    pub rejected: u64,
    pub seeks: u64,
    pub duplicates_tested: u64,
    pub duplicates_dropped: u64,
    /// Documents sorted or records held, in bytes.
    pub gathered_bytes: u64,
    /// Data that the stage put on disk.
    pub spilled: Spilled,
    pub is_at_end: bool,
}

impl StageStatistics {
    /// Counts a record that a scan found. Returns whether the stage passes it on: `seen` has the records found before;
    /// `None` if no record is found twice.
    #[inline]
    pub fn admits(&mut self, record: RecordId, seen: Option<&mut HashSet<RecordId>>) -> bool {
        if let Some(seen) = seen {
            self.duplicates_tested += 1;
            if !seen.insert(record) {
                self.duplicates_dropped += 1;
                self.rejected += 1;
                return false;
            }
        }
        self.advanced += 1;
        true
    }

    /// Appends the counts of duplicates as `explain` names them.
    pub fn append_duplicates(&self, facts: &mut DocumentBuf) {
        facts.append("dupsTested", self.duplicates_tested as i32).append("dupsDropped", self.duplicates_dropped as i32);
    }
}

/// The form of the documents that come out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Projected,
    Stored,
}

/// State shared by all stages of a running plan.
pub(crate) struct Run {
    pub snapshot: Arc<Snapshot>,
    pub collection: Arc<Collection>,
    pub query: Arc<FindQuery>,
    pub output: Output,
    /// Whether documents hold their metadata until they are projected.
    pub holds_metadata: bool,
    /// The last record that a scan found as it is stored, and the location of its document.
    pub place: Option<(RecordId, Location)>,
    /// Keys examined by all stages.
    pub keys_examined: u64,
    /// Keys examined ahead of documents that are not requested yet.
    pub keys_ahead: u64,
    pub statistics: Vec<StageStatistics>,
    entries_per_poll: u32,
    until_poll: u32,
    polled: Instant,
    /// Start of the run; `None` if the collection was already dropped.
    began: Option<Instant>,
    /// Entries examined up to the last poll, and the number of entries that ends the run.
    pub works: u64,
    pub works_max: u64,
    pub is_exhausted: bool,
}

impl Run {
    /// A run of a plan with this many stages, without a limit on its works.
    pub fn new(snapshot: Arc<Snapshot>, collection: &Arc<Collection>, query: &Arc<FindQuery>, stages: usize) -> Self {
        let now = query.scope.operation.clock().now();
        Self {
            snapshot,
            collection: Arc::clone(collection),
            query: Arc::clone(query),
            output: Output::Projected,
            holds_metadata: query.holds_metadata(),
            place: None,
            keys_examined: 0,
            keys_ahead: 0,
            statistics: vec![StageStatistics::default(); stages],
            entries_per_poll: ENTRIES_PER_POLL,
            until_poll: ENTRIES_PER_POLL,
            polled: now,
            began: (!collection.is_dropped()).then_some(now),
            works: 0,
            works_max: u64::MAX,
            is_exhausted: false,
        }
    }

    /// Entries examined so far.
    pub fn works_so_far(&self) -> u64 {
        self.works + u64::from(self.entries_per_poll - self.until_poll)
    }

    pub fn at(&mut self, stage: StageNumber) -> &mut StageStatistics {
        &mut self.statistics[stage.0]
    }

    /// Counts one key that a stage examined.
    #[inline]
    pub fn note_key(&mut self, stage: StageNumber) {
        self.keys_examined += 1;
        self.at(stage).keys_examined += 1;
    }

    /// Counts one examined entry.
    /// # Errors
    /// As `OperationContext::check`; `QueryPlanKilled` if the collection is dropped during a run that takes long.
    #[inline]
    pub fn tick(&mut self) -> Result<()> {
        self.until_poll -= 1;
        if self.until_poll == 0 { self.poll() } else { Ok(()) }
    }

    /// Whether the run has no limit on its works.
    pub fn is_unlimited(&self) -> bool {
        self.works_max == u64::MAX
    }

    #[cold]
    fn poll(&mut self) -> Result<()> {
        self.works += u64::from(self.entries_per_poll);
        if self.works >= self.works_max {
            (self.is_exhausted, self.entries_per_poll, self.until_poll) = (true, 1, 1);
            return Err(exhausted());
        }
        let now = self.query.scope.operation.clock().now();
        let is_slow = now.duration_since(self.polled) > POLL_INTERVAL;
        let entries = if is_slow { self.entries_per_poll / 2 } else { self.entries_per_poll * 2 };
        self.entries_per_poll = entries.clamp(1, ENTRIES_PER_POLL_MAX);
        (self.until_poll, self.polled) = (self.entries_per_poll, now);
        // The snapshot stays readable after the drop, so a short run may finish.
        let is_long = self.began.is_none_or(|began| now.duration_since(began) > LONG_RUN);
        if is_long && self.collection.is_dropped() {
            return Err(dropped(&self.collection));
        }
        self.query.scope.operation.check()
    }
}

/// Never reaches a client: each caller that limits a run's works checks `is_exhausted`.
fn exhausted() -> Failure {
    Failure::new(ErrorCode::QUERY_PLAN_KILLED, "the plan did more than it was given")
}
