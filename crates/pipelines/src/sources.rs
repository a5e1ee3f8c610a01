//! The collections that a pipeline reads, all from one snapshot.
//!
//! They reach the stages as the `Sources` of `aggregate`'s `Environment`. A view is followed down to a collection, and
//! the pipelines on the way are put together ([`Resolved`]).

use crate::planned::{Planned, no_collection_near, planner_query};
use crate::resolved::{Below, Noted, Resolved, behind_views, overrides_view, resolve_for};
use crate::searched_collection::{Present, SearchedCollection};
use crate::source_stages;
use crate::surroundings::Surroundings;
use crate::vector_search;
use bunko_aggregate::{
    Access, DocumentStream, Documents, Environment, LookupVisitor, Lookups, Pipeline, ScoredDocuments, Searched,
    SourceName, SourceStage, Sources, involved_collections,
};
use bunko_bson::{ArrayRef, DocumentRef, Element, StringOrder, ValueRef};
use bunko_catalog::{Answers, Collection, Index, Namespace, Reading};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_query::{EqualityLookup, FindQuery, IdJoin, QueryScope, QuerySettings, plan};
use bunko_store::Snapshot;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The collections that one pipeline reads. Parsing notes all of them. The snapshot is taken when the first is opened,
/// and covers all indexes that were ready when their collection was noted.
pub struct PipelineSources {
    surroundings: Surroundings,
    database: String,
    settings: Option<Arc<QuerySettings>>,
    noted: Mutex<HashMap<Namespace, Resolved>>,
    snapshot: OnceLock<Arc<Snapshot>>,
}

impl fmt::Debug for PipelineSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PipelineSources({})", self.database)
    }
}

impl PipelineSources {
    /// The sources of a pipeline, none of them noted yet.
    pub fn new(surroundings: Surroundings, database: &str, scope: &QueryScope) -> Arc<Self> {
        Arc::new(Self {
            surroundings,
            database: database.to_owned(),
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
        if !Reading::of(&*self.surroundings.operation).is_present() {
            // All collections are read in one past state, in which a collection may differ from its present form.
            return collection.snapshot_for(&*self.surroundings.operation).map(Arc::new);
        }
        Ok(Arc::clone(self.snapshot.get_or_init(|| Arc::new(self.surroundings.catalog.store().snapshot()))))
    }

    /// The indexes among `indexes` that the command's query settings allow.
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
        let mut resolved = resolve_for(&self.surroundings.catalog, namespace, &self.surroundings.operation)?;
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
        if is_other && bunko_series::find(&self.surroundings.catalog, &namespace)?.is_none() {
            return Err(overrides_view(&namespace));
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
        let parsed = Pipeline::parse_extended(stages.as_ref(), environment.over(Some(source)))?;
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
            let operation = Arc::clone(&self.surroundings.operation);
            return Ok(Some(Box::new(ById(IdJoin::new(collection, snapshot, Arc::clone(&operation)), operation))));
        }
        let indexes = self.allowed(&collection, &indexes);
        let operation = Arc::clone(&self.surroundings.operation);
        let lookup = EqualityLookup::new(&collection, &indexes, path, strings, snapshot, operation);
        Ok(lookup.map(|lookup| Box::new(ByIndex(lookup)) as Box<dyn Lookups>))
    }

    fn nearest(&self, over: &SourceName, specification: DocumentRef<'_>) -> Result<Box<dyn ScoredDocuments>> {
        if !Reading::of(&*self.surroundings.operation).is_present() {
            let message = "Aggregation stage $vectorSearch cannot run with a readConcern other than 'local'. Current \
                           readConcern: snapshot";
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        let resolved = self.note_namespace(&self.namespace(over)?)?;
        vector_search::open(&resolved, specification, &self.surroundings.catalog, &self.surroundings.operation)
    }

    fn searched(&self, source: &SourceName) -> Result<Option<Box<dyn Searched>>> {
        let resolved = self.note_namespace(&self.namespace(source)?)?;
        let collection = match resolved.below {
            Below::Collection(Noted { collection, .. }) => collection,
            Below::Unstored(unstored) => return Err(unstored.refusal("a search", &resolved.namespace)),
            Below::Absent => return Ok(None),
        };
        let snapshot = self.snapshot(&collection)?;
        let present = Reading::of(&*self.surroundings.operation).is_present().then(|| Present {
            catalog: Arc::clone(&self.surroundings.catalog),
            operation: Arc::clone(&self.surroundings.operation),
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

/// Looks documents up by their `_id`.
struct ById(IdJoin, Arc<OperationContext>);

impl Lookups for ById {
    fn find(&mut self, value: ValueRef<'_>, visitor: &mut LookupVisitor<'_>) -> Result<bool> {
        let found = self.0.find(value, visitor)?;
        self.1.work_done().note_examined(u64::from(found), u64::from(found));
        Ok(found)
    }
}

/// Looks documents up by an index that begins with the path.
struct ByIndex(EqualityLookup);

impl Lookups for ByIndex {
    fn find(&mut self, value: ValueRef<'_>, visitor: &mut LookupVisitor<'_>) -> Result<bool> {
        self.0.find(value, visitor)
    }
}
