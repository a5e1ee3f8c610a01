//! Opens plans on snapshots.

use crate::contest;
use crate::execution::Execution;
use crate::plan::Plan;
use crate::planner;
use bunko_errors::Result;
use bunko_store::Snapshot;
use std::sync::Arc;

impl Plan {
    /// Starts the plan on the snapshot of its operation: the present state, or the transaction's. If an index was
    /// dropped or met its first array since planning, plans the query again, on a newer snapshot.
    /// # Errors
    /// As [`crate::plan`] if it has to plan again; errors of the transaction.
    pub fn open(&self) -> Result<Execution> {
        let mut plan = self.clone();
        let snapshot = |plan: &Self| plan.collection().snapshot_for(&*plan.query().scope.operation);
        let mut opened = snapshot(&plan)?;
        while !plan.holds() {
            plan = plan.planned_again()?;
            // An index may have become ready after the old snapshot was taken.
            opened = snapshot(&plan)?;
        }
        plan.begin(Arc::new(opened))
    }

    /// As [`Self::open`], on a shared snapshot that it keeps even if it plans again. The query's `among` must list the
    /// indexes that were ready when the snapshot was taken.
    /// # Errors
    /// As [`Self::open`].
    pub fn open_shared(&self, snapshot: &Arc<Snapshot>) -> Result<Execution> {
        debug_assert!(self.query().among.is_some());
        let mut plan = self.clone();
        while !plan.holds() {
            plan = plan.planned_again()?;
        }
        plan.begin(Arc::clone(snapshot))
    }

    fn planned_again(&self) -> Result<Self> {
        self.collection().wait_for_indexes(|| self.query().scope.operation.check())?;
        planner::plan(self.collection(), Arc::clone(self.query()))
    }

    fn begin(self, snapshot: Arc<Snapshot>) -> Result<Execution> {
        let (plan, works_max, choice) = contest::settle(self, &snapshot)?;
        plan.parts().used.iter().for_each(|used| used.index.note_use());
        let mut execution = Execution::new(plan, snapshot);
        execution.note_choice(choice);
        execution.watch(works_max);
        Ok(execution)
    }
}
