//! `aggregate`: runs documents through a pipeline.

use super::{explain, find};
use crate::authorization::Privileges;
use crate::authorization::privileges_of;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::cursor_reply::{FIRST_BATCH_DOCUMENTS, FirstBatch, while_running, write_first_batch, write_running};
use crate::hint_option::HintOption;
use crate::invocation::Invocation;
use crate::scope_options::ScopeOptions;
use bunko_aggregate::{
    DocumentStream, Documents, Environment, Pipeline, WriteStage, involved_collections, stage_field,
};
use bunko_authority::is_on_users;
use bunko_authority::privileges::pipelines;
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, Type, ValueRef, Writer, number};
use bunko_catalog::{Catalog, Namespace};
use bunko_change_stream::{ImageExpiry, StreamContext, StreamRequest};
use bunko_errors::{ErrorCode, Failure};
use bunko_pipelines::source_stages::SourcedPipeline;
use bunko_pipelines::unstored::Unstored;
use bunko_pipelines::{
    Aggregated, Aggregation, PipelineContext, PipelineSources, PipelineWrite, WriteContext, each_stage,
};
use bunko_query::QueryScope;
use bunko_request::counted_as::{Opcounter, OperationClass};
use bunko_request::facts::{
    Changes, CommandFacts, EncryptionUse, Explanation, ReadConcernUse, ReadsFrom, Secrets, Stability, TimeLimit,
    TransactionUse, UnstoredUse, WriteConcernUse,
};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_request::query_shape::ShapePart;
use bunko_session::Halt;
use bunko_session::cursors::{CursorSource, NoDocuments};
use std::sync::Arc;

/// The fields of its query shape, and how they contribute.
const QUERY_SHAPE: &[(&str, ShapePart)] = &[
    ("pipeline", ShapePart::Pipeline),
    ("allowDiskUse", ShapePart::Flag),
    ("collation", ShapePart::Exact),
    ("let", ShapePart::Expressions),
];

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "aggregate",
        fields: &[
            field("pipeline", Kind::ArrayOnly),
            field("cursor", Kind::OneOf(&[Type::Document])),
            field("explain", Kind::BooleanLike),
            field("allowDiskUse", Kind::Flag),
            field("bypassDocumentValidation", Kind::BooleanLike),
            field("collation", Kind::Object),
            field("hint", Kind::Hint),
            field("let", Kind::Object),
            field("collectionUUID", Kind::Uuid),
        ],
        transaction: TransactionUse::Anywhere,
        reads: ReadsFrom::Collection,
        changes: Changes::Output(ends_with_write),
        read_concern: ReadConcernUse::AllLevels,
        write_concern: WriteConcernUse::Taken,
        stable_api: Stability::Version1 { fields_outside: &["explain"] },
        secrets: Secrets::OfUsers(is_on_users),
        explain: Explanation::Pipeline,
        class: OperationClass::Read,
        opcounter: Opcounter::Query,
        time_limit: TimeLimit::OfReads,
        unstored: UnstoredUse::Reads,
        encryption: EncryptionUse::Allowed,
        query_shape: QUERY_SHAPE,
        internal_fields: &[
            "$_externalDataSources",
            "$_generateV2ResumeTokens",
            "$_isClusterQueryWithoutShardKeyCmd",
            "$_passthroughToShard",
            "$_requestReshardingResumeToken",
            "exchange",
            "fromMongos",
            "fromRouter",
            "includeQueryStatsMetrics",
            "isMapReduceCommand",
            "legacyRuntimeConstants",
            "mergeByPBRT",
            "needsMerge",
            "runtimeConstants",
        ],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(|asker, request| pipelines::aggregate(asker, request, privileges_of)),
    run,
    ..Command::PLAIN
};

/// Name of the command in the message of a failure that happens while it runs.
const RUNNING: &str = "aggregate command on namespace";

/// Whether the last stage of the pipeline writes its output.
fn ends_with_write(body: DocumentRef<'_>) -> bool {
    let stages = body.get("pipeline").and_then(ValueRef::as_array);
    let last = stages.and_then(|stages| stages.iter().last()).and_then(ValueRef::as_document);
    last.and_then(DocumentRef::first).is_some_and(|stage| bunko_stages::is_writing(stage.name))
}

/// An `aggregate`, also one inside `explain`.
#[derive(Clone, Copy)]
pub(super) struct Aggregate<'a> {
    /// The command's first value: the name of a collection, or 1.
    argument: ValueRef<'a>,
    /// The pipeline as the client sent it; `None` if it is missing.
    pub(super) stages: Option<ArrayRef<'a>>,
    /// The expected UUID of the collection.
    pub(super) uuid: Option<[u8; 16]>,
    pub(super) scope: ScopeOptions<'a>,
    hint: HintOption<'a>,
    allows_disk_use: Option<bool>,
    bypasses_validation: bool,
    /// Most documents of the first batch; `None` without a `cursor`.
    batch_size: Option<u64>,
}

impl<'a> Aggregate<'a> {
    /// # Errors
    /// MongoDB's codes for fields of the wrong type, and for unknown fields of `cursor`.
    pub(super) fn parse(fields: &Fields<'a>) -> Result<Self, Failure> {
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
    pub(super) fn with_stream<T>(
        &self,
        invocation: &Invocation<'_>,
        namespace: &Namespace,
        use_it: impl FnOnce(&StreamContext<'_>, &StreamRequest<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let service = invocation.service;
        let context = StreamContext {
            catalog: &service.catalog,
            tails: &service.stream_tails,
            images: ImageExpiry { seconds: service.parameters.image_expiry(), clock: Arc::clone(&service.world.clock) },
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
    pub(super) fn is_over_collection(&self) -> bool {
        self.argument.as_str().is_some()
    }

    fn takes_no_collection(&self) -> bool {
        number::as_i64_exact(self.argument) == Some(1)
    }

    /// The collection; `None` if the command is `{aggregate: 1}`.
    pub(super) fn named<'n>(&self, namespace: &'n Namespace) -> Option<&'n Namespace> {
        self.is_over_collection().then_some(namespace)
    }

    /// The named collection; for `{aggregate: 1}` the namespace of its cursors.
    fn namespace(&self, invocation: &mut Invocation<'_>) -> Result<Namespace, Failure> {
        if self.is_over_collection() { invocation.namespace() } else { self.without_collection(invocation) }
    }

    /// The namespace of the cursors of `{aggregate: 1}`.
    /// # Errors
    /// `FailedToParse` for another argument.
    pub(super) fn without_collection(&self, invocation: &Invocation<'_>) -> Result<Namespace, Failure> {
        if !self.takes_no_collection() {
            let message = "Invalid command format: the 'aggregate' field must specify a collection name or 1";
            return Err(Failure::failed_to_parse(message));
        }
        Namespace::of_cursor(invocation.request.database, "$cmd.aggregate")
    }

    /// # Errors
    /// `FailedToParse` unless the command has a `cursor`.
    fn required_batch_size(&self) -> Result<u64, Failure> {
        self.batch_size.ok_or_else(|| {
            let message = "The 'cursor' option is required, except for aggregate with the explain argument";
            Failure::failed_to_parse(message)
        })
    }

    /// Takes the source stage off a pipeline that begins with one.
    /// # Errors
    /// Errors of the stages; otherwise 40602 if a source stage is not the first stage.
    pub(super) fn take_off_source(
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
    pub(super) fn check_needs_no_collection(&self, invocation: &Invocation<'_>) -> Result<(), Failure> {
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
    pub(super) fn check_uuid(&self, catalog: &Catalog, namespace: &Namespace) -> Result<(), Failure> {
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
    pub(super) fn prepare(
        &self,
        invocation: &Invocation<'_>,
        namespace: Option<&Namespace>,
    ) -> Result<Aggregation, Failure> {
        find::set_disk_use(self.allows_disk_use, invocation.operation());
        let stages = self.stages.ok_or_else(|| {
            let message = "BSON field 'aggregate.pipeline' is missing but a required field";
            Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message)
        })?;
        let scope = match namespace {
            Some(namespace) => self.scope_over(invocation, namespace)?,
            None => self.scope.variables.define_in(invocation.scope_without_collection(self.scope.collation)?)?,
        };
        let mut aggregation = Aggregation::prepare(invocation, namespace, stages, scope)?;
        aggregation.query.hint = match namespace {
            Some(namespace) => self.hint.read_over(&invocation.service.catalog, namespace)?,
            None => self.hint.read()?,
        };
        Ok(aggregation)
    }

    /// The stages after a source stage. A source stage has no indexes, so a hint is ignored, as in MongoDB.
    /// # Errors
    /// MongoDB's codes for malformed options, stages and expressions.
    pub(super) fn behind_source(
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
        let message = format!("BSON field 'aggregate.cursor.{}' is an unknown field.", unknown.name);
        return Err(Failure::new(ErrorCode::IDL_UNKNOWN_FIELD, message));
    }
    Ok(Fields::new("aggregate.cursor", cursor).size("batchSize")?.unwrap_or(FIRST_BATCH_DOCUMENTS))
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let request = Aggregate::parse(invocation)?;
    if request.bypasses_validation {
        invocation.operation().bypass_validation();
    }
    if let Some(stages) = request.stages {
        // MongoDB checks the command's options before the names of the stages.
        if !request.scope.is_explained {
            request.required_batch_size()?;
        }
        each_stage::check_names(stages)?;
        if bunko_change_stream::begins(stages)? {
            return watch(invocation, reply, &request);
        }
    }
    if request.uuid.is_some() {
        let named = request.namespace(invocation)?;
        request.check_uuid(&invocation.service.catalog, &named)?;
    }
    request.check_needs_no_collection(invocation)?;
    let namespace = request.namespace(invocation)?;
    let sourced = request.take_off_source(invocation, &namespace)?;
    if request.scope.is_explained {
        return explain::run_pipeline(invocation, namespace, &request, reply);
    }
    let documents = request.required_batch_size()?;
    let (source, is_long) = match sourced {
        Some(sourced) => {
            sourced.check_subject(&invocation.service.catalog, &namespace)?;
            let Sourced { source, write } = open_sourced(invocation, &namespace, &request, &sourced)?;
            match write {
                Some((write, environment)) => {
                    return write_all(invocation, reply, &namespace, source, (&write, &environment));
                }
                None => (source, false),
            }
        }
        None => {
            invocation.refuse_if_large(&namespace)?;
            let aggregation = request.prepare(invocation, request.named(&namespace))?;
            if let Some(stage) = aggregation.pipeline.write() {
                return write(invocation, reply, &namespace, aggregation, stage);
            }
            aggregation.open(invocation)?
        }
    };
    let batch = FirstBatch { documents, is_only: false, is_long, has_no_timeout: false };
    Ok(write_running(invocation, reply, &namespace, source, &batch, RUNNING)?)
}

/// Opens a change stream on the named collection, on the database, or on all databases.
fn watch(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>, request: &Aggregate<'_>) -> Result<(), Halt> {
    let namespace = request.namespace(invocation)?;
    if request.scope.is_explained {
        return explain::run_pipeline(invocation, namespace, request, reply);
    }
    let documents = request.required_batch_size()?;
    find::set_disk_use(request.allows_disk_use, invocation.operation());
    let source = request.with_stream(invocation, &namespace, bunko_change_stream::open)?;
    let batch = FirstBatch { documents, is_only: false, is_long: false, has_no_timeout: false };
    Ok(write_running(invocation, reply, &namespace, source, &batch, RUNNING)?)
}

/// Runs a pipeline that writes its output to a collection. The cursor of the reply is empty.
fn write(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    namespace: &Namespace,
    aggregation: Aggregation,
    stage: WriteStage,
) -> Result<(), Halt> {
    run_write(invocation, aggregation, stage, (RUNNING, namespace))?;
    write_no_documents(invocation, reply, namespace)
}

/// Writes all documents that a pipeline returns.
/// # Errors
/// Errors of the target; errors of the pipeline and of the writes, whose messages name `command` and `namespace`.
pub(super) fn run_write(
    invocation: &mut Invocation<'_>,
    aggregation: Aggregation,
    stage: WriteStage,
    (command, namespace): (&str, &Namespace),
) -> Result<(), Halt> {
    let write = PipelineWrite::new(invocation, stage, &aggregation.pipeline.environment().scope.strings)?;
    invocation.refuse_if_long(true)?;
    let environment = aggregation.pipeline.environment().clone();
    let (source, _) = aggregation.open(invocation)?;
    let mut documents = FromCursor(source);
    let written = run_into(invocation, &write, &mut documents, &environment);
    invocation.note_plan(|| documents.0.report());
    Ok(written.map_err(|failure| while_running(failure, command, namespace))?)
}

fn write_all(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    namespace: &Namespace,
    source: Box<dyn CursorSource>,
    (write, environment): (&PipelineWrite, &Environment),
) -> Result<(), Halt> {
    let written = run_into(invocation, write, &mut FromCursor(source), environment);
    written.map_err(|failure| while_running(failure, RUNNING, namespace))?;
    write_no_documents(invocation, reply, namespace)
}

/// Writes all documents of a stream, and notes what was written.
fn run_into(
    invocation: &mut Invocation<'_>,
    write: &PipelineWrite,
    documents: &mut dyn DocumentStream,
    environment: &Environment,
) -> Result<(), Failure> {
    let service = invocation.service;
    let mut context = WriteContext {
        catalog: &service.catalog,
        open_buckets: &service.open_buckets,
        stamps: &service.world,
        random: &*service.world.random,
        operation: invocation.operation(),
        own_operation: service.own_operation(),
        written: None,
    };
    let outcome = write.run(&mut context, documents, environment);
    let written = context.written;
    invocation.note_written(written);
    outcome
}

fn write_no_documents(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    namespace: &Namespace,
) -> Result<(), Halt> {
    let batch = FirstBatch { documents: 0, is_only: true, is_long: false, has_no_timeout: false };
    Ok(write_first_batch(invocation, reply, namespace, Box::new(NoDocuments), &batch)?)
}

/// The documents of a cursor.
struct FromCursor(Box<dyn CursorSource>);

impl DocumentStream for FromCursor {
    fn next(&mut self) -> Result<Option<DocumentBuf>, Failure> {
        Ok(self.0.next()?.map(DocumentRef::to_owned))
    }
}

/// The documents of a pipeline that begins with a source stage.
struct Sourced {
    source: Box<dyn CursorSource>,
    /// The write of a pipeline that ends in one, and the environment of that pipeline.
    write: Option<(PipelineWrite, Environment)>,
}

/// Opens a source stage and puts the other stages on top of it.
fn open_sourced(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    request: &Aggregate<'_>,
    sourced: &SourcedPipeline<'_>,
) -> Result<Sourced, Halt> {
    let pipeline = request.behind_source(invocation, namespace, sourced)?;
    // The size of a source without stored documents is known only after reading all of it.
    invocation.refuse_if_long(Unstored::at(&invocation.service.catalog, namespace).is_some())?;
    let documents = sourced.documents(invocation, namespace)?;
    let write = match pipeline.write() {
        Some(stage) => {
            let environment = pipeline.environment().clone();
            let write = PipelineWrite::new(invocation, stage, &environment.scope.strings)?;
            invocation.refuse_if_long(true)?;
            Some((write, environment))
        }
        None => None,
    };
    let stream = pipeline.open(Box::new(Documents::new(documents)));
    Ok(Sourced { source: Box::new(Aggregated::of(stream)), write })
}
