//! `aggregate`: runs documents through a pipeline.

mod aggregation;

pub(crate) use aggregation::{Aggregation, open, prepare, run_counted};

use super::{explain, find};
use crate::authorization::Privileges;
use crate::change_stream;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::cursor_reply::{FIRST_BATCH_DOCUMENTS, FirstBatch, while_running, write_first_batch, write_running};
use crate::dispatch::Halt;
use crate::each_stage;
use crate::invocation::Invocation;
use crate::let_variables::scope_with_let;
use crate::pipeline_sources::PipelineSources;
use crate::pipeline_writes::PipelineWrite;
use crate::source_stages::{SourcedPipeline, privileges_of};
use crate::time_series;
use crate::unstored::Unstored;
use aggregation::Aggregated;
use bunko_aggregate::{
    DocumentStream, Documents, Environment, Pipeline, WriteStage, involved_collections, stage_field,
};
use bunko_authority::is_on_users;
use bunko_authority::privileges::pipelines;
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, Type, ValueRef, Writer, number};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure};
use bunko_operation::OperationContext;
use bunko_query::Hint;
use bunko_request::counted_as::Opcounter;
use bunko_request::counted_as::OperationClass;
use bunko_request::facts::{
    Changes, CommandFacts, EncryptionUse, Explanation, ReadConcernUse, ReadsFrom, Secrets, Stability, TimeLimit,
    TransactionUse, UnstoredUse, WriteConcernUse,
};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_request::query_shape::ShapePart;
use bunko_session::cursors::{CursorSource, NoDocuments};

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

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    if invocation.boolean("bypassDocumentValidation", false)? {
        invocation.operation().bypass_validation();
    }
    let stages = invocation.array("pipeline")?;
    if let Some(stages) = stages {
        check_names(invocation, stages)?;
        if change_stream::begins(stages)? {
            return watch(invocation, reply, stages);
        }
    }
    refuse_nulls(invocation)?;
    if invocation.field(collection_uuid::NAME).is_some() {
        let named = namespace(invocation)?;
        check_uuid(&invocation.service.catalog, invocation, &named)?;
    }
    check_needs_no_collection(invocation, invocation)?;
    let namespace = namespace(invocation)?;
    let sourced = stages.map(|stages| take_off_source(invocation, invocation, &namespace, stages));
    let sourced = sourced.transpose()?.flatten();
    let batch_size = batch_size(invocation)?;
    if invocation.boolean("explain", false)? {
        return explain::run_pipeline(invocation, namespace, reply);
    }
    let batch_size = batch_size.ok_or_else(no_cursor_option)?;
    let (source, is_long) = match sourced {
        Some(sourced) => {
            sourced.check_subject(&invocation.service.catalog, &namespace)?;
            let Sourced { source, write } = open_sourced(invocation, &namespace, &sourced)?;
            match write {
                Some((write, environment)) => {
                    return write_all(invocation, reply, &namespace, source, (&write, &environment));
                }
                None => (source, false),
            }
        }
        None => {
            invocation.refuse_if_large(&namespace)?;
            let aggregation = parse(invocation, invocation, named(invocation, &namespace))?;
            if let Some(stage) = aggregation.pipeline.write() {
                return write(invocation, reply, &namespace, aggregation, stage);
            }
            open(invocation, aggregation)?
        }
    };
    let batch = FirstBatch { documents: batch_size, is_only: false, is_long, has_no_timeout: false };
    Ok(write_running(invocation, reply, &namespace, source, &batch, RUNNING)?)
}

/// Looks up the names of all stages. MongoDB checks the types of the command's fields first, so this does too.
fn check_names(invocation: &Invocation<'_>, stages: ArrayRef<'_>) -> Result<(), Failure> {
    take_options(invocation, invocation.operation())?;
    if batch_size(invocation)?.is_none() && !invocation.boolean("explain", false)? {
        return Err(no_cursor_option());
    }
    each_stage::check_names(stages)
}

/// Opens a change stream on the named collection, on the database, or on all databases.
fn watch(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>, stages: ArrayRef<'_>) -> Result<(), Halt> {
    let namespace = match invocation.argument() {
        ValueRef::String(_) => invocation.namespace()?,
        other if number::as_i64_exact(other) == Some(1) => {
            Namespace::of_cursor(invocation.request.database, "$cmd.aggregate")?
        }
        _ => {
            let message = "Invalid command format: the 'aggregate' field must specify a collection name or 1";
            return Err(Failure::failed_to_parse(message).into());
        }
    };
    if invocation.boolean("explain", false)? {
        return explain::run_pipeline(invocation, namespace, reply);
    }
    let documents = batch_size(invocation)?.ok_or_else(no_cursor_option)?;
    take_options(invocation, invocation.operation())?;
    let source = change_stream::open(invocation, &namespace, stages)?;
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
    let (source, _) = open(invocation, aggregation)?;
    let mut documents = FromCursor(source);
    let written = write.run(invocation, &mut documents, &environment);
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
    let written = write.run(invocation, &mut FromCursor(source), environment);
    written.map_err(|failure| while_running(failure, RUNNING, namespace))?;
    write_no_documents(invocation, reply, namespace)
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

/// The named collection; for `{aggregate: 1}` the namespace of its cursors.
fn namespace(invocation: &mut Invocation<'_>) -> Result<Namespace, Failure> {
    let argument = invocation.argument();
    if argument.as_str().is_some() { invocation.namespace() } else { without_collection(invocation, argument) }
}

/// The namespace of the cursors of `{aggregate: 1}`.
/// # Errors
/// `FailedToParse` for another argument.
pub(super) fn without_collection(invocation: &Invocation<'_>, argument: ValueRef<'_>) -> Result<Namespace, Failure> {
    if number::as_i64_exact(argument) != Some(1) {
        let message = "Invalid command format: the 'aggregate' field must specify a collection name or 1";
        return Err(Failure::failed_to_parse(message));
    }
    Namespace::of_cursor(invocation.request.database, "$cmd.aggregate")
}

/// The collection; `None` if the command is `{aggregate: 1}`.
pub(super) fn named<'n>(fields: &Fields<'_>, namespace: &'n Namespace) -> Option<&'n Namespace> {
    fields.body.first().is_some_and(|first| first.value.as_str().is_some()).then_some(namespace)
}

/// Takes the source stage off a pipeline that begins with one.
/// # Errors
/// Errors of the stages; otherwise 40602 if a source stage is not the first stage.
pub(super) fn take_off_source<'a>(
    invocation: &Invocation<'_>,
    fields: &Fields<'_>,
    namespace: &Namespace,
    stages: ArrayRef<'a>,
) -> Result<Option<SourcedPipeline<'a>>, Failure> {
    SourcedPipeline::take_off(stages).or_else(|misplaced| {
        each_stage::check(invocation, fields, namespace, stages)?;
        Err(misplaced)
    })
}

/// Refuses `{aggregate: 1}` if the first stage needs a collection.
/// # Errors
/// Errors of the stages; otherwise `InvalidNamespace`.
pub(super) fn check_needs_no_collection(invocation: &Invocation<'_>, fields: &Fields<'_>) -> Result<(), Failure> {
    if fields.body.first().and_then(|first| number::as_i64_exact(first.value)) != Some(1) {
        return Ok(());
    }
    let Some(pipeline) = fields.array("pipeline")? else { return Ok(()) };
    let invalid = |message: String| Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    let Some(first) = pipeline.iter().next() else {
        return invalid("{aggregate: 1} is not valid for an empty pipeline.".to_owned());
    };
    let stage = stage_field(first)?;
    if bunko_stages::find(stage.name).is_some_and(|stage| !stage.subject.needs_collection()) {
        return Ok(());
    }
    let namespace = Namespace::of_cursor(invocation.request.database, "$cmd.aggregate")?;
    each_stage::check(invocation, fields, &namespace, pipeline)?;
    invalid(format!("{{aggregate: 1}} is not valid for '{}'; a collection is required.", stage.name))
}

/// Refuses a collection whose UUID is not `collectionUUID`. Change streams refuse the field elsewhere.
/// # Errors
/// 4928901 if the pipeline neither runs over a collection nor reads one; `CollectionUUIDMismatch`.
pub(super) fn check_uuid(catalog: &Catalog, fields: &Fields<'_>, namespace: &Namespace) -> Result<(), Failure> {
    let Some(uuid) = collection_uuid::parse(fields)? else { return Ok(()) };
    let stages = fields.array("pipeline")?.unwrap_or(ArrayRef::EMPTY);
    if change_stream::begins(stages)? {
        return Ok(());
    }
    if named(fields, namespace).is_none() && involved_collections(stages).is_empty() {
        let message = "collectionUUID is not supported for a collectionless aggregation";
        return Err(Failure::new(ErrorCode(4_928_901), message));
    }
    collection_uuid::check(catalog, namespace, Some(uuid))
}

/// Refuses null in the fields for which MongoDB does not treat it as a missing value.
fn refuse_nulls(fields: &Fields<'_>) -> Result<(), Failure> {
    for (name, expected) in [("pipeline", "array"), ("cursor", "object"), ("allowDiskUse", "bool")] {
        if let Some(value) = fields.body.get(name).filter(|value| value.is_nullish()) {
            return Err(fields.mismatch(name, value, &format!("type '{expected}'")));
        }
    }
    Ok(())
}

fn no_cursor_option() -> Failure {
    Failure::failed_to_parse("The 'cursor' option is required, except for aggregate with the explain argument")
}

/// The most documents of the first batch; `None` without a `cursor`.
fn batch_size(fields: &Fields<'_>) -> Result<Option<u64>, Failure> {
    let Some(cursor) = fields.document("cursor")? else { return Ok(None) };
    let fields = Fields::new("aggregate.cursor", cursor);
    for element in cursor {
        if element.name != "batchSize" {
            return Err(Failure::new(
                ErrorCode::IDL_UNKNOWN_FIELD,
                format!("BSON field 'aggregate.cursor.{}' is an unknown field.", element.name),
            ));
        }
    }
    Ok(Some(fields.size("batchSize")?.unwrap_or(FIRST_BATCH_DOCUMENTS)))
}

/// Reads a pipeline and hands its first stages to the planner. `explain` passes the fields of the command inside it.
/// # Errors
/// MongoDB's codes for malformed fields, stages and expressions.
pub(crate) fn parse(
    invocation: &Invocation<'_>,
    fields: &Fields<'_>,
    namespace: Option<&Namespace>,
) -> Result<Aggregation, Failure> {
    take_options(fields, invocation.operation())?;
    let stages = required_stages(fields)?;
    let scope = match namespace {
        Some(namespace) => invocation.scope_in(fields, namespace)?,
        None => invocation.scope_without_collection(fields)?,
    };
    let scope = scope_with_let(fields, scope)?;
    let mut aggregation = prepare(invocation, namespace, stages, scope)?;
    aggregation.query.hint = hint(invocation, fields, namespace)?;
    Ok(aggregation)
}

/// The command's hint for the planner. Over a time series, a key pattern of measurements becomes one of buckets.
/// # Errors
/// As [`Hint::parse`].
pub(crate) fn hint(
    invocation: &Invocation<'_>,
    fields: &Fields<'_>,
    namespace: Option<&Namespace>,
) -> Result<Option<Hint>, Failure> {
    let hint = fields.field("hint").map_or(Ok(None), Hint::parse)?;
    let (Some(Hint::KeyPattern(key)), Some(namespace)) = (&hint, namespace) else { return Ok(hint) };
    match time_series::find(&invocation.service.catalog, namespace)? {
        Some(series) => Ok(Some(Hint::KeyPattern(time_series::bucket_key(key.as_ref(), &series.options)?))),
        None => Ok(hint),
    }
}

/// The name of a pipeline's first stage.
pub(crate) fn first_name(stages: ArrayRef<'_>) -> Option<&str> {
    first_stage_name(stages.iter().next()?)
}

fn first_stage_name(stage: ValueRef<'_>) -> Option<&str> {
    Some(stage.as_document()?.first()?.name)
}

fn required_stages<'a>(fields: &Fields<'a>) -> Result<ArrayRef<'a>, Failure> {
    fields.array("pipeline")?.ok_or_else(|| {
        Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, "BSON field 'aggregate.pipeline' is missing but a required field")
    })
}

fn take_options(fields: &Fields<'_>, operation: &OperationContext) -> Result<(), Failure> {
    refuse_nulls(fields)?;
    batch_size(fields)?;
    fields.boolean("bypassDocumentValidation", false)?;
    fields.strict_boolean("allowDiskUse", false)?;
    find::set_disk_use(fields, operation)
}

/// The documents of a pipeline that begins with a source stage.
struct Sourced {
    source: Box<dyn CursorSource>,
    /// The write of a pipeline that ends in one, and the environment of that pipeline.
    write: Option<(PipelineWrite, Environment)>,
}

/// The stages after a source stage. A source stage has no indexes, so a hint is ignored, as in MongoDB.
/// # Errors
/// MongoDB's codes for malformed options, stages and expressions.
pub(super) fn behind_source(
    invocation: &Invocation<'_>,
    fields: &Fields<'_>,
    namespace: &Namespace,
    sourced: &SourcedPipeline<'_>,
) -> Result<Pipeline, Failure> {
    take_options(fields, invocation.operation())?;
    let scope = scope_with_let(fields, invocation.scope_in(fields, namespace)?)?;
    let sources = PipelineSources::new(invocation.service, invocation.request.database, &scope);
    Pipeline::parse(sourced.rest.as_ref(), Environment::new(scope).with_sources(sources))
}

/// Opens a source stage and puts the other stages on top of it.
fn open_sourced(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    sourced: &SourcedPipeline<'_>,
) -> Result<Sourced, Halt> {
    let pipeline = behind_source(invocation, invocation, namespace, sourced)?;
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
