//! Reads a pipeline over a collection, a view or no collection, splits it between the planner and its stages, and opens
//! it.

use crate::context::PipelineContext;
use crate::planned::{PlanRun, Planned, no_collection_near, planner_query};
use crate::resolved::{Below, Resolved, behind_views, reads_by_itself, resolve_for};
use crate::sources::PipelineSources;
use crate::unindexed::direction;
use bunko_aggregate::{DocumentStream, Documents, Environment, Pipeline, PlannerPart, SourceName, StageRun};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Offered;
use bunko_query::{Execution, FindQuery, Footing, Hint, PlanReport, QueryScope, Standing, plan};
use bunko_session::cursors::CursorSource;
use bunko_store::{Lsn, Snapshot};
use std::sync::{Arc, Weak};

/// A pipeline, split between the planner and its stages.
pub struct Aggregation {
    /// The query that the planner runs.
    pub query: FindQuery,
    /// The stages that are left after the planner took its part.
    pub pipeline: Pipeline,
    /// The source below all views; `None` for a pipeline that needs no collection.
    pub resolved: Option<Resolved>,
    sources: Arc<PipelineSources>,
}

/// The error code for a `$geoNear` that is not the first stage.
const GEO_NEAR_NOT_FIRST: ErrorCode = ErrorCode(40603);

impl Aggregation {
    /// Reads a pipeline over a collection, a view or no collection.
    /// # Errors
    /// Errors of stages, expressions and views.
    pub fn prepare(
        context: &dyn PipelineContext,
        namespace: Option<&Namespace>,
        stages: ArrayRef<'_>,
        scope: Arc<QueryScope>,
    ) -> Result<Self> {
        let surroundings = context.surroundings();
        let catalog = Arc::clone(&surroundings.catalog);
        let sources = PipelineSources::new(surroundings, context.request().database, &scope);
        if let Some(namespace) = namespace
            && first_name(stages) == Some(bunko_stages::DOCUMENTS.name)
        {
            let message = format!("$documents is not valid on a collection ({namespace}), only with {{aggregate: 1}}");
            return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
        }
        let resolved = namespace.map(|namespace| resolve_for(&catalog, namespace, &scope.operation)).transpose()?;
        let over = namespace.map(|namespace| SourceName::here(namespace.collection()));
        let environment = Environment::new(Arc::clone(&scope))
            .with_sources(Arc::clone(&sources) as _)
            .with_rewrites(context.rewrites())
            .over(over.as_ref());
        // The stages that the client sent are checked on their own, before a view's stages are put in front of them.
        if reads_by_itself(stages)
            && let Some(namespace) = namespace
            && bunko_series::find(&catalog, namespace)?.is_some()
        {
            let stage = first_name(stages).unwrap_or_default();
            let message = format!("{stage} is not supported on a time series collection: {namespace}");
            return Err(Failure::new(ErrorCode(10_557_301), message));
        }
        let is_view = resolved.as_ref().is_some_and(|resolved| resolved.views_count > 0);
        // Over a view, the view's stages decide which metadata documents have. So the client's stages, parsed without
        // those of the view, may ask for any metadata.
        let found = match &resolved {
            Some(resolved) if resolved.below.unstored().is_none() => Offered::PLAN,
            _ => Offered::NONE,
        };
        let offered = if is_view { Offered::ANY } else { found };
        let alone = Environment { scope: Arc::new(environment.scope.offering(offered)), ..environment.clone() };
        let environment = Environment { scope: Arc::new(environment.scope.offering(found)), ..environment };
        let sent = Pipeline::parse(stages, alone);
        let parsed = match (&resolved, namespace) {
            (Some(resolved), Some(namespace)) if resolved.views_count > 0 => {
                // Over a time series the stages follow the one that unpacks buckets, so `$geoNear` need not be first.
                if let Err(failure) = sent
                    && failure.code() != GEO_NEAR_NOT_FIRST
                {
                    return Err(failure);
                }
                sources.note_namespace(namespace)?;
                Pipeline::parse(behind_views(resolved, stages).as_ref(), environment)?
            }
            _ => sent?,
        };
        let (part, pipeline) = match resolved.as_ref().and_then(|resolved| resolved.below.unstored()) {
            // No collection is stored here, so the planner has nothing to plan.
            Some(_) => (PlannerPart::default(), parsed),
            None => parsed.split_for_planner(),
        };
        Ok(Self { query: planner_query(part, &pipeline, scope)?, pipeline, resolved, sources })
    }

    /// Gives the query a hint. A hinted index serves the filter at the front of the pipeline, so the query takes the filter
    /// even if the pipeline is not rewritten.
    /// # Errors
    /// Errors of the filter.
    pub fn set_hint(&mut self, hint: Option<Hint>) -> Result<()> {
        let names_index = matches!(hint, Some(Hint::Name(_) | Hint::KeyPattern(_)));
        let is_stored = self.resolved.as_ref().is_some_and(|resolved| resolved.below.unstored().is_none());
        let has_taken_none = self.query.near.is_none() && self.query.filter_document.as_ref().is_empty();
        if names_index && is_stored && has_taken_none {
            let filters = self.pipeline.take_unrewritten_filters();
            if !filters.is_empty() {
                let part = PlannerPart { filters, ..PlannerPart::default() };
                self.query = planner_query(part, &self.pipeline, Arc::clone(&self.query.scope))?;
            }
        }
        self.query.hint = hint;
        Ok(())
    }

    /// Opens a pipeline. Also returns whether later batches may take long.
    /// # Errors
    /// Errors of stages and plans; [`Failure::too_long`].
    pub fn open(self, context: &dyn PipelineContext) -> Result<(Box<dyn CursorSource>, bool)> {
        if let Some(documents) = self.open_unstored(context)? {
            let stream = self.pipeline.open(documents);
            return Ok((Box::new(Aggregated::of(stream)), true));
        }
        let Self { query, pipeline, resolved, sources } = self;
        let resolved = resolved.filter(|_| !pipeline.brings_documents());
        let Some((execution, is_long)) = open_plan(context, query, resolved, &sources)? else {
            let stream = pipeline.open(Box::new(Documents::none()));
            return Ok((Box::new(Aggregated::of(stream)), false));
        };
        if pipeline.is_empty() {
            return Ok((Box::new(execution), is_long));
        }
        let footing = Arc::new(execution.footing().clone());
        let (weak, snapshot) = (Arc::downgrade(&footing), Arc::downgrade(execution.snapshot()));
        let (run, sorts) = (PlanRun::of(&execution), pipeline.sorts());
        let stream = pipeline.open(Box::new(Planned::on(execution, footing, Arc::clone(&run))));
        Ok((Box::new(Aggregated { footing: weak, snapshot, run: Some(run), sorts, ..Aggregated::of(stream) }), is_long))
    }

    /// Runs a pipeline to its end and returns the statistics of its stages.
    /// # Errors
    /// As [`Self::open`]; errors of the stages.
    pub fn run_counted(self, context: &dyn PipelineContext) -> Result<Vec<Arc<StageRun>>> {
        let unstored = self.open_unstored(context)?;
        let Self { query, pipeline, resolved, sources } = self;
        let resolved = resolved.filter(|_| !pipeline.brings_documents());
        let source: Box<dyn DocumentStream> = match unstored {
            Some(documents) => documents,
            None => match open_plan(context, query, resolved, &sources)? {
                Some((execution, _)) => Box::new(Planned::new(execution)),
                None => Box::new(Documents::none()),
            },
        };
        let (mut stream, runs) = pipeline.open_counted(source);
        while stream.next()?.is_some() {}
        Ok(runs)
    }

    /// Opens the collection that is not stored, if the pipeline reads one.
    fn open_unstored(&self, context: &dyn PipelineContext) -> Result<Option<Box<dyn DocumentStream>>> {
        let unstored = self.resolved.as_ref().and_then(|resolved| resolved.below.unstored());
        let Some(unstored) = unstored.filter(|_| !self.pipeline.brings_documents()) else { return Ok(None) };
        direction(self.query.hint.as_ref())?;
        context.check_thread(true)?;
        unstored.open(&context.surroundings(), &self.pipeline, self.query.hint.as_ref()).map(Some)
    }
}

/// Opens the planner's part of a pipeline if there is a collection.
fn open_plan(
    context: &dyn PipelineContext,
    query: FindQuery,
    resolved: Option<Resolved>,
    sources: &PipelineSources,
) -> Result<Option<(Execution, bool)>> {
    let Some(Resolved { namespace, below, .. }) = resolved else { return Ok(None) };
    let Below::Collection(noted) = below else {
        return if query.near.is_some() { Err(no_collection_near(&namespace)) } else { Ok(None) };
    };
    let collection = &noted.collection;
    let snapshot = if sources.are_several() { Some(sources.snapshot(collection)?) } else { None };
    let query = FindQuery { among: snapshot.as_ref().map(|_| Arc::clone(&noted.indexes)), ..query };
    let plan = plan(collection, Arc::new(query))?;
    let is_long = plan.is_long(collection);
    context.check_thread(is_long)?;
    let execution = match snapshot {
        Some(snapshot) => plan.open_shared(&snapshot)?,
        None => plan.open()?,
    };
    Ok(Some((execution, is_long)))
}

/// Returns the name of a pipeline's first stage; `None` for an empty pipeline.
pub(crate) fn first_name(stages: ArrayRef<'_>) -> Option<&str> {
    Some(stages.iter().next().and_then(ValueRef::as_document)?.first()?.name)
}

/// The documents that leave the last stage.
pub struct Aggregated {
    stream: Box<dyn DocumentStream>,
    current: Option<DocumentBuf>,
    /// Footing of the plan below the stages; dropped once the plan has no more documents.
    footing: Weak<Footing>,
    /// Snapshot that the plan and the pipeline's other sources read; dropped once none of them has more documents.
    snapshot: Weak<Snapshot>,
    /// The plan below the stages, for the profiler; `None` without one.
    run: Option<Arc<PlanRun>>,
    /// Whether a stage above the plan sorts.
    sorts: bool,
}

impl Aggregated {
    /// The documents of a stream without a plan below it.
    pub fn of(stream: Box<dyn DocumentStream>) -> Self {
        Self { stream, current: None, footing: Weak::new(), snapshot: Weak::new(), run: None, sorts: false }
    }
}

impl CursorSource for Aggregated {
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>> {
        self.current = self.stream.next()?;
        Ok(self.current.as_ref().map(DocumentBuf::as_ref))
    }

    fn report(&self) -> Option<PlanReport> {
        let report = self.run.as_ref()?.report();
        Some(PlanReport { sorts: report.sorts || self.sorts, ..report })
    }

    fn resume(&mut self) -> Result<()> {
        self.footing.upgrade().map_or(Ok(()), |footing| footing.check())
    }

    fn standing(&self) -> Option<Standing> {
        self.footing.upgrade().map(|footing| footing.standing())
    }

    fn snapshot(&self) -> Option<Lsn> {
        self.snapshot.upgrade().map(|snapshot| snapshot.lsn())
    }
}
