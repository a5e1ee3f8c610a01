//! The planner's part of a pipeline, and the documents that its plan finds.

use bunko_aggregate::{DocumentStream, Flow, Pipeline, Plannable, PlannerPart, Stage};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Dependencies;
use bunko_operation::Examined;
use bunko_query::{Execution, FindQuery, FinishedRun, Footing, NearAsked, Plan, PlanChoice, PlanReport, QueryScope};
use parking_lot::Mutex;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The query for the planner's part of a pipeline. The rest of the pipeline processes the documents that it finds.
/// # Errors
/// Errors of the filters.
pub(crate) fn planner_query(part: PlannerPart, rest: &Pipeline, scope: Arc<QueryScope>) -> Result<FindQuery> {
    let filter = all_of(&part.filters);
    let near = part.near.as_deref().map(|stage| near_asked(stage, &scope)).transpose()?.flatten();
    let mut query = FindQuery::new(filter.as_ref(), scope)?;
    query.simplify();
    query.near = near;
    query.sort = part.sort;
    query.skip = part.skip;
    query.limit = part.limit;
    query.feeds_stages = !rest.is_empty();
    if let Some(inclusion) = &part.projection {
        query.include(inclusion);
        return Ok(query);
    }
    if query.near.is_none() && query.skip == 0 && query.limit.is_none() {
        query.distinct = rest.distinct();
        query.sampled = rest.sample_size();
        query.is_counted = rest.counts_alone();
    }
    if let Dependencies::Fields(fields) = rest.dependencies() {
        query.needed = Some(fields.into_iter().map(String::into_boxed_str).collect());
    }
    Ok(query)
}

/// A filter that matches the documents that all of `filters` match.
pub fn all_of(filters: &[DocumentBuf]) -> DocumentBuf {
    match filters {
        [] => DocumentBuf::new(),
        [only] => only.clone(),
        several => DocumentBuf::new().with("$and", &several.iter().collect::<ArrayBuf>()),
    }
}

fn near_asked(stage: &dyn Stage, scope: &QueryScope) -> Result<Option<NearAsked>> {
    match stage.plannable() {
        Plannable::Near(near) => near.asked(scope),
        _ => Ok(None),
    }
}

/// The error of a search by distance on a collection that does not exist.
pub fn no_collection_near(namespace: &Namespace) -> Failure {
    let message = format!("$geoNear requires a geo index to run, but {namespace} does not exist");
    Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, message)
}

/// A plan's documents, lent to later stages that only read them.
pub(crate) struct Planned {
    execution: Execution,
    /// Held until all documents have been read. After that, the collection may be dropped.
    footing: Option<Arc<Footing>>,
    /// Where the plan's report is stored.
    run: Option<Arc<PlanRun>>,
    /// Index keys and documents that the operation has counted already.
    counted: Examined,
}

/// The plan of a pipeline, for the profiler: as it was planned, and with its statistics once it has finished.
pub(crate) struct PlanRun {
    plan: Plan,
    choice: PlanChoice,
    finished: Mutex<Option<FinishedRun>>,
}

impl PlanRun {
    /// Notes the plan of an execution that begins.
    pub(crate) fn of(execution: &Execution) -> Arc<Self> {
        let (plan, choice) = (execution.plan().clone(), execution.choice());
        Arc::new(Self { plan, choice, finished: Mutex::default() })
    }

    /// The plan's report.
    pub(crate) fn report(&self) -> PlanReport {
        let finished = self.finished.lock();
        finished.as_ref().map_or_else(|| PlanReport::planned(&self.plan, self.choice), FinishedRun::report)
    }
}

impl Planned {
    /// Opens the plan's documents without a footing: after a pause, nothing checks whether the collection still exists.
    pub(crate) fn new(execution: Execution) -> Self {
        Self { execution, footing: None, run: None, counted: Examined::default() }
    }

    /// Opens the plan's documents, and holds the plan's footing until they are read.
    pub(crate) fn on(execution: Execution, footing: Arc<Footing>, run: Arc<PlanRun>) -> Self {
        Self { footing: Some(footing), run: Some(run), ..Self::new(execution) }
    }

    /// Adds the keys and documents that the plan examined since the last call to the operation's counts.
    fn count(&mut self) {
        let totals = self.execution.statistics();
        let operation = &self.execution.plan().query().scope.operation;
        let (keys, documents) = (totals.keys_examined, totals.docs_examined);
        operation.work_done().note_examined(keys - self.counted.keys, documents - self.counted.documents);
        self.counted = Examined { keys, documents };
    }

    /// Releases the footing and stores the plan's report, because all documents have been read.
    fn end(&mut self) {
        self.footing = None;
        if let Some(run) = self.run.take() {
            *run.finished.lock() = Some(self.execution.finish());
            self.counted = Examined::default();
        }
    }
}

impl DocumentStream for Planned {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let document = self.execution.next()?.map(DocumentRef::to_owned);
        self.count();
        if document.is_none() {
            self.end();
        }
        Ok(document)
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        let mut last = Flow::More;
        let visited = self.execution.visit(&mut |document| {
            last = visitor(document)?;
            Ok(if last == Flow::Stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        self.count();
        visited?;
        if last == Flow::More {
            self.end();
        }
        Ok(())
    }

    fn take_count(&mut self) -> Option<u64> {
        let known = self.execution.take_count()?;
        self.count();
        self.end();
        Some(known)
    }

    fn lends_parts(&self) -> bool {
        true
    }

    /// A plan continues where its visitor stopped.
    fn visit_part(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        self.visit(visitor)
    }
}
