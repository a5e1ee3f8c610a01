//! `aggregate`: runs documents through a pipeline.

mod output;
mod request;

pub(super) use output::run_write;
pub(super) use request::Aggregate;

use super::{explain, find};
use crate::authorization::{Privileges, privileges_of};
use crate::command_entry::Command;
use crate::cursor_reply::{FirstBatch, while_running, write_first_batch, write_running};
use crate::invocation::Invocation;
use bunko_aggregate::{Documents, Environment, WriteStage};
use bunko_authority::is_on_users;
use bunko_authority::privileges::pipelines;
use bunko_bson::{DocumentRef, Type, ValueRef, Writer};
use bunko_catalog::Namespace;
use bunko_pipelines::source_stages::SourcedPipeline;
use bunko_pipelines::unstored::Unstored;
use bunko_pipelines::{Aggregated, Aggregation, PipelineWrite, each_stage};
use bunko_request::counted_as::{Opcounter, OperationClass};
use bunko_request::facts::{
    Changes, CommandFacts, EncryptionUse, Explanation, ReadConcernUse, ReadsFrom, Secrets, SettingsUse, Stability,
    TimeLimit, TransactionUse, UnstoredUse, WriteConcernUse,
};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::query_shape::ShapePart;
use bunko_session::Halt;
use bunko_session::cursors::{CursorSource, NoDocuments};
use output::{FromCursor, run_into};

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
        query_settings: SettingsUse::ByShape,
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

fn write_no_documents(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    namespace: &Namespace,
) -> Result<(), Halt> {
    let batch = FirstBatch { documents: 0, is_only: true, is_long: false, has_no_timeout: false };
    Ok(write_first_batch(invocation, reply, namespace, Box::new(NoDocuments), &batch)?)
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
