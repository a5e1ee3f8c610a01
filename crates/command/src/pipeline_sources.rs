//! The collections that a pipeline reads, all from one snapshot.
//!
//! They reach the stages as the `Sources` of `aggregate`'s `Environment`. A view is followed down to a collection, and
//! the pipelines on the way are put together ([`Resolved`]).

use crate::searched_collection::{Present, SearchedCollection};
use crate::service::Service;
use crate::source_stages::{self, Surroundings};
use crate::unstored::Unstored;
use crate::{collation_option, time_series, vector_search};
use bunko_aggregate::{
    Access, DocumentStream, Documents, Environment, Flow, LookupVisitor, Lookups, Pipeline, Plannable, PlannerPart,
    ScoredDocuments, Searched, SourceName, SourceStage, Sources, Stage, involved_collections,
};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, Element, StringOrder, ValueRef};
use bunko_catalog::{Answers, Catalog, Collection, Index, Namespace, Reading, Transaction};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Dependencies;
use bunko_operation::Examined;
use bunko_operation::OperationContext;
use bunko_query::{
    EqualityLookup, Execution, FindQuery, FinishedRun, Footing, IdJoin, NearAsked, Plan, PlanChoice, PlanReport,
    QueryScope, QuerySettings, plan,
};
use bunko_session::transactions::check_read;
use bunko_stages::Source;
use bunko_store::Snapshot;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

/// Most views that may stand on each other; a chain of this depth can be defined but not read.
/// Source: MongoDB 8.2, "View depth too deep or view cycle detected".
pub(crate) const VIEW_DEPTH_MAX: usize = 20;

/// The collections that one pipeline reads. Parsing notes all of them. The snapshot is taken when the first is opened,
/// and covers all indexes that were ready when their collection was noted.
pub(crate) struct PipelineSources {
    surroundings: Surroundings,
    database: String,
    operation: Arc<OperationContext>,
    settings: Option<Arc<QuerySettings>>,
    noted: Mutex<HashMap<Namespace, Resolved>>,
    snapshot: OnceLock<Arc<Snapshot>>,
}

/// The source that a name resolves to.
#[derive(Clone)]
pub(crate) struct Resolved {
    /// The pipelines of the views on the way, the lowest view's first.
    pub views: ArrayBuf,
    /// Number of views on the way.
    pub views_count: usize,
    /// The string order of the topmost view; by bytes if there is no view.
    pub strings: StringOrder,
    /// Name of the source below the views, and the source itself.
    pub namespace: Namespace,
    pub below: Below,
}

/// The source below all views.
#[derive(Clone)]
pub(crate) enum Below {
    Collection(Noted),
    /// Documents that are generated while they are read, without a planner.
    Unstored(Unstored),
    Absent,
}

impl Below {
    pub(crate) fn collection(&self) -> Option<&Noted> {
        match self {
            Self::Collection(noted) => Some(noted),
            Self::Unstored(_) | Self::Absent => None,
        }
    }

    pub(crate) fn unstored(&self) -> Option<Unstored> {
        match self {
            Self::Unstored(unstored) => Some(*unstored),
            Self::Collection(_) | Self::Absent => None,
        }
    }
}

/// A collection, and its indexes that were ready when it was noted.
#[derive(Clone)]
pub(crate) struct Noted {
    pub collection: Arc<Collection>,
    pub indexes: Arc<[Arc<Index>]>,
}

impl fmt::Debug for PipelineSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PipelineSources({})", self.database)
    }
}

/// Resolves a name through views to the source below them.
/// # Errors
/// `ViewDepthLimitExceeded`.
pub(crate) fn resolve(catalog: &Catalog, namespace: &Namespace) -> Result<Resolved> {
    resolve_by(catalog, namespace, &|namespace| catalog.collection(namespace))
}

/// As [`resolve`], for an operation. Its transaction may have created collections, and may not read every collection.
/// # Errors
/// As [`resolve`] and [`check_read`].
pub(crate) fn resolve_for(catalog: &Catalog, namespace: &Namespace, operation: &OperationContext) -> Result<Resolved> {
    let resolved = resolve_by(catalog, namespace, &|namespace| catalog.collection_for(namespace, operation))?;
    if Transaction::of(operation).is_some() {
        check_read(resolved.namespace.database(), resolved.namespace.collection())?;
    }
    if resolved.below.collection().is_none() {
        catalog.check_never_removed(namespace, operation)?;
    }
    Ok(resolved)
}

fn resolve_by(
    catalog: &Catalog,
    namespace: &Namespace,
    find: &dyn Fn(&Namespace) -> Option<Arc<Collection>>,
) -> Result<Resolved> {
    let mut pipelines = Vec::new();
    let mut strings = StringOrder::default();
    let mut below = namespace.clone();
    loop {
        if let Some(unstored) = Unstored::at(catalog, &below) {
            return Ok(resolved(&pipelines, strings, below, Below::Unstored(unstored)));
        }
        if let Some(collection) = find(&below) {
            let indexes = collection.ready_indexes().into();
            return Ok(resolved(&pipelines, strings, below, Below::Collection(Noted { collection, indexes })));
        }
        let Some(view) = catalog.view(&below)? else { return Ok(resolved(&pipelines, strings, below, Below::Absent)) };
        if pipelines.is_empty() {
            strings = view.strings()?;
        }
        pipelines.push(view.pipeline);
        let Ok(next) = Namespace::new(namespace.database(), &view.view_on) else {
            return Ok(resolved(&pipelines, strings, below, Below::Absent));
        };
        below = next;
        // A view at the limit can be defined, but not read.
        if pipelines.len() >= VIEW_DEPTH_MAX {
            let message = format!("View depth too deep or view cycle detected; maximum depth is {VIEW_DEPTH_MAX}");
            return Err(Failure::new(ErrorCode::VIEW_DEPTH_LIMIT_EXCEEDED, message));
        }
    }
}

/// A pipeline behind those of the views that it reads. A pipeline that begins with a fusion or a vector search applies
/// the views itself.
pub(crate) fn behind_views(resolved: &Resolved, pipeline: ArrayRef<'_>) -> ArrayBuf {
    if reads_by_itself(pipeline) {
        return pipeline.iter().collect();
    }
    if searches(pipeline) {
        // A search runs on the collection below, and its results go through the view.
        return pipeline.iter().take(1).chain(resolved.views.as_ref().iter()).chain(pipeline.iter().skip(1)).collect();
    }
    resolved.views.as_ref().iter().chain(pipeline.iter()).collect()
}

/// Where the input of a pipeline with this first stage comes from.
fn source_of(first: Option<Element<'_>>) -> Source {
    first.and_then(|first| bunko_stages::find(first.name)).map_or(Source::Input, |stage| stage.source)
}

/// Whether a pipeline begins with a search for documents or for their metadata.
fn searches(pipeline: ArrayRef<'_>) -> bool {
    let first = pipeline.iter().next().and_then(|stage| stage.as_document()?.first());
    source_of(first) == Source::Search
}

/// Whether the first stage of a pipeline, or a pipeline inside it, reads the collection itself.
pub(crate) fn reads_by_itself(pipeline: ArrayRef<'_>) -> bool {
    let first = pipeline.iter().next().and_then(|stage| stage.as_document()?.first());
    source_of(first).resolves_collection()
}

fn resolved(pipelines: &[ArrayBuf], strings: StringOrder, namespace: Namespace, below: Below) -> Resolved {
    let views = pipelines.iter().rev().flat_map(|pipeline| pipeline.as_ref().iter()).collect();
    Resolved { views, views_count: pipelines.len(), strings, namespace, below }
}

impl PipelineSources {
    pub(crate) fn new(service: &Service, database: &str, scope: &QueryScope) -> Arc<Self> {
        Arc::new(Self {
            surroundings: Surroundings::of(service, &scope.operation),
            database: database.to_owned(),
            operation: Arc::clone(&scope.operation),
            settings: scope.settings.clone(),
            noted: Mutex::default(),
            snapshot: OnceLock::new(),
        })
    }

    /// Whether more collections are read than the pipeline's own, so that all must share a snapshot.
    pub(crate) fn are_several(&self) -> bool {
        !self.noted.lock().is_empty()
    }

    /// The snapshot from which a collection is read. Reads of present data use one snapshot for all collections.
    /// # Errors
    /// Errors of the operation's transaction.
    pub(crate) fn snapshot(&self, collection: &Collection) -> Result<Arc<Snapshot>> {
        if !Reading::of(&*self.operation).is_present() {
            // All collections are read in one past state, in which a collection may differ from its present form.
            return collection.snapshot_for(&*self.operation).map(Arc::new);
        }
        Ok(Arc::clone(self.snapshot.get_or_init(|| Arc::new(self.surroundings.catalog.store().snapshot()))))
    }

    /// The collection's indexes that the command's query settings allow.
    fn allowed(&self, collection: &Collection, indexes: &Arc<[Arc<Index>]>) -> Arc<[Arc<Index>]> {
        let settings = self.settings.as_ref();
        match settings.and_then(|settings| settings.allowed_in(collection.namespace().as_str())) {
            None => Arc::clone(indexes),
            Some(allowed) => indexes.iter().filter(|index| allowed.allows(index)).cloned().collect(),
        }
    }

    fn namespace(&self, source: &SourceName) -> Result<Namespace> {
        Namespace::new(source.database.as_deref().unwrap_or(&self.database), &source.collection)
    }

    /// Resolves and notes a name, and all names in the pipelines of its views.
    pub(crate) fn note_namespace(&self, namespace: &Namespace) -> Result<Resolved> {
        if let Some(resolved) = self.noted.lock().get(namespace) {
            return Ok(resolved.clone());
        }
        let mut resolved = resolve_for(&self.surroundings.catalog, namespace, &self.operation)?;
        if let (Below::Collection(noted), true) = (&mut resolved.below, self.snapshot.get().is_some()) {
            // The snapshot has no keys of an index that became ready after it was taken.
            noted.indexes = [noted.collection.id_index()].into();
        }
        self.noted.lock().insert(namespace.clone(), resolved.clone());
        for name in involved_collections(resolved.views.as_ref()) {
            self.note_namespace(&Namespace::new(namespace.database(), name)?)?;
        }
        Ok(resolved)
    }
}

impl Sources for PipelineSources {
    fn note(&self, source: &SourceName, strings: &StringOrder) -> Result<()> {
        let namespace = self.namespace(source)?;
        let resolved = self.note_namespace(&namespace)?;
        let is_other = resolved.views_count > 0 && resolved.strings != *strings;
        if is_other && time_series::find(&self.surroundings.catalog, &namespace)?.is_none() {
            return Err(collation_option::overrides_view(&namespace));
        }
        Ok(())
    }

    fn open(
        &self,
        source: &SourceName,
        pipeline: ArrayRef<'_>,
        environment: &Environment,
    ) -> Result<Box<dyn DocumentStream>> {
        let namespace = self.namespace(source)?;
        let resolved = self.note_namespace(&namespace)?;
        let stages = behind_views(&resolved, pipeline);
        let parsed = Pipeline::parse(stages.as_ref(), environment.over(Some(source)))?;
        if let Some(unstored) = resolved.below.unstored().filter(|_| !parsed.brings_documents()) {
            return Ok(parsed.open(unstored.open(&self.surroundings, &parsed, None)?));
        }
        let (part, pipeline) = parsed.split_for_planner();
        if pipeline.brings_documents() {
            return Ok(pipeline.open(Box::new(Documents::none())));
        }
        let query = planner_query(part, &pipeline, Arc::clone(&environment.scope))?;
        let Below::Collection(noted) = resolved.below else {
            if query.near.is_some() {
                return Err(no_collection_near(&resolved.namespace));
            }
            return Ok(pipeline.open(Box::new(Documents::none())));
        };
        let query = FindQuery { among: Some(Arc::clone(&noted.indexes)), ..query };
        let execution = plan(&noted.collection, query)?.open_shared(&self.snapshot(&noted.collection)?)?;
        Ok(pipeline.open(Box::new(Planned::new(execution))))
    }

    fn access(&self, source: &SourceName, path: &str, strings: &StringOrder) -> Access {
        let resolved = self.namespace(source).and_then(|namespace| self.note_namespace(&namespace));
        let Ok(Resolved { views_count: 0, below: Below::Collection(noted), .. }) = resolved else {
            return Access::Scan;
        };
        let begins = |index: &Arc<Index>| {
            index.kind.answers() == Answers::ByField
                && index.strings == *strings
                && index.fields.first().is_some_and(|field| field.path == path)
        };
        match path {
            "_id" if noted.collection.strings() == strings => Access::Id,
            _ if noted.indexes.iter().any(begins) => Access::Index,
            _ => Access::Scan,
        }
    }

    fn finds_whole_values(&self, source: &SourceName, path: &str, strings: &StringOrder) -> bool {
        let resolved = self.namespace(source).and_then(|namespace| self.note_namespace(&namespace));
        let Ok(Resolved { views, below: Below::Collection(Noted { collection, indexes }), .. }) = resolved else {
            return false;
        };
        // The filters of views and the pipeline's own are planned together.
        let is_filter = |stage: ValueRef<'_>| {
            let first = stage.as_document().and_then(DocumentRef::first);
            first.is_some_and(|first| first.name == bunko_stages::MATCH.name)
        };
        let serves = |index: &Arc<Index>| {
            index.kind.answers() == Answers::ByField
                && !index.is_hidden
                && !index.is_sparse
                && index.partial_filter.is_none()
                && index.strings == *strings
                && index.fields.first().is_some_and(|field| field.path == path)
                && !index.multikey().is_multikey_at(0)
        };
        views.as_ref().iter().all(is_filter) && self.allowed(&collection, &indexes).iter().any(serves)
    }

    fn lookups(&self, source: &SourceName, path: &str, strings: &StringOrder) -> Result<Option<Box<dyn Lookups>>> {
        let resolved = self.note_namespace(&self.namespace(source)?)?;
        let Resolved { views_count: 0, below: Below::Collection(Noted { collection, indexes }), .. } = resolved else {
            return Ok(None);
        };
        let snapshot = self.snapshot(&collection)?;
        if path == "_id" && collection.strings() == strings {
            let operation = Arc::clone(&self.operation);
            return Ok(Some(Box::new(ById(IdJoin::new(collection, snapshot, Arc::clone(&operation)), operation))));
        }
        let indexes = self.allowed(&collection, &indexes);
        let operation = Arc::clone(&self.operation);
        let lookup = EqualityLookup::new(&collection, &indexes, path, strings, snapshot, operation);
        Ok(lookup.map(|lookup| Box::new(ByIndex(lookup)) as Box<dyn Lookups>))
    }

    fn nearest(&self, over: &SourceName, specification: DocumentRef<'_>) -> Result<Box<dyn ScoredDocuments>> {
        if !Reading::of(&*self.operation).is_present() {
            let message = "Aggregation stage $vectorSearch cannot run with a readConcern other than 'local'. Current \
                           readConcern: snapshot";
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        let resolved = self.note_namespace(&self.namespace(over)?)?;
        vector_search::open(&resolved, specification, &self.surroundings.catalog, &self.operation)
    }

    fn searched(&self, source: &SourceName) -> Result<Option<Box<dyn Searched>>> {
        let resolved = self.note_namespace(&self.namespace(source)?)?;
        let collection = match resolved.below {
            Below::Collection(Noted { collection, .. }) => collection,
            Below::Unstored(unstored) => return Err(unstored.refusal("a search", &resolved.namespace)),
            Below::Absent => return Ok(None),
        };
        let snapshot = self.snapshot(&collection)?;
        let present = Reading::of(&*self.operation).is_present().then(|| Present {
            catalog: Arc::clone(&self.surroundings.catalog),
            operation: Arc::clone(&self.operation),
        });
        Ok(Some(Box::new(SearchedCollection::new(collection, snapshot, present))))
    }

    fn check_source_stage(&self, name: &str, over: Option<&SourceName>) -> Result<()> {
        let database = over.and_then(|over| over.database.as_deref()).unwrap_or(&self.database);
        source_stages::check_place(name, database, over.map(|over| over.collection.as_str()))
    }

    fn source_stage(&self, stage: Element<'_>, over: Option<&SourceName>) -> Result<Option<SourceStage>> {
        self.check_source_stage(stage.name, over)?;
        let Some(over) = over else { return Ok(None) };
        // A source stage in a view's own pipeline is about the collection below.
        let resolved = self.note_namespace(&self.namespace(over)?)?;
        source_stages::inside(stage, &resolved.namespace, &self.surroundings)
    }
}

/// Finds documents by their `_id`.
struct ById(IdJoin, Arc<OperationContext>);

impl Lookups for ById {
    fn find(&mut self, value: ValueRef<'_>, visitor: &mut LookupVisitor<'_>) -> Result<bool> {
        let found = self.0.find(value, visitor)?;
        self.1.work_done().note_examined(u64::from(found), u64::from(found));
        Ok(found)
    }
}

/// Finds documents by an index.
struct ByIndex(EqualityLookup);

impl Lookups for ByIndex {
    fn find(&mut self, value: ValueRef<'_>, visitor: &mut LookupVisitor<'_>) -> Result<bool> {
        self.0.find(value, visitor)
    }
}

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
    }
    if let Dependencies::Fields(fields) = rest.dependencies() {
        query.needed = Some(fields.into_iter().map(String::into_boxed_str).collect());
    }
    Ok(query)
}

/// A filter that matches where all filters match.
pub(crate) fn all_of(filters: &[DocumentBuf]) -> DocumentBuf {
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
pub(crate) fn no_collection_near(namespace: &Namespace) -> Failure {
    let message = format!("$geoNear requires a geo index to run, but {namespace} does not exist");
    Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, message)
}

/// A plan's documents, lent to later stages that only inspect them.
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
    /// The plan of an execution that begins.
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
    /// Documents without a check, after a pause, whether the collection still exists.
    pub(crate) fn new(execution: Execution) -> Self {
        Self { execution, footing: None, run: None, counted: Examined::default() }
    }

    /// Documents whose plan's footing is held until they are read.
    pub(crate) fn on(execution: Execution, footing: Arc<Footing>, run: Arc<PlanRun>) -> Self {
        Self { footing: Some(footing), run: Some(run), ..Self::new(execution) }
    }

    /// Counts for the operation the keys and documents that the plan examined since the last call.
    fn count(&mut self) {
        let totals = self.execution.statistics();
        let operation = &self.execution.plan().query().scope.operation;
        let (keys, documents) = (totals.keys_examined, totals.docs_examined);
        operation.work_done().note_examined(keys - self.counted.keys, documents - self.counted.documents);
        self.counted = Examined { keys, documents };
    }

    /// Notes that all documents have been read.
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

    fn lends_parts(&self) -> bool {
        true
    }

    /// A plan continues where its visitor stopped.
    fn visit_part(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow>) -> Result<()> {
        self.visit(visitor)
    }
}
