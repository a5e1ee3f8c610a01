//! Inserts the whole dataset into an empty collection.

use super::insert::{InsertRequests, check_batch};
use super::{Assignment, Effect, Moves, Operation, Requests};
use bunko_dataset::Dataset;
use serde::{Deserialize, Serialize};

/// Settings of the operation `load`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Load {
    /// Documents per insert command; fewer if they would exceed a command's limit.
    pub batch: u64,
}

impl Default for Load {
    fn default() -> Self {
        Self { batch: 1_000 }
    }
}

impl Operation for Load {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Fills]
    }

    fn moves(&self) -> Moves {
        Moves::WholeDocuments
    }

    fn takes_collections(&self) -> bool {
        true
    }

    // The insertions end the operation; a request may hold fewer documents than a batch.
    fn natural_requests(&self, _documents: u64, _slots: u64) -> Option<u64> {
        Some(u64::MAX)
    }

    fn check(&self, _dataset: &Dataset) -> Result<(), String> {
        check_batch(self.batch)
    }

    fn start(&self, assignment: &Assignment<'_>) -> Result<Box<dyn Requests>, String> {
        Ok(Box::new(InsertRequests::new(assignment, self.batch)))
    }
}
