//! `aggregate`: documents through a pipeline.

use super::{explain, find};
use crate::authorization::{Privileges, pipelines};
use crate::change_stream;
use crate::collection_uuid;
use crate::cursor_reply::{FIRST_BATCH_DOCUMENTS, FirstBatch, write_first_batch};
use crate::cursor_store::{CursorSource, NoDocuments};
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::fields::Fields;
use crate::invocation::Invocation;
use crate::let_variables::scope_with_let;
use crate::oplog_view::{self, is_oplog};
use crate::pipeline_sources::{
    PipelineSources, Planned, Resolved, behind_views, no_collection_near, planner_query, reads_by_itself, resolve_for,
};
use crate::pipeline_writes::PipelineWrite;
use crate::session_collections::{self, SessionCollection};
use crate::source_stages::{SourcedPipeline, Subject, subject_of};
use crate::time_series;
use bunko_aggregate::{
    DocumentStream, Documents, Environment, Pipeline, PlannerPart, SourceName, StageRun, WriteStage,
    involved_collections,
};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef, Writer, number};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure};
use bunko_expression::Offered;
use bunko_operation::OperationContext;
use bunko_query::{Execution, FindQuery, Footing, Hint, QueryScope, plan};
use bunko_store::{Direction, Lsn, Snapshot};
use std::sync::{Arc, Weak};

pub(super) const COMMAND: Command = Command {
    name: "aggregate",
    aliases: &[],
    fields: &[
        "pipeline",
        "cursor",
        "explain",
        "allowDiskUse",
        "bypassDocumentValidation",
        "collation",
        "hint",
        "let",
        "collectionUUID",
    ],
    databases: Databases::Any,
    transaction: TransactionUse::Anywhere,
    privileges: Privileges::By(pipelines::aggregate),
    run,
};

/// A pipeline, split between the planner and its stages.
pub(crate) struct Aggregation {
    /// What the planner does.
    pub query: FindQuery,
    /// What is left to the stages.
    pub pipeline: Pipeline,
    /// What it is done over, below all views; none for a pipeline that needs no collection.
    pub resolved: Option<Resolved>,
    sources: Arc<PipelineSources>,
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    if invocation.boolean("bypassDocumentValidation", false)? {
        invocation.operation().bypass_validation();
    }
    let stages = invocation.array("pipeline")?;
    if let Some(stages) = stages
        && change_stream::begins(stages)?
    {
        return watch(invocation, reply, stages);
    }
    refuse_nulls(invocation)?;
    if invocation.field(collection_uuid::NAME).is_some() {
        let named = namespace(invocation)?;
        check_uuid(&invocation.service.catalog, invocation, &named)?;
    }
    check_needs_no_collection(invocation, invocation)?;
    let sourced = stages.map(SourcedPipeline::take_off).transpose()?.flatten();
    let namespace = namespace(invocation)?;
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
                    return write_all(invocation, reply, namespace, source, (&write, &environment));
                }
                None => (source, false),
            }
        }
        None if is_oplog(&invocation.service.catalog, &namespace) => (open_oplog(invocation, &namespace)?, true),
        None => {
            invocation.refuse_if_large(&namespace)?;
            let aggregation = parse(invocation, invocation, named(invocation, &namespace))?;
            if let Some(stage) = aggregation.pipeline.write() {
                return write(invocation, reply, namespace, aggregation, stage);
            }
            open(invocation, aggregation)?
        }
    };
    let batch = FirstBatch { documents: batch_size, is_only: false, is_long, has_no_timeout: false };
    write_first_batch(invocation, reply, namespace, source, &batch)
        .map_err(|failure| failure.with_prefix("PlanExecutor error during aggregation :: caused by :: ").into())
}

/// Opens a change stream: of the collection that is named, else of the database, or of all.
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
    write_first_batch(invocation, reply, namespace, source, &batch)
        .map_err(|failure| failure.with_prefix("PlanExecutor error during aggregation :: caused by :: ").into())
}

/// Runs a pipeline that writes what comes out of it. The cursor of the reply is empty.
fn write(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    namespace: Namespace,
    aggregation: Aggregation,
    stage: WriteStage,
) -> Result<(), Halt> {
    run_write(invocation, aggregation, stage)?;
    write_no_documents(invocation, reply, namespace)
}

/// Writes all that comes out of a pipeline.
/// # Errors
/// Those of the target, the pipeline and the writes.
pub(super) fn run_write(
    invocation: &mut Invocation<'_>,
    aggregation: Aggregation,
    stage: WriteStage,
) -> Result<(), Halt> {
    let write = PipelineWrite::new(invocation, stage, &aggregation.pipeline.environment().scope.strings)?;
    invocation.refuse_if_long(true)?;
    let environment = aggregation.pipeline.environment().clone();
    let (source, _) = open(invocation, aggregation)?;
    write_out(invocation, source, (&write, &environment))
}

fn write_all(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    namespace: Namespace,
    source: Box<dyn CursorSource>,
    write: (&PipelineWrite, &Environment),
) -> Result<(), Halt> {
    write_out(invocation, source, write)?;
    write_no_documents(invocation, reply, namespace)
}

fn write_out(
    invocation: &mut Invocation<'_>,
    source: Box<dyn CursorSource>,
    (write, environment): (&PipelineWrite, &Environment),
) -> Result<(), Halt> {
    let written = write.run(invocation, &mut FromCursor(source), environment);
    Ok(written.map_err(|failure| failure.with_prefix("PlanExecutor error during aggregation :: caused by :: "))?)
}

fn write_no_documents(
    invocation: &mut Invocation<'_>,
    reply: &mut Writer<'_>,
    namespace: Namespace,
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

/// The collection that is named, or for `{aggregate: 1}` the name that its cursors have.
fn namespace(invocation: &mut Invocation<'_>) -> Result<Namespace, Failure> {
    let argument = invocation.argument();
    if argument.as_str().is_some() { invocation.namespace() } else { without_collection(invocation, argument) }
}

/// What stands for the collection of `{aggregate: 1}`.
/// # Errors
/// `FailedToParse` for another argument.
pub(super) fn without_collection(invocation: &Invocation<'_>, argument: ValueRef<'_>) -> Result<Namespace, Failure> {
    if number::as_i64_exact(argument) != Some(1) {
        let message = "Invalid command format: the 'aggregate' field must specify a collection name or 1";
        return Err(Failure::failed_to_parse(message));
    }
    Namespace::of_cursor(invocation.request.database, "$cmd.aggregate")
}

/// The collection, unless the command was `{aggregate: 1}`.
pub(super) fn named<'n>(fields: &Fields<'_>, namespace: &'n Namespace) -> Option<&'n Namespace> {
    fields.body.first().is_some_and(|first| first.value.as_str().is_some()).then_some(namespace)
}

/// Refuses `{aggregate: 1}` where the first stage needs a collection.
/// # Errors
/// 40323 for a first stage without exactly one field, `InvalidNamespace`.
pub(super) fn check_needs_no_collection(invocation: &Invocation<'_>, fields: &Fields<'_>) -> Result<(), Failure> {
    if fields.body.first().and_then(|first| number::as_i64_exact(first.value)) != Some(1) {
        return Ok(());
    }
    let Some(pipeline) = fields.array("pipeline")? else { return Ok(()) };
    let invalid = |message: String| Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    let Some(first) = pipeline.iter().next() else {
        return invalid("{aggregate: 1} is not valid for an empty pipeline.".to_owned());
    };
    let Some(stage) = first.as_document().filter(|stage| stage.count() == 1).and_then(DocumentRef::first) else {
        let message = "A pipeline stage specification object must contain exactly one field.";
        return Err(Failure::new(ErrorCode(40323), message));
    };
    let needs_none = matches!(stage.name, "$documents" | change_stream::STAGE)
        || subject_of(stage.name).is_some_and(|it| it != Subject::Collection);
    if needs_none {
        return Ok(());
    }
    if stage.name == "$facet" {
        // What must not stand in a facet is refused before the facet is.
        let scope = invocation.scope_without_collection(invocation)?;
        let sources = PipelineSources::new(invocation.service, invocation.request.database, &scope);
        let alone: ArrayBuf = std::iter::once(first).collect();
        Pipeline::parse(alone.as_ref(), Environment::new(scope).with_sources(sources))?;
    }
    invalid(format!("{{aggregate: 1}} is not valid for '{}'; a collection is required.", stage.name))
}

/// Refuses a collection that is not the one that is meant. Streams of changes refuse to be told at all.
/// # Errors
/// 4928901 where the pipeline is over no collection and reads none; `CollectionUUIDMismatch`.
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

/// Refuses nulls where MongoDB does not take them for fields that are missing.
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

/// How many documents the first batch has at most, where there is a `cursor`.
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

/// Reads a pipeline and hands its beginning to the planner; `explain` does too, with the fields of the command inside.
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

/// The hint of a command, for the planner: one by the key of an index of measurements names an index of buckets.
/// # Errors
/// Those of [`Hint::parse`].
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

/// Reads a pipeline over a collection, a view, or nothing.
/// # Errors
/// Those of stages and expressions, and of views.
pub(crate) fn prepare(
    invocation: &Invocation<'_>,
    namespace: Option<&Namespace>,
    stages: ArrayRef<'_>,
    scope: Arc<QueryScope>,
) -> Result<Aggregation, Failure> {
    let catalog = &invocation.service.catalog;
    let sources = PipelineSources::new(invocation.service, invocation.request.database, &scope);
    if let Some(namespace) = namespace
        && first_name(stages) == Some("$documents")
    {
        let message = format!("$documents is not valid on a collection ({namespace}), only with {{aggregate: 1}}");
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    }
    let resolved = namespace.map(|namespace| resolve_for(catalog, namespace, &scope.operation)).transpose()?;
    let over = namespace.map(|namespace| SourceName::here(namespace.collection()));
    let environment = Environment::new(Arc::clone(&scope))
        .with_sources(Arc::clone(&sources) as _)
        .with_rewrites(invocation.service.fail_points.rewrites(&invocation.service.world))
        .over(over.as_ref());
    // What the client sent is refused in its own right, wherever a view's stages would end.
    if reads_by_itself(stages)
        && let Some(namespace) = namespace
        && time_series::find(catalog, namespace)?.is_some()
    {
        let stage = first_name(stages).unwrap_or_default();
        let message = format!("{stage} is not supported on a time series collection: {namespace}");
        return Err(Failure::new(ErrorCode(10_557_301), message));
    }
    let is_view = resolved.as_ref().is_some_and(|resolved| resolved.views_count > 0);
    // What is known of a view's documents is told by the view's stages.
    let found = match namespace {
        Some(namespace) if !is_oplog(catalog, namespace) => Offered::PLAN,
        _ => Offered::NONE,
    };
    let offered = if is_view { Offered::ANY } else { found };
    let alone = Environment { scope: Arc::new(environment.scope.offering(offered)), ..environment.clone() };
    let environment = Environment { scope: Arc::new(environment.scope.offering(found)), ..environment };
    let sent = Pipeline::parse(stages, alone)?;
    let parsed = match (&resolved, namespace) {
        (Some(resolved), Some(namespace)) if resolved.views_count > 0 => {
            sources.note_namespace(namespace)?;
            Pipeline::parse(behind_views(resolved, stages).as_ref(), environment)?
        }
        _ => sent,
    };
    let (part, pipeline) = match SessionCollection::below(resolved.as_ref()) {
        // There is nothing to plan.
        Some(_) => (PlannerPart::default(), parsed),
        None => parsed.split_for_planner(),
    };
    Ok(Aggregation { query: planner_query(part, &pipeline, scope)?, pipeline, resolved, sources })
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

/// Opens a pipeline, and says whether later batches may take long.
pub(crate) fn open(
    invocation: &Invocation<'_>,
    aggregation: Aggregation,
) -> Result<(Box<dyn CursorSource>, bool), Halt> {
    if let Some(documents) = session_collections::open(invocation, &aggregation)? {
        let stream = aggregation.pipeline.open(documents);
        return Ok((Box::new(Aggregated::of(stream)), true));
    }
    let Aggregation { query, pipeline, resolved, sources } = aggregation;
    let resolved = resolved.filter(|_| !pipeline.brings_documents());
    let Some((execution, is_long)) = open_plan(invocation, query, resolved, &sources)? else {
        let stream = pipeline.open(Box::new(Documents::none()));
        return Ok((Box::new(Aggregated::of(stream)), false));
    };
    if pipeline.is_empty() {
        return Ok((Box::new(execution), is_long));
    }
    let footing = Arc::new(execution.footing().clone());
    let (weak, snapshot) = (Arc::downgrade(&footing), Arc::downgrade(execution.snapshot()));
    let stream = pipeline.open(Box::new(Planned::on(execution, footing)));
    Ok((Box::new(Aggregated { footing: weak, snapshot, ..Aggregated::of(stream) }), is_long))
}

/// Opens the planner's part of a pipeline, where there is a collection.
fn open_plan(
    invocation: &Invocation<'_>,
    query: FindQuery,
    resolved: Option<Resolved>,
    sources: &PipelineSources,
) -> Result<Option<(Execution, bool)>, Halt> {
    let Some(Resolved { namespace, collection, .. }) = resolved else { return Ok(None) };
    let Some(noted) = collection else {
        return if query.near.is_some() { Err(no_collection_near(&namespace).into()) } else { Ok(None) };
    };
    let collection = &noted.collection;
    let snapshot = if sources.are_several() { Some(sources.snapshot(collection)?) } else { None };
    let query = FindQuery { among: snapshot.as_ref().map(|_| Arc::clone(&noted.indexes)), ..query };
    let plan = plan(collection, Arc::new(query))?;
    let is_long = plan.is_long(collection);
    invocation.refuse_if_long(is_long)?;
    let execution = match snapshot {
        Some(snapshot) => plan.open_shared(&snapshot)?,
        None => plan.open()?,
    };
    Ok(Some((execution, is_long)))
}

/// Runs a pipeline to its end, for what its stages do.
pub(crate) fn run_counted(invocation: &Invocation<'_>, aggregation: Aggregation) -> Result<Vec<Arc<StageRun>>, Halt> {
    let sessions = session_collections::open(invocation, &aggregation)?;
    let Aggregation { query, pipeline, resolved, sources } = aggregation;
    let resolved = resolved.filter(|_| !pipeline.brings_documents());
    let source: Box<dyn DocumentStream> = match sessions {
        Some(documents) => documents,
        None => match open_plan(invocation, query, resolved, &sources)? {
            Some((execution, _)) => Box::new(Planned::new(execution)),
            None => Box::new(Documents::none()),
        },
    };
    let (mut stream, runs) = pipeline.open_counted(source);
    while stream.next()?.is_some() {}
    Ok(runs)
}

/// Runs all stages over the oplog. A hint has nothing to choose from.
fn open_oplog(invocation: &Invocation<'_>, namespace: &Namespace) -> Result<Box<dyn CursorSource>, Halt> {
    invocation.refuse_if_long(true)?;
    take_options(invocation, invocation.operation())?;
    let stages = required_stages(invocation)?;
    if stages.iter().any(|stage| matches!(first_stage_name(stage), Some("$out" | "$merge"))) {
        return Err(Failure::not_supported_yet("a pipeline over the oplog that writes").into());
    }
    let scope = scope_with_let(invocation, invocation.scope_in(invocation, namespace)?)?;
    let stream = oplog_view::open(invocation, stages, scope, Direction::Forward)?;
    Ok(Box::new(Aggregated::of(stream)))
}

/// The documents of a pipeline that begins with a source stage.
struct Sourced {
    source: Box<dyn CursorSource>,
    /// What is to be done with them, where the pipeline writes, and its world.
    write: Option<(PipelineWrite, Environment)>,
}

/// The stages behind a source stage. A hint has nothing to choose from, and is ignored as in MongoDB.
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

/// Puts the other stages on top of a source stage.
fn open_sourced(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    sourced: &SourcedPipeline<'_>,
) -> Result<Sourced, Halt> {
    let pipeline = behind_source(invocation, invocation, namespace, sourced)?;
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

/// What comes out of the last stage.
struct Aggregated {
    stream: Box<dyn DocumentStream>,
    current: Option<DocumentBuf>,
    /// That of the plan below, while it has more.
    footing: Weak<Footing>,
    /// What the plan reads, and others below it, for as long as any of them has more.
    snapshot: Weak<Snapshot>,
}

impl Aggregated {
    fn of(stream: Box<dyn DocumentStream>) -> Self {
        Self { stream, current: None, footing: Weak::new(), snapshot: Weak::new() }
    }
}

impl CursorSource for Aggregated {
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>, Failure> {
        self.current = self.stream.next()?;
        Ok(self.current.as_ref().map(DocumentBuf::as_ref))
    }

    fn resume(&mut self) -> Result<(), Failure> {
        self.footing.upgrade().map_or(Ok(()), |footing| footing.check())
    }

    fn snapshot(&self) -> Option<Lsn> {
        self.snapshot.upgrade().map(|snapshot| snapshot.lsn())
    }
}
