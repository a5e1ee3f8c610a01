//! The fields of an `aggregate`, and what they say about its pipeline.

use super::COMMAND;
use crate::collection_uuid;
use crate::commands::find;
use crate::cursor_reply::FIRST_BATCH_DOCUMENTS;
use crate::hint_option::HintOption;
use crate::invocation::Invocation;
use crate::scope_options::ScopeOptions;
use bunko_aggregate::{Environment, Pipeline, involved_collections, stage_field};
use bunko_bson::{ArrayRef, DocumentRef, ValueRef, number};
use bunko_catalog::{Catalog, Namespace};
use bunko_change_stream::{ImageExpiry, StreamContext, StreamRequest};
use bunko_errors::{ErrorCode, Failure};
use bunko_pipelines::source_stages::SourcedPipeline;
use bunko_pipelines::{Aggregation, PipelineContext, PipelineSources, each_stage};
use bunko_query::QueryScope;
use bunko_request::fields::Fields;
use std::sync::Arc;

/// An `aggregate`, also one inside `explain`.
#[derive(Clone, Copy)]
pub(in crate::commands) struct Aggregate<'a> {
    /// The command's first value: the name of a collection, or 1.
    argument: ValueRef<'a>,
    /// The pipeline as the client sent it; `None` if it is missing.
    pub(in crate::commands) stages: Option<ArrayRef<'a>>,
    /// The expected UUID of the collection.
    pub(in crate::commands) uuid: Option<[u8; 16]>,
    pub(in crate::commands) scope: ScopeOptions<'a>,
    hint: HintOption<'a>,
    pub(super) allows_disk_use: Option<bool>,
    pub(super) bypasses_validation: bool,
    /// Maximum number of documents of the first batch; `None` without a `cursor`.
    batch_size: Option<u64>,
}

impl<'a> Aggregate<'a> {
    /// # Errors
    /// MongoDB's codes for fields of the wrong type, and for unknown fields of `cursor`.
    pub(in crate::commands) fn parse(fields: &Fields<'a>) -> Result<Self, Failure> {
        Ok(Self {
            argument: fields.body.first().map_or(ValueRef::Null, |first| first.value),
            stages: fields.array("pipeline")?,
            uuid: collection_uuid::parse(fields)?,
            scope: ScopeOptions::parse(fields, &COMMAND.facts)?,
            hint: HintOption::parse(fields),
            allows_disk_use: find::parse_disk_use(fields)?,
            bypasses_validation: fields.boolean("bypassDocumentValidation", false)?,
            batch_size: fields.document("cursor")?.map(parse_batch_size).transpose()?,
        })
    }

    /// Calls `use_it`, which opens or explains the change stream that the command asks for.
    pub(in crate::commands) fn with_stream<T>(
        &self,
        invocation: &Invocation<'_>,
        namespace: &Namespace,
        use_it: impl FnOnce(&StreamContext<'_>, &StreamRequest<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let service = invocation.service;
        let context = StreamContext {
            catalog: &service.catalog,
            tails: &service.stream_tails,
            images: ImageExpiry { seconds: service.parameters.image_expiry(), clock: service.world.clock.clone() },
            operation: invocation.operation(),
        };
        let request = StreamRequest {
            namespace,
            stages: self.stages.unwrap_or(ArrayRef::EMPTY),
            is_over_collection: self.is_over_collection(),
            has_uuid: self.uuid.is_some(),
            scope: &|| self.scope_over(invocation, namespace),
        };
        use_it(&context, &request)
    }

    /// The scope of its expressions over a collection.
    fn scope_over(&self, invocation: &Invocation<'_>, namespace: &Namespace) -> Result<Arc<QueryScope>, Failure> {
        self.scope.variables.define_in(invocation.scope_in(&self.scope, namespace)?)
    }

    /// Whether it runs over the collection that it names.
    pub(in crate::commands) fn is_over_collection(&self) -> bool {
        self.argument.as_str().is_some()
    }

    fn takes_no_collection(&self) -> bool {
        number::as_i64_exact(self.argument) == Some(1)
    }

    /// The collection; `None` if the command is `{aggregate: 1}`.
    pub(in crate::commands) fn named<'n>(&self, namespace: &'n Namespace) -> Option<&'n Namespace> {
        self.is_over_collection().then_some(namespace)
    }

    /// The named collection; for `{aggregate: 1}` the namespace of its cursors.
    pub(super) fn namespace(&self, invocation: &mut Invocation<'_>) -> Result<Namespace, Failure> {
        if self.is_over_collection() { invocation.namespace() } else { self.without_collection(invocation) }
    }

    /// The namespace of the cursors of `{aggregate: 1}`.
    /// # Errors
    /// `FailedToParse` for another argument.
    pub(in crate::commands) fn without_collection(&self, invocation: &Invocation<'_>) -> Result<Namespace, Failure> {
        if !self.takes_no_collection() {
            let message = "Invalid command format: the 'aggregate' field must specify a collection name or 1";
            return Err(Failure::failed_to_parse(message));
        }
        Namespace::of_cursor(invocation.request.database, "$cmd.aggregate")
    }

    /// # Errors
    /// `FailedToParse` unless the command has a `cursor`.
    pub(super) fn required_batch_size(&self) -> Result<u64, Failure> {
        self.batch_size.ok_or_else(|| {
            let message = "The 'cursor' option is required, except for aggregate with the explain argument";
            Failure::failed_to_parse(message)
        })
    }

    /// Takes the source stage off a pipeline that begins with one.
    /// # Errors
    /// Errors of the stages; otherwise 40602 if a source stage is not the first stage.
    pub(in crate::commands) fn take_off_source(
        &self,
        invocation: &Invocation<'_>,
        namespace: &Namespace,
    ) -> Result<Option<SourcedPipeline<'a>>, Failure> {
        let Some(stages) = self.stages else { return Ok(None) };
        SourcedPipeline::take_off(stages).or_else(|misplaced| {
            self.check_each_stage(invocation, namespace, stages)?;
            Err(misplaced)
        })
    }

    /// # Errors
    /// Errors of the options and of each stage alone.
    fn check_each_stage(
        &self,
        invocation: &Invocation<'_>,
        namespace: &Namespace,
        stages: ArrayRef<'_>,
    ) -> Result<(), Failure> {
        let scope = self.scope.variables.define_in(invocation.scope_without_collection(self.scope.collation)?)?;
        each_stage::check(invocation, scope, namespace, stages)
    }

    /// Refuses `{aggregate: 1}` if the first stage needs a collection.
    /// # Errors
    /// Errors of the stages; otherwise `InvalidNamespace`.
    pub(in crate::commands) fn check_needs_no_collection(&self, invocation: &Invocation<'_>) -> Result<(), Failure> {
        let Some(pipeline) = self.stages.filter(|_| self.takes_no_collection()) else { return Ok(()) };
        let invalid = |message: String| Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
        let Some(first) = pipeline.iter().next() else {
            return invalid("{aggregate: 1} is not valid for an empty pipeline.".to_owned());
        };
        let stage = stage_field(first)?;
        if bunko_stages::find(stage.name).is_some_and(|stage| !stage.subject.needs_collection()) {
            return Ok(());
        }
        self.check_each_stage(invocation, &self.without_collection(invocation)?, pipeline)?;
        invalid(format!("{{aggregate: 1}} is not valid for '{}'; a collection is required.", stage.name))
    }

    /// Refuses a collection whose UUID is not `collectionUUID`. Change streams refuse the field elsewhere.
    /// # Errors
    /// 4928901 if the pipeline neither runs over a collection nor reads one; `CollectionUUIDMismatch`.
    pub(in crate::commands) fn check_uuid(&self, catalog: &Catalog, namespace: &Namespace) -> Result<(), Failure> {
        let stages = self.stages.unwrap_or(ArrayRef::EMPTY);
        if self.uuid.is_none() || bunko_change_stream::begins(stages)? {
            return Ok(());
        }
        if !self.is_over_collection() && involved_collections(stages).is_empty() {
            let message = "collectionUUID is not supported for a collectionless aggregation";
            return Err(Failure::new(ErrorCode(4_928_901), message));
        }
        collection_uuid::check(catalog, namespace, self.uuid)
    }

    /// Parses the pipeline and hands its first stages to the planner.
    /// # Errors
    /// MongoDB's codes for malformed fields, stages and expressions.
    pub(in crate::commands) fn prepare(
        &self,
        invocation: &Invocation<'_>,
        namespace: Option<&Namespace>,
    ) -> Result<Aggregation, Failure> {
        find::set_disk_use(self.allows_disk_use, invocation.operation());
        let stages = self.stages.ok_or_else(|| Failure::missing_field("aggregate.pipeline"))?;
        let scope = match namespace {
            Some(namespace) => self.scope_over(invocation, namespace)?,
            None => self.scope.variables.define_in(invocation.scope_without_collection(self.scope.collation)?)?,
        };
        let mut aggregation = Aggregation::prepare(invocation, namespace, stages, scope)?;
        aggregation.set_hint(match namespace {
            Some(namespace) => self.hint.read_over(&invocation.service.catalog, namespace)?,
            None => self.hint.read()?,
        })?;
        Ok(aggregation)
    }

    /// The stages after a source stage. A source stage has no indexes, so a hint is ignored, as in MongoDB.
    /// # Errors
    /// MongoDB's codes for malformed options, stages and expressions.
    pub(in crate::commands) fn behind_source(
        &self,
        invocation: &Invocation<'_>,
        namespace: &Namespace,
        sourced: &SourcedPipeline<'_>,
    ) -> Result<Pipeline, Failure> {
        find::set_disk_use(self.allows_disk_use, invocation.operation());
        let scope = self.scope_over(invocation, namespace)?;
        let sources = PipelineSources::new(invocation.surroundings(), invocation.request.database, &scope);
        Pipeline::parse(sourced.rest.as_ref(), Environment::new(scope).with_sources(sources))
    }
}

/// The most documents of the first batch that a `cursor` asks for.
fn parse_batch_size(cursor: DocumentRef<'_>) -> Result<u64, Failure> {
    if let Some(unknown) = cursor.iter().find(|element| element.name != "batchSize") {
        return Err(Failure::unknown_field(format_args!("aggregate.cursor.{}", unknown.name)));
    }
    Ok(Fields::new("aggregate.cursor", cursor).size("batchSize")?.unwrap_or(FIRST_BATCH_DOCUMENTS))
}
