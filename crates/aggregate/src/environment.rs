//! What a pipeline runs with.

use crate::{NoSources, SourceName, Sources};
use bunko_bson::{DocumentRef, StringOrder};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Engine, EvaluationContext, Variables};
use bunko_operation::OperationContext;
use bunko_query::QueryScope;
use std::sync::Arc;

/// How deep pipelines may stand inside each other.
/// Source: MongoDB 8.2, parameter `internalMaxSubPipelineViewDepth`.
pub const SUB_PIPELINE_DEPTH_MAX: usize = 20;

/// The world of one run: what expressions see, and the limits.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The time and the command's variables, which the planner's part of the pipeline sees too.
    pub scope: Arc<QueryScope>,
    /// The collections that stages may read.
    pub sources: Arc<dyn Sources>,
    /// The collection or view that the pipeline is over, where there is one.
    pub over: Option<SourceName>,
    /// How many pipelines stand around this one.
    pub depth: usize,
    /// In which of MongoDB's engines a stage would run.
    pub engine: Engine,
    /// Whether pipelines run as they were sent.
    pub rewrites: Rewrites,
}

/// Whether stages do each other's work and hand it to the planner. Results are the same either way, which tests show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrites {
    /// Whatever is quicker.
    Applied,
    /// Every stage does its own work, on whole documents that it is handed one by one.
    Off,
}

impl Environment {
    /// A world in which no stage can read a collection.
    pub fn new(scope: Arc<QueryScope>) -> Self {
        Self {
            scope,
            sources: Arc::new(NoSources),
            over: None,
            depth: 0,
            engine: Engine::Classic,
            rewrites: Rewrites::Applied,
        }
    }

    /// The same, with collections.
    #[must_use]
    pub fn with_sources(self, sources: Arc<dyn Sources>) -> Self {
        Self { sources, ..self }
    }

    /// The same, with pipelines rewritten or not.
    #[must_use]
    pub fn with_rewrites(self, rewrites: Rewrites) -> Self {
        Self { rewrites, ..self }
    }

    /// The same world, in which a stage that is parsed would run in that engine.
    pub(crate) fn in_engine(&self, engine: Engine) -> Self {
        Self { engine, ..self.clone() }
    }

    /// The same for a pipeline over a collection, a view or neither.
    #[must_use]
    pub fn over(&self, source: Option<&SourceName>) -> Self {
        Self { over: source.cloned(), ..self.clone() }
    }

    /// The world of a pipeline inside one of this world's stages.
    /// # Errors
    /// `MaxSubPipelineDepthExceeded`.
    pub(crate) fn nested(&self) -> Result<Self> {
        if self.depth == SUB_PIPELINE_DEPTH_MAX {
            let message = format!("Maximum number of nested sub-pipelines exceeded. Limit is {SUB_PIPELINE_DEPTH_MAX}");
            return Err(Failure::new(ErrorCode::MAX_SUB_PIPELINE_DEPTH_EXCEEDED, message));
        }
        Ok(Self { depth: self.depth + 1, scope: Arc::new(self.scope.over_others()), ..self.clone() })
    }

    /// The same world, in which expressions see these variables.
    #[must_use]
    pub(crate) fn with_variables(&self, variables: Variables) -> Self {
        let variables = variables.with_cluster_time(self.scope.variables.cluster_time());
        let scope = QueryScope { variables, ..self.scope.over_others() };
        Self { scope: Arc::new(scope), ..self.clone() }
    }

    /// For whom the pipeline runs: whatever loops counts its work there.
    pub(crate) fn operation(&self) -> &OperationContext {
        &self.scope.operation
    }

    /// In which order strings are.
    pub(crate) fn strings(&self) -> &StringOrder {
        &self.scope.strings
    }

    /// What expressions over a document see.
    #[inline]
    pub(crate) fn context<'a>(&'a self, document: DocumentRef<'a>) -> EvaluationContext<'a> {
        self.scope.context(document)
    }
}
