//! A running plan.

use crate::contest;
use crate::footing::Footing;
use crate::plan::{Plan, PlanChoice};
use crate::run::{ExecutionStatistics, Output, Run, StageStatistics};
use crate::stages::Documents;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::Result;
use bunko_store::{Location, RecordId, Snapshot};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A plan running over one snapshot. It owns all its data and can wait in a cursor between batches.
pub struct Execution {
    footing: Footing,
    root: Box<dyn Documents>,
    run: Run,
    returned: u64,
    is_at_end: bool,
    /// The document that was returned last, without its metadata.
    released: DocumentBuf,
    /// Whether the plan came from the plan cache and has not found a document yet.
    is_watched: bool,
    /// The document found during the watch, until it is returned.
    first: Option<(RecordId, DocumentBuf)>,
    /// The reason for the choice of the plan.
    choice: PlanChoice,
}

impl Execution {
    pub(crate) fn new(plan: Plan, snapshot: Arc<Snapshot>) -> Self {
        let parts = plan.parts();
        let run = Run::new(snapshot, &parts.collection, &parts.query, parts.stages);
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

    /// Sets how the plan was chosen.
    pub(crate) fn note_choice(&mut self, choice: PlanChoice) {
        self.choice = choice;
    }

    /// The next document, projected as the query asks; lent until the next call.
    /// # Errors
    /// Errors of storage and of expressions, errors of the operation (interruption, deadline), and 292 for a sort
    /// beyond its memory. A failed execution yields nothing more.
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

    /// The location of the document that [`Self::next_record`] returned last, if it is `record`; `None` if the location
    /// is not known.
    pub(crate) fn place_of(&self, record: RecordId) -> Option<Location> {
        self.run.place.filter(|(found, _)| *found == record && !self.run.holds_metadata).map(|(_, location)| location)
    }

    /// Fails the run once it has examined this many entries.
    pub(crate) fn limit_works(&mut self, works_max: u64) {
        self.run.works_max = works_max;
    }

    /// Replaces the plan if it examines this many entries without finding a document.
    pub(crate) fn watch(&mut self, works_max: u64) {
        self.run.works_max = works_max;
        self.is_watched = works_max != u64::MAX;
    }

    fn unwatch(&mut self) {
        self.run.works_max = u64::MAX;
        self.is_watched = false;
    }

    /// Whether the run reached its limit of works.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.run.is_exhausted
    }

    /// Entries examined.
    pub(crate) fn works(&self) -> u64 {
        self.run.works_so_far()
    }

    /// Finds the first document of a watched plan, or its end. Chooses another plan if this one exceeds its works.
    fn look_first(&mut self) -> Result<()> {
        if !self.is_watched || self.is_at_end {
            return Ok(());
        }
        // Stays set if the stage fails.
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

    /// Whether documents still carry metadata when they leave the stages.
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
        // Stays set if the stage fails or ends.
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

    /// Counts the remaining documents, at most `most`. Reads no documents if the keys decide the filter.
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

    /// Takes the number of remaining documents if it is known without reading them; none remains then.
    pub fn take_count(&mut self) -> Option<u64> {
        let known = self.root.take_count(&mut self.run).filter(|_| !self.is_at_end)?;
        self.is_at_end = true;
        self.returned += known;
        Some(known)
    }

    /// Shows the remaining documents to the visitor, as [`Self::next`] lends them, until the visitor breaks.
    /// # Errors
    /// As [`Self::next`], and errors of the visitor.
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
        // Stays set if a stage or the visitor fails.
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

    /// The running plan; it may be newer than the plan that was opened.
    pub fn plan(&self) -> &Plan {
        &self.footing.plan
    }

    /// The snapshot that the plan reads.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.run.snapshot
    }

    /// Conditions for going on after a pause.
    pub fn footing(&self) -> &Footing {
        &self.footing
    }

    /// Whether the plan has ended for certain; does not search for another document.
    pub fn is_over(&self) -> bool {
        self.is_at_end || self.first.is_none() && self.root.is_over()
    }

    /// Sums over all stages.
    pub fn statistics(&self) -> ExecutionStatistics {
        let sum = |of: fn(&StageStatistics) -> u64| self.run.statistics.iter().map(of).sum();
        ExecutionStatistics {
            keys_examined: self.run.keys_examined - self.run.keys_ahead,
            docs_examined: sum(|stage| stage.docs_examined),
            returned: self.returned,
        }
    }

    /// The reason for the choice of the plan.
    pub fn choice(&self) -> PlanChoice {
        self.choice
    }

    /// The statistics of all stages, indexed by stage number.
    pub(crate) fn all_statistics(&self) -> &[StageStatistics] {
        &self.run.statistics
    }

    /// Takes the statistics of all stages. The caller requests no more documents afterwards.
    pub(crate) fn take_statistics(&mut self) -> Vec<StageStatistics> {
        (self.run.keys_examined, self.run.keys_ahead) = (0, 0);
        std::mem::take(&mut self.run.statistics)
    }
}
