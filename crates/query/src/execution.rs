//! A running plan.

use crate::contest;
use crate::find_query::FindQuery;
use crate::footing::Footing;
use crate::plan::Plan;
use crate::plan_report::{FinishedRun, PlanChoice, PlanReport};
use crate::stages::{Documents, StageNumber};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_catalog::{Collection, dropped};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_scratch::Spilled;
use bunko_store::{Location, RecordId, Snapshot};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Entries examined between two questions whether the operation has to stop: before the first, and most.
const ENTRIES_PER_POLL: u32 = 16;
const ENTRIES_PER_POLL_MAX: u32 = 128;
/// Where they took longer than that, fewer are examined before the next.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// A run that has taken so long ends when its collection is dropped. MongoDB's plans yield for the first time after as long.
/// Source: MongoDB manual 8.2, `internalQueryExecYieldPeriodMS`.
const LONG_RUN: Duration = Duration::from_millis(10);

/// What a running plan has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutionStatistics {
    /// Index keys looked at.
    pub keys_examined: u64,
    /// Documents read.
    pub docs_examined: u64,
    /// Documents handed out.
    pub returned: u64,
}

/// What one stage has done; explain prints it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StageStatistics {
    pub keys_examined: u64,
    pub docs_examined: u64,
    pub advanced: u64,
    /// Entries taken in that led to no result.
    pub rejected: u64,
    pub seeks: u64,
    pub duplicates_tested: u64,
    pub duplicates_dropped: u64,
    /// What a sort has sorted, in bytes.
    pub sorted_bytes: u64,
    /// What it put on disk.
    pub spilled: Spilled,
    pub is_at_end: bool,
}

/// What the documents that come out look like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Projected,
    Stored,
}

/// What all stages of a running plan share.
pub(crate) struct Run {
    pub snapshot: Arc<Snapshot>,
    pub collection: Arc<Collection>,
    pub query: Arc<FindQuery>,
    pub output: Output,
    /// Whether documents hold their metadata until they are projected.
    pub holds_metadata: bool,
    /// The record that a scan found last as it is stored, and where that stands.
    pub place: Option<(RecordId, Location)>,
    /// Keys that were examined for documents that nobody has asked for yet.
    pub keys_ahead: u64,
    statistics: Vec<StageStatistics>,
    entries_per_poll: u32,
    until_poll: u32,
    polled: Instant,
    /// When it began; `None` where the collection had been dropped by then.
    began: Option<Instant>,
    /// Entries examined up to the last poll, and after how many the run is given up.
    works: u64,
    works_max: u64,
    is_exhausted: bool,
}

impl Run {
    pub fn at(&mut self, stage: StageNumber) -> &mut StageStatistics {
        &mut self.statistics[stage.0]
    }

    /// Counts one examined entry.
    /// # Errors
    /// As `OperationContext::check`; `QueryPlanKilled` if the collection is dropped during a run that takes long.
    #[inline]
    pub fn tick(&mut self) -> Result<()> {
        self.until_poll -= 1;
        if self.until_poll == 0 { self.poll() } else { Ok(()) }
    }

    /// Whether it may examine as many entries as it likes.
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
        let now = Instant::now();
        let is_slow = now.duration_since(self.polled) > POLL_INTERVAL;
        let entries = if is_slow { self.entries_per_poll / 2 } else { self.entries_per_poll * 2 };
        self.entries_per_poll = entries.clamp(1, ENTRIES_PER_POLL_MAX);
        (self.until_poll, self.polled) = (self.entries_per_poll, now);
        // Its snapshot could be read further. So a plan that is soon done is not ended.
        let is_long = self.began.is_none_or(|began| now.duration_since(began) > LONG_RUN);
        if is_long && self.collection.is_dropped() {
            return Err(dropped(&self.collection));
        }
        self.query.scope.operation.check()
    }
}

/// Told to nobody: whoever limits a run's works looks whether it is exhausted.
fn exhausted() -> Failure {
    Failure::new(ErrorCode::QUERY_PLAN_KILLED, "the plan did more than it was given")
}

/// A plan running over one snapshot. It owns all that it needs and can wait in a cursor between batches.
pub struct Execution {
    footing: Footing,
    root: Box<dyn Documents>,
    run: Run,
    returned: u64,
    is_at_end: bool,
    /// A document without the metadata that it held.
    released: DocumentBuf,
    /// Whether the plan is a kept one that has found nothing yet.
    is_watched: bool,
    /// Found while it was watched, and not yet lent.
    first: Option<(RecordId, DocumentBuf)>,
    /// How its plan was chosen.
    choice: PlanChoice,
}

impl Execution {
    pub(crate) fn new(plan: Plan, snapshot: Arc<Snapshot>) -> Self {
        let parts = plan.parts();
        let now = Instant::now();
        let run = Run {
            snapshot,
            collection: Arc::clone(&parts.collection),
            query: Arc::clone(&parts.query),
            output: Output::Projected,
            holds_metadata: parts.query.holds_metadata(),
            place: None,
            keys_ahead: 0,
            statistics: vec![StageStatistics::default(); parts.stages],
            entries_per_poll: ENTRIES_PER_POLL,
            until_poll: ENTRIES_PER_POLL,
            polled: now,
            began: (!parts.collection.is_dropped()).then_some(now),
            works: 0,
            works_max: u64::MAX,
            is_exhausted: false,
        };
        let root = parts.root.open(&run);
        Self {
            footing: Footing::of(plan),
            root,
            run,
            returned: 0,
            is_at_end: false,
            released: DocumentBuf::new(),
            is_watched: false,
            first: None,
            choice: PlanChoice::Rules,
        }
    }

    /// Notes how its plan was chosen.
    pub(crate) fn note_choice(&mut self, choice: PlanChoice) {
        self.choice = choice;
    }

    /// The next document, projected as the query asks; lent until the next call.
    /// # Errors
    /// Storage errors, those of expressions, what the operation says, 292 for a sort beyond its memory. A failed
    /// execution yields nothing more.
    #[allow(clippy::should_implement_trait, reason = "what is lent until the next call cannot be an iterator's item")]
    pub fn next(&mut self) -> Result<Option<DocumentRef<'_>>> {
        self.run.output = Output::Projected;
        Ok(self.advance()?.map(|(_, document)| document))
    }

    /// The next record and its document as stored, whatever the projection.
    /// # Errors
    /// As [`Self::next`].
    pub fn next_record(&mut self) -> Result<Option<(RecordId, DocumentRef<'_>)>> {
        self.run.output = Output::Stored;
        self.advance()
    }

    /// Where the document stands that [`Self::next_record`] gave for a record last; `None` where that is not known.
    pub(crate) fn place_of(&self, record: RecordId) -> Option<Location> {
        self.run.place.filter(|(found, _)| *found == record && !self.run.holds_metadata).map(|(_, location)| location)
    }

    /// Ends the run with a failure once it has examined that many entries.
    pub(crate) fn limit_works(&mut self, works_max: u64) {
        self.run.works_max = works_max;
    }

    /// Gives the plan up for another once it has examined that many entries and found nothing.
    pub(crate) fn watch(&mut self, works_max: u64) {
        self.run.works_max = works_max;
        self.is_watched = works_max != u64::MAX;
    }

    fn unwatch(&mut self) {
        self.run.works_max = u64::MAX;
        self.is_watched = false;
    }

    /// Whether it was ended for its works.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.run.is_exhausted
    }

    /// Entries examined.
    pub(crate) fn works(&self) -> u64 {
        self.run.works + u64::from(self.run.entries_per_poll - self.run.until_poll)
    }

    /// Finds the first document of a plan that is watched, or the end; by another plan where it does too much for it.
    fn look_first(&mut self) -> Result<()> {
        if !self.is_watched || self.is_at_end {
            return Ok(());
        }
        // Until the outcome says otherwise.
        self.is_at_end = true;
        let first = self.root.next(&mut self.run);
        let first = first.map(|row| row.map(|row| (row.record, row.document.to_owned())));
        self.unwatch();
        match first {
            Ok(None) => {}
            Ok(first) => (self.first, self.is_at_end) = (first, false),
            Err(_) if self.run.is_exhausted => {
                let choice = PlanChoice::Replanned { works: self.run.works };
                let (plan, output) = (contest::settle_anew(&self.footing.plan, &self.run.snapshot)?, self.run.output);
                *self = Self { choice, ..Self::new(plan, Arc::clone(&self.run.snapshot)) };
                self.run.output = output;
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Whether documents come out of the stages with the metadata that they hold.
    fn releases(&self) -> bool {
        let is_projected = self.run.output == Output::Projected && !self.run.query.gives_whole_documents();
        self.run.holds_metadata && !is_projected
    }

    fn advance(&mut self) -> Result<Option<(RecordId, DocumentRef<'_>)>> {
        self.look_first()?;
        if self.is_at_end {
            return Ok(None);
        }
        if let Some((record, document)) = self.first.take() {
            self.returned += 1;
            self.released = if self.releases() { self.run.query.release(record, document.as_ref())? } else { document };
            return Ok(Some((record, self.released.as_ref())));
        }
        // Until the outcome says otherwise.
        self.is_at_end = true;
        let releases = self.releases();
        let row = self.root.next(&mut self.run)?;
        if row.is_some() {
            self.is_at_end = false;
            self.returned += 1;
        }
        let Some(row) = row else { return Ok(None) };
        if releases {
            self.released = self.run.query.release(row.record, row.document)?;
            return Ok(Some((row.record, self.released.as_ref())));
        }
        Ok(Some((row.record, row.document)))
    }

    /// Counts what is left, at most `most`; without reading documents where the keys decide the filter.
    /// # Errors
    /// As [`Self::next`].
    pub fn count(&mut self, most: u64) -> Result<u64> {
        let plan = self.plan().clone();
        let Some(stage) = plan.parts().root.decided_by_keys() else { return self.count_documents(most) };
        self.unwatch();
        let mut records = stage.open(&self.run);
        while self.returned < most && records.next(&mut self.run)?.is_some() {
            self.returned += 1;
        }
        Ok(self.returned)
    }

    /// Shows the documents that are left, as [`Self::next`] lends them, until the visitor has enough.
    /// # Errors
    /// As [`Self::next`], and the visitor's own.
    pub fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<ControlFlow<()>>) -> Result<()> {
        if self.run.holds_metadata {
            while let Some(document) = self.next()? {
                if visitor(document)?.is_break() {
                    break;
                }
            }
            return Ok(());
        }
        self.run.output = Output::Projected;
        self.visit_rows(visitor)
    }

    fn visit_rows(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<ControlFlow<()>>) -> Result<()> {
        self.look_first()?;
        if self.is_at_end {
            return Ok(());
        }
        if let Some((_, document)) = self.first.take() {
            self.returned += 1;
            if visitor(document.as_ref())?.is_break() {
                return Ok(());
            }
        }
        // Until the outcome says otherwise.
        self.is_at_end = true;
        let (mut flow, returned) = (ControlFlow::Continue(()), &mut self.returned);
        self.root.visit(&mut self.run, &mut |_, row| {
            *returned += 1;
            flow = visitor(row.document)?;
            Ok(flow)
        })?;
        self.is_at_end = flow.is_continue();
        Ok(())
    }

    fn count_documents(&mut self, most: u64) -> Result<u64> {
        self.run.output = Output::Stored;
        let mut left = most.saturating_sub(self.returned);
        if left > 0 {
            self.visit_rows(&mut |_| {
                left -= 1;
                Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
        }
        Ok(self.returned)
    }

    /// The plan that runs; it may be newer than the one that was opened.
    pub fn plan(&self) -> &Plan {
        &self.footing.plan
    }

    /// The state that it reads.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.run.snapshot
    }

    /// What must still be there for it to go on after a pause.
    pub fn footing(&self) -> &Footing {
        &self.footing
    }

    /// Whether it is known, without looking for one, that there is no other document.
    pub fn is_over(&self) -> bool {
        self.is_at_end || self.first.is_none() && self.root.is_over()
    }

    /// Sums over all stages.
    pub fn statistics(&self) -> ExecutionStatistics {
        let sum = |of: fn(&StageStatistics) -> u64| self.run.statistics.iter().map(of).sum();
        ExecutionStatistics {
            keys_examined: sum(|stage| stage.keys_examined) - self.run.keys_ahead,
            docs_examined: sum(|stage| stage.docs_examined),
            returned: self.returned,
        }
    }

    /// The report of the plan until now, for the profiler.
    pub fn report(&self) -> PlanReport {
        PlanReport::of(self.plan(), Some(&self.run.statistics), self.choice)
    }

    /// Takes the figures out of the execution, for a report that may be wanted later. The caller asks it for no more documents.
    pub fn finish(&mut self) -> FinishedRun {
        let statistics = std::mem::take(&mut self.run.statistics);
        FinishedRun::new(self.plan().clone(), statistics, self.choice)
    }

    /// How its plan was chosen.
    pub fn choice(&self) -> PlanChoice {
        self.choice
    }

    /// Of all stages, by their numbers.
    pub(crate) fn all_statistics(&self) -> &[StageStatistics] {
        &self.run.statistics
    }
}
