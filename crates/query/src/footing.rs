//! The conditions for a running plan to go on with its next batch.

use crate::plan::Plan;
use bunko_catalog::{Collection, Index, Namespace, dropped};
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

    /// Checks whether the plan may go on after a pause. Its snapshot stays readable, but MongoDB's clients do not
    /// expect documents of a dropped collection.
    /// # Errors
    /// `QueryPlanKilled` if the collection was dropped or renamed, or one of the indexes was dropped.
    pub fn check(&self) -> Result<()> {
        check(self.plan.collection(), &self.namespace, self.plan.dropped_index())
    }

    /// The conditions without the plan, for documents that were read already.
    pub fn standing(&self) -> Standing {
        let collection = Arc::clone(self.plan.collection());
        let indexes = self.plan.parts().used.iter().map(|used| Arc::clone(&used.index)).collect();
        Standing { collection, namespace: Arc::clone(&self.namespace), indexes }
    }
}

/// The collection, its name and the indexes by which documents were read.
#[derive(Clone)]
pub struct Standing {
    collection: Arc<Collection>,
    namespace: Arc<Namespace>,
    indexes: Arc<[Arc<Index>]>,
}

impl Standing {
    /// Checks whether the documents may be returned after a pause.
    /// # Errors
    /// As [`Footing::check`].
    pub fn check(&self) -> Result<()> {
        let present = self.collection.indexes();
        let is_there = |index: &Arc<Index>| present.iter().any(|other| other.keyspace == index.keyspace);
        let dropped_index = self.indexes.iter().find(|index| !is_there(index));
        check(&self.collection, &self.namespace, dropped_index.map(|index| &**index))
    }
}

fn check(collection: &Collection, name: &Namespace, dropped_index: Option<&Index>) -> Result<()> {
    if collection.is_dropped() {
        return Err(dropped(collection));
    }
    let namespace = collection.namespace();
    if *namespace != *name {
        return Err(killed(format!("collection renamed from '{name}' to '{namespace}'")));
    }
    match dropped_index {
        Some(index) => Err(killed(format!("query plan killed :: index '{}' dropped", index.name))),
        None => Ok(()),
    }
}

fn killed(message: String) -> Failure {
    Failure::new(ErrorCode::QUERY_PLAN_KILLED, message)
}
