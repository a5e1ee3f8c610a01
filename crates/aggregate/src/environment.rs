//! What a pipeline runs with.

use bunko_bson::DocumentRef;
use bunko_expression::{EvaluationContext, Variables};

/// Memory that a stage may gather, in bytes.
/// Source: MongoDB limits, "Aggregation Pipeline Stages", 100 megabytes.
pub const STAGE_MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;

/// The world of one run: the time, the command's variables, the limits.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Milliseconds since 1970 at which the command began; `$$NOW`.
    pub now_ms: i64,
    /// The variables that the command defined.
    pub variables: Variables,
    /// Memory that one stage may gather, in bytes.
    pub stage_memory_bytes_max: usize,
}

impl Environment {
    /// A world with these variables and MongoDB's limits.
    pub fn new(now_ms: i64, variables: Variables) -> Self {
        Self { now_ms, variables, stage_memory_bytes_max: STAGE_MEMORY_BYTES_MAX }
    }

    /// What expressions over a document see.
    pub(crate) fn context<'a>(&'a self, document: DocumentRef<'a>) -> EvaluationContext<'a> {
        EvaluationContext::new(document, &self.variables, self.now_ms)
    }
}
