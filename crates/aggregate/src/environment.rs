//! The environment of a pipeline's run.

use crate::rewrite::StepsLeft;
use crate::rule_set::Rewrites;
use crate::{NoSources, SourceName, Sources};
use bunko_bson::{DocumentRef, StringOrder};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Engine, EvaluationContext, Variables};
use bunko_operation::OperationContext;
use bunko_query::QueryScope;
use std::sync::Arc;

/// Maximum depth of pipelines inside pipelines.
/// Source: MongoDB 8.2, parameter `internalMaxSubPipelineViewDepth`.
pub const SUB_PIPELINE_DEPTH_MAX: usize = 20;

/// The environment of one run: the scope of expressions, and limits.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The scope of expressions; the planner's part of the pipeline shares it.
    pub scope: Arc<QueryScope>,
    /// Collections that stages may read.
    pub sources: Arc<dyn Sources>,
    /// The collection or view of the pipeline, if there is one.
    pub over: Option<SourceName>,
    /// Number of pipelines around this one.
    pub depth: usize,
    /// The MongoDB engine that would run the stage.
    pub engine: Engine,
    /// Whether the pipeline may be rewritten.
    pub rewrites: Rewrites,
    /// The steps that rewriting the pipeline and those inside its stages may take.
    pub steps_left: Arc<StepsLeft>,
}

impl Environment {
    /// An environment in which stages can read no collection.
    pub fn new(scope: Arc<QueryScope>) -> Self {
        Self {
            scope,
            sources: Arc::new(NoSources),
            over: None,
            depth: 0,
            engine: Engine::Classic,
            rewrites: Rewrites::Applied,
            steps_left: Arc::default(),
        }
    }

    /// A copy with readable collections.
    #[must_use]
    pub fn with_sources(self, sources: Arc<dyn Sources>) -> Self {
        Self { sources, ..self }
    }

    /// A copy with rewrites on or off.
    #[must_use]
    pub fn with_rewrites(self, rewrites: Rewrites) -> Self {
        Self { rewrites, ..self }
    }

    /// A copy for parsing a stage that would run in this engine.
    pub(crate) fn in_engine(&self, engine: Engine) -> Self {
        Self { engine, ..self.clone() }
    }

    /// A copy for a pipeline over a collection, a view or neither.
    #[must_use]
    pub fn over(&self, source: Option<&SourceName>) -> Self {
        Self { over: source.cloned(), ..self.clone() }
    }

    /// The environment of a pipeline inside a stage of this one.
    /// # Errors
    /// `MaxSubPipelineDepthExceeded`.
    pub(crate) fn nested(&self) -> Result<Self> {
        if self.depth == SUB_PIPELINE_DEPTH_MAX {
            let message = format!("Maximum number of nested sub-pipelines exceeded. Limit is {SUB_PIPELINE_DEPTH_MAX}");
            return Err(Failure::new(ErrorCode::MAX_SUB_PIPELINE_DEPTH_EXCEEDED, message));
        }
        Ok(Self { depth: self.depth + 1, scope: Arc::new(self.scope.over_others()), ..self.clone() })
    }

    /// A copy in which expressions see these variables.
    #[must_use]
    pub(crate) fn with_variables(&self, variables: Variables) -> Self {
        let variables = variables.with_cluster_time(self.scope.variables.cluster_time());
        let scope = QueryScope { variables, ..self.scope.over_others() };
        Self { scope: Arc::new(scope), ..self.clone() }
    }

    /// The operation that the pipeline runs for; every loop counts its work there.
    pub(crate) fn operation(&self) -> &OperationContext {
        &self.scope.operation
    }

    /// The string order.
    pub(crate) fn strings(&self) -> &StringOrder {
        &self.scope.strings
    }

    /// The context for evaluating expressions over a document.
    #[inline]
    pub(crate) fn context<'a>(&'a self, document: DocumentRef<'a>) -> EvaluationContext<'a> {
        self.scope.context(document)
    }
}
