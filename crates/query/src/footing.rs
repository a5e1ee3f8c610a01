//! What a running plan stands on from one batch to the next.

use crate::plan::Plan;
use bunko_catalog::{Namespace, dropped};
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

/// The collection, its name and the indexes that a plan was opened with.
#[derive(Clone)]
pub struct Footing {
    pub(crate) plan: Plan,
    namespace: Arc<Namespace>,
}

impl Footing {
    pub(crate) fn of(plan: Plan) -> Self {
        let namespace = plan.collection().namespace();
        Self { plan, namespace }
    }

    /// Says whether the plan may go on after a pause. Its snapshot could be read further, but MongoDB's clients do not
    /// expect documents of a collection that is gone.
    /// # Errors
    /// `QueryPlanKilled` where the collection has been dropped or renamed, or one of the indexes dropped.
    pub fn check(&self) -> Result<()> {
        let collection = self.plan.collection();
        if collection.is_dropped() {
            return Err(dropped(collection));
        }
        let namespace = collection.namespace();
        if namespace != self.namespace {
            return Err(killed(format!("collection renamed from '{}' to '{namespace}'", self.namespace)));
        }
        match self.plan.dropped_index() {
            Some(index) => Err(killed(format!("query plan killed :: index '{}' dropped", index.name))),
            None => Ok(()),
        }
    }
}

fn killed(message: String) -> Failure {
    Failure::new(ErrorCode::QUERY_PLAN_KILLED, message)
}
