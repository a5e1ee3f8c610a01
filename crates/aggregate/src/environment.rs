//! What a pipeline runs with.

use bunko_bson::DocumentRef;
use bunko_expression::EvaluationContext;
use bunko_operation::OperationContext;
use bunko_query::QueryScope;
use std::sync::Arc;

/// Memory that a stage may gather, in bytes.
/// Source: MongoDB limits, "Aggregation Pipeline Stages", 100 megabytes.
pub const STAGE_MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;

/// The world of one run: what expressions see, and the limits.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The time and the command's variables, which the planner's part of the pipeline sees too.
    pub scope: Arc<QueryScope>,
    /// Memory that one stage may gather, in bytes.
    pub stage_memory_bytes_max: usize,
}

impl Environment {
    /// A world with MongoDB's limits.
    pub fn new(scope: Arc<QueryScope>) -> Self {
        Self { scope, stage_memory_bytes_max: STAGE_MEMORY_BYTES_MAX }
    }

    /// For whom the pipeline runs: whatever loops counts its work there.
    pub(crate) fn operation(&self) -> &OperationContext {
        &self.scope.operation
    }

    /// What expressions over a document see.
    pub(crate) fn context<'a>(&'a self, document: DocumentRef<'a>) -> EvaluationContext<'a> {
        self.scope.context(document)
    }
}
