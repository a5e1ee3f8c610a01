//! Effects of a command or a statement, for the profiler, slow lines in the log and the counters.
//!
//! Counts that exist anyway are always collected. Facts that take work are made only if `Invocation::is_noted_after`
//! says that a profiler is on or that the command is slow. A `PlanReport` of `query` describes the plan of an
//! execution, of the last search of a write (`LastSearch`), or of the plan below a pipeline (`PlanRun`).
//! `StatementClock` ends each statement of a write, `Invocation::note_end` the command; both make an `Entry`, which
//! `profile_entry` describes for `system.profile` and the log.

use bunko_bson::DocumentBuf;
use bunko_operation::{Examined, WorkDone};
use bunko_query::PlanReport;
use bunko_query::write::UpdateOutcome;

/// Gathered while a command runs. Facts that are costly to make are present only if the command will be recorded.
#[derive(Default)]
pub struct Observation {
    /// Keys and documents examined.
    pub examined: Option<Examined>,
    /// Documents in the reply's batch.
    pub returned: Option<u64>,
    /// The cursor that the reply left open, or that the command read.
    pub cursor: Option<i64>,
    /// Whether the cursor has no more documents.
    pub is_cursor_exhausted: bool,
    /// Counts of the writes.
    pub counts: WriteCounts,
    /// The plan; `None` if the command is not recorded.
    pub plan: Option<Box<PlanReport>>,
    /// A lookup by `_id` that needed no plan. It is shown as one stage.
    pub lookup: Option<IdLookup>,
    /// The command that opened the cursor; `None` if this command is not recorded.
    pub originating_command: Option<DocumentBuf>,
    /// Whether a stage spilled to disk.
    pub has_used_disk: bool,
}

/// Counts of a write. A count that is `None` is not shown.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct WriteCounts {
    pub matched: Option<u64>,
    pub modified: Option<u64>,
    pub upserted: Option<u64>,
    pub inserted: Option<u64>,
    pub deleted: Option<u64>,
    pub keys_inserted: u64,
    pub keys_deleted: u64,
}

/// A document that was looked up by its `_id`.
#[derive(Clone, Copy, Debug)]
pub struct IdLookup {
    /// Whether the collection is clustered by `_id`.
    pub is_clustered: bool,
    /// Whether there is such a document.
    pub is_found: bool,
}

impl WriteCounts {
    /// Counts of an update.
    pub fn updated(outcome: &UpdateOutcome) -> Self {
        Self {
            matched: Some(outcome.matched),
            modified: Some(outcome.modified),
            upserted: Some(u64::from(outcome.upserted.is_some())),
            ..Self::default()
        }
    }

    /// Counts of a delete.
    pub fn deleted(deleted: u64) -> Self {
        Self { deleted: Some(deleted), ..Self::default() }
    }

    /// Counts of an insert.
    pub fn inserted(inserted: usize, keys: usize) -> Self {
        Self { inserted: Some(inserted as u64), keys_inserted: keys as u64, ..Self::default() }
    }
}

impl Observation {
    /// Adds the operation's counters.
    pub fn add(&mut self, done: WorkDone) {
        self.counts.keys_inserted += done.keys_inserted;
        self.counts.keys_deleted += done.keys_deleted;
        self.has_used_disk |= done.has_used_disk;
        if self.plan.is_some() || done.keys_examined + done.documents_examined > 0 {
            let examined = self.examined.get_or_insert_default();
            examined.keys += done.keys_examined;
            examined.documents += done.documents_examined;
        }
    }

    /// The report of a lookup by `_id`, as for a plan.
    pub fn plan_of_lookup(&self) -> Option<PlanReport> {
        self.lookup.map(|lookup| PlanReport::of_id_lookup(lookup.is_clustered, lookup.is_found))
    }
}
