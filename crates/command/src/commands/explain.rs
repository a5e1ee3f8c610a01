//! `explain`: how another command would run, or how it ran.

mod oplog;
mod privileges;
mod surroundings;

use super::aggregate::{self, Aggregation};
use super::bulk_write::{self, Action};
use super::{count, delete, distinct, find, find_and_modify, insert, map_reduce, update};
use crate::authorization::Privileges;
use crate::change_stream;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::dispatch::Halt;
use crate::each_stage;
use crate::invocation::Invocation;
use crate::let_variables::scope_with_let;
use crate::pipeline_sources::{Below, no_collection_near};
use crate::pipeline_writes::PipelineWrite;
use crate::source_stages::SourcedPipeline;
use crate::target::Target;
use crate::time_series;
use crate::unstored::{self, Unstored};
use crate::vector_search;
use crate::view_reads;
use crate::write_statement::refuse_long_batch;
use bunko_aggregate::{Documents, StageRun};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, StringOrder, ValueRef, Writer, number};
use bunko_catalog::{Collection, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::write::WriteExplanation;
use bunko_query::{
    CountPlan, Execution, Explained, FindQuery, Origin, QueryScope, Verbosity, distinct_query, explain_count,
    explain_plan, failed_run, plan,
};
use bunko_request::Request;
use bunko_request::facts::{CommandFacts, ExplainedWrite, Explanation, ReadConcernUse, Secrets, Stability};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::options::GenericOptions;
use bunko_update::Targets;
use privileges::may_explain;
use std::sync::Arc;
use std::time::Instant;
use surroundings::write_surroundings;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "explain",
        fields: &[field("verbosity", Kind::Choice(&["queryPlanner", "executionStats", "allPlansExecution"]))],
        read_concern: ReadConcernUse::OfExplained,
        stable_api: Stability::WHOLE,
        secrets: Secrets::OfExplained(|name| find(name).map(|command| &command.facts)),
        explain: Explanation::Itself,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::ByServer(may_explain),
    run,
    ..Command::PLAIN
};

/// The command to be explained, and the collection that it is over.
struct Subject<'a> {
    command: &'static Command,
    fields: Fields<'a>,
    namespace: Namespace,
    collection: Option<Arc<Collection>>,
    verbosity: Verbosity,
    scope: Arc<QueryScope>,
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let subject = subject(invocation)?;
    let explained = match subject.command.explain {
        Explanation::Find | Explanation::Distinct | Explanation::Count
            if Target::of(invocation, &subject.namespace)?.is_read_by_pipeline() =>
        {
            explain_view(invocation, &subject)?
        }
        Explanation::Find => {
            let query = find::parse(&subject.fields, Arc::clone(&subject.scope))?;
            explain_query(invocation, &subject, query, Origin::Query)?
        }
        Explanation::Distinct => {
            let key = distinct::key(&subject.fields)?;
            let query = distinct::parse(&subject.fields, &subject.scope)?;
            explain_query(invocation, &subject, distinct_query(query, key), Origin::Query)?
        }
        Explanation::Count => explain_counting(invocation, &subject)?,
        Explanation::Pipeline => explain_pipeline(invocation, &subject)?,
        Explanation::MapReduce => {
            refuse_view(invocation, &subject)?;
            explain_map_reduce(invocation, &subject)?
        }
        Explanation::Write(write) => {
            refuse_view(invocation, &subject)?;
            explain_write(invocation, &subject, write)?
        }
        Explanation::Refused | Explanation::Itself => return Err(cannot_explain(subject.command.name).into()),
    };
    reply.extend(explained.as_ref());
    write_surroundings(invocation, reply, &subject);
    Ok(())
}

/// Refuses to explain a command that cannot run on a view, if its collection is a view. A time series is allowed.
/// # Errors
/// `CommandNotSupportedOnView`.
fn refuse_view(invocation: &Invocation<'_>, subject: &Subject<'_>) -> Result<()> {
    let catalog = &invocation.service.catalog;
    if time_series::find(catalog, &subject.namespace)?.is_some() {
        return Ok(());
    }
    catalog.refuse_view(&subject.namespace)
}

/// Explains an `aggregate` with `explain: true`.
pub(super) fn run_pipeline(
    invocation: &Invocation<'_>,
    namespace: Namespace,
    reply: &mut Writer<'_>,
) -> Result<(), Halt> {
    let subject = Subject {
        command: invocation.command,
        fields: Fields::new(invocation.command.name, invocation.request.body),
        collection: invocation.collection(&namespace),
        namespace,
        verbosity: Verbosity::QueryPlanner,
        scope: invocation.scope(),
    };
    let explained = explain_pipeline(invocation, &subject)?;
    reply.extend(explained.as_ref());
    write_surroundings(invocation, reply, &subject);
    Ok(())
}

fn subject<'a>(invocation: &mut Invocation<'a>) -> Result<Subject<'a>> {
    let verbosity = verbosity(invocation)?;
    let argument = invocation.argument();
    if argument.is_nullish() {
        let message = "BSON field 'explain.explain' is missing but a required field";
        return Err(Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message));
    }
    let body = argument.as_document().ok_or_else(|| invocation.mismatch("explain", argument, "type 'object'"))?;
    let name = body.first().map_or("", |first| first.name);
    let Some(command) = find(name) else {
        let message = format!("Explain failed due to unknown command: {name}");
        return Err(Failure::new(ErrorCode::COMMAND_NOT_FOUND, message));
    };
    if matches!(command.explain, Explanation::Refused | Explanation::Itself) {
        return Err(cannot_explain(command.name));
    }
    if let Some(other) = body.get("$db").filter(|other| other.as_str() != Some(invocation.request.database)) {
        let message = format!(
            "Mismatched $db in explain command. Expected {} but got {}",
            invocation.request.database,
            other.as_str().unwrap_or_default()
        );
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    }
    // Unknown fields of the inner command are refused, as they are when the command runs.
    GenericOptions::parse(
        invocation.service.deployment(),
        command,
        &Request::new(invocation.request.database, body, None),
    )?;
    let fields = Fields::new(command.name, body);
    let is_pipeline = command.explain == Explanation::Pipeline;
    if is_pipeline {
        each_stage::check_names(fields.array("pipeline")?.unwrap_or(ArrayRef::EMPTY))?;
    }
    let namespace = match body.first().map(|first| first.value) {
        _ if command.explain == Explanation::Write(ExplainedWrite::Bulk) => {
            let (target, _) = bulk_write::only_operation(&fields)?;
            target.check_uuid(invocation)?;
            target.namespace
        }
        Some(ValueRef::String(collection)) => Namespace::new(invocation.request.database, collection)?,
        Some(argument) if is_pipeline => {
            let namespace = aggregate::without_collection(invocation, argument)?;
            aggregate::check_needs_no_collection(invocation, &fields)?;
            namespace
        }
        other => {
            let kind = other.map_or("missing", |value| value.kind().alias());
            let message = format!("collection name has invalid type {kind}");
            return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
        }
    };
    let is_bulk = command.explain == Explanation::Write(ExplainedWrite::Bulk);
    if is_bulk || matches!(body.first().map(|first| first.value), Some(ValueRef::String(_))) {
        // MongoDB profiles and logs it under the collection of the explained command.
        invocation.note_namespace(&namespace);
    }
    unstored::check(invocation, &namespace, command)?;
    if is_pipeline {
        aggregate::check_uuid(&invocation.service.catalog, &fields, &namespace)?;
    } else {
        collection_uuid::check_field(&invocation.service.catalog, &fields, &namespace)?;
    }
    let scope = invocation.scope_in(&fields, &namespace)?;
    Ok(Subject { command, fields, collection: invocation.collection(&namespace), namespace, verbosity, scope })
}

fn verbosity(invocation: &Invocation<'_>) -> Result<Verbosity> {
    match invocation.string("verbosity")? {
        None | Some("allPlansExecution") => Ok(Verbosity::AllPlansExecution),
        Some("executionStats") => Ok(Verbosity::ExecutionStats),
        Some("queryPlanner") => Ok(Verbosity::QueryPlanner),
        Some(other) => Err(Failure::bad_value(format!(
            "Enumeration value '{other}' for field 'explain.verbosity' is not a valid value."
        ))),
    }
}

fn explain_query(
    invocation: &Invocation<'_>,
    subject: &Subject<'_>,
    query: FindQuery,
    origin: Origin,
) -> Result<DocumentBuf, Halt> {
    let query = Arc::new(query);
    let started = Instant::now();
    let mut plan = subject.collection.as_ref().map(|collection| plan(collection, Arc::clone(&query))).transpose()?;
    if let (Some(contested), Some(collection)) = (&plan, &subject.collection) {
        invocation.refuse_if_long(contested.is_contested() && contested.is_long(collection))?;
        plan = Some(contested.contested()?);
    }
    let (mut execution, mut failure) = (None, None);
    if let (Some(plan), Some(collection), true) = (&plan, &subject.collection, subject.verbosity.runs()) {
        invocation.refuse_if_long(plan.is_long(collection))?;
        let mut running = plan.open()?;
        failure = run_to_end(&mut running).err().map(failed_run).transpose()?;
        execution = Some(running);
    }
    let explained = Explained {
        namespace: subject.namespace.as_str(),
        query: &query,
        verbosity: subject.verbosity,
        elapsed: started.elapsed(),
        failure: failure.as_ref(),
        origin,
    };
    Ok(explain_plan(explained, plan.as_ref(), execution.as_ref()))
}

fn run_to_end(execution: &mut Execution) -> Result<()> {
    while execution.next()?.is_some() {}
    Ok(())
}

fn explain_counting(invocation: &Invocation<'_>, subject: &Subject<'_>) -> Result<DocumentBuf, Halt> {
    let query = count::parse(&subject.fields, &subject.scope)?;
    let started = Instant::now();
    let plan = match &subject.collection {
        None => None,
        Some(collection) => {
            let plan = CountPlan::new(collection, count::parse(&subject.fields, &subject.scope)?)?;
            let is_long = plan.plan().is_some_and(|plan| plan.is_contested() && plan.is_long(collection));
            invocation.refuse_if_long(is_long)?;
            Some(plan.contested()?)
        }
    };
    let (mut counted, mut failure) = (None, None);
    if let (Some(plan), Some(collection), true) = (&plan, &subject.collection, subject.verbosity.runs()) {
        invocation.refuse_if_long(plan.plan().is_some_and(|plan| plan.is_long(collection)))?;
        match plan.run() {
            Ok(count) => counted = Some(count),
            Err(refusal) => failure = Some(failed_run(refusal)?),
        }
    }
    let explained = Explained {
        namespace: subject.namespace.as_str(),
        query: &query,
        verbosity: subject.verbosity,
        elapsed: started.elapsed(),
        failure: failure.as_ref(),
        origin: Origin::Query,
    };
    Ok(explain_count(explained, plan.as_ref(), counted.as_ref()))
}

fn explain_pipeline(invocation: &Invocation<'_>, subject: &Subject<'_>) -> Result<DocumentBuf, Halt> {
    let sent = subject.fields.array("pipeline")?.unwrap_or(ArrayRef::EMPTY);
    if change_stream::begins(sent)? {
        let stages = change_stream::explain(invocation, &subject.fields, &subject.namespace, sent, subject.verbosity)?;
        return Ok(of_stages(&stages));
    }
    if let Some(sourced) = aggregate::take_off_source(invocation, &subject.fields, &subject.namespace, sent)? {
        sourced.check_subject(&invocation.service.catalog, &subject.namespace)?;
        return explain_sourced(invocation, subject, sent, &sourced);
    }
    let named = aggregate::named(&subject.fields, &subject.namespace);
    let parse = || aggregate::parse(invocation, &subject.fields, named);
    explain_stages(invocation, subject, sent, &parse)
}

/// Explains a pipeline that begins with a source stage. It has no plan.
fn explain_sourced(
    invocation: &Invocation<'_>,
    subject: &Subject<'_>,
    sent: ArrayRef<'_>,
    sourced: &SourcedPipeline<'_>,
) -> Result<DocumentBuf, Halt> {
    let pipeline = aggregate::behind_source(invocation, &subject.fields, &subject.namespace, sourced)?;
    sourced.check(invocation, &subject.namespace)?;
    if let Some(stage) = pipeline.write() {
        // The target of the write is checked, but not written to.
        PipelineWrite::new(invocation, stage, &pipeline.environment().scope.strings)?;
    } else if subject.verbosity.runs() {
        let source = Box::new(Documents::new(sourced.documents(invocation, &subject.namespace)?));
        let (mut stream, runs) = pipeline.open_counted_from(source);
        while stream.next()?.is_some() {}
        return Ok(stages_alone(sent, &runs));
    }
    Ok(stages_alone(sent, &[]))
}

/// Stages of a pipeline without a plan, with statistics if they ran.
fn stages_alone(sent: ArrayRef<'_>, runs: &[Arc<StageRun>]) -> DocumentBuf {
    let mut stages = ArrayBuf::new();
    push_described(&mut stages, sent.iter(), runs);
    of_stages(&stages)
}

/// Adds the stages as the client sent them, with statistics for those that ran.
fn push_described<'s>(stages: &mut ArrayBuf, sent: impl Iterator<Item = ValueRef<'s>>, runs: &[Arc<StageRun>]) {
    for (position, stage) in sent.filter_map(ValueRef::as_document).enumerate() {
        let mut described = stage.to_owned();
        if let Some(run) = runs.get(position) {
            run.describe(&mut described);
        }
        stages.push(&described);
    }
}

fn of_stages(stages: &ArrayBuf) -> DocumentBuf {
    DocumentBuf::new().with("explainVersion", "1").with("stages", stages)
}

/// Explains a `mapReduce` as the pipeline that it is turned into.
fn explain_map_reduce(invocation: &Invocation<'_>, subject: &Subject<'_>) -> Result<DocumentBuf, Halt> {
    let stages = map_reduce::stages(&subject.fields)?;
    let scope = map_reduce::scope(invocation, &subject.fields, &subject.namespace)?;
    let parse = || aggregate::prepare(invocation, Some(&subject.namespace), stages.as_ref(), Arc::clone(&scope));
    explain_stages(invocation, subject, stages.as_ref(), &parse)
}

/// Explains a read of a view as the pipeline that it is turned into.
fn explain_view(invocation: &Invocation<'_>, subject: &Subject<'_>) -> Result<DocumentBuf, Halt> {
    let stages = view_reads::stages(subject.command, &subject.fields)?;
    let scope = scope_with_let(&subject.fields, Arc::clone(&subject.scope))?;
    let hint = view_reads::hint_of(invocation, &subject.fields, &subject.namespace)?;
    let parse = || {
        let namespace = Some(&subject.namespace);
        let mut aggregation = aggregate::prepare(invocation, namespace, stages.as_ref(), Arc::clone(&scope))?;
        aggregation.query.hint.clone_from(&hint);
        Ok(aggregation)
    };
    explain_stages(invocation, subject, stages.as_ref(), &parse)
}

/// Explains a pipeline: the plan under `$cursor`, then the stages above it, and the rules that rewrote it.
fn explain_stages(
    invocation: &Invocation<'_>,
    subject: &Subject<'_>,
    sent: ArrayRef<'_>,
    parse: &dyn Fn() -> Result<Aggregation>,
) -> Result<DocumentBuf, Halt> {
    let aggregation = parse()?;
    let rewrites: ArrayBuf = aggregation.pipeline.rewrites().iter().copied().map(ValueRef::String).collect();
    let mut explained = explain_parsed(invocation, subject, sent, (aggregation, parse))?;
    if !rewrites.as_ref().is_empty() {
        explained.append("rewrites", &rewrites);
    }
    Ok(explained)
}

/// As [`explain_stages`], for a parsed pipeline and the way to parse it again.
fn explain_parsed(
    invocation: &Invocation<'_>,
    subject: &Subject<'_>,
    sent: ArrayRef<'_>,
    (aggregation, parse): (Aggregation, &dyn Fn() -> Result<Aggregation>),
) -> Result<DocumentBuf, Halt> {
    if aggregation.resolved.as_ref().and_then(|resolved| resolved.below.unstored()) == Some(Unstored::Oplog) {
        return oplog::explain(invocation, subject, aggregation, sent);
    }
    let Aggregation { query, pipeline, resolved, .. } = aggregation;
    let write = pipeline.write();
    let runs = match write {
        None if subject.verbosity.runs() && !pipeline.is_empty() => aggregate::run_counted(invocation, parse()?)?,
        _ => Vec::new(),
    };
    if let Some(stage) = write {
        // The target of the write is checked, but not written to.
        PipelineWrite::new(invocation, stage, &pipeline.environment().scope.strings)?;
    }
    let Some(resolved) = resolved else { return Ok(stages_alone(sent, &runs)) };
    let collection = match resolved.below {
        Below::Unstored(_) => return Ok(stages_alone(sent, &runs)),
        Below::Collection(noted) => Some(noted.collection),
        Below::Absent => None,
    };
    let below = Subject {
        command: subject.command,
        fields: subject.fields,
        namespace: resolved.namespace,
        collection,
        verbosity: subject.verbosity,
        scope: Arc::clone(&query.scope),
    };
    if pipeline.brings_documents() {
        let searched = vector_search::explain(&below.namespace, below.collection.as_ref(), sent, &runs)?;
        return Ok(of_stages(&searched));
    }
    let is_near = query.near.is_some();
    if let (true, None) = (is_near, &below.collection) {
        return Err(no_collection_near(&below.namespace).into());
    }
    // A search by distance is shown as a stage even if it is the whole pipeline.
    let is_whole = pipeline.is_empty() && !is_near;
    let origin = if is_whole { Origin::WholePipeline } else { Origin::Query };
    let explained = explain_query(invocation, &below, query, origin)?;
    if is_whole {
        return Ok(explained);
    }
    let mut cursor = DocumentBuf::new();
    for part in explained.as_ref().iter().filter(|part| part.name != "explainVersion") {
        cursor.append(part.name, part.value);
    }
    let name = if is_near { "$geoNearCursor" } else { "$cursor" };
    let mut first = DocumentBuf::new().with(name, &cursor);
    let statistics = explained.as_ref().get("executionStats").and_then(ValueRef::as_document);
    if let Some(statistics) = statistics.filter(|_| !runs.is_empty() || pipeline.is_empty()) {
        let of = |name| statistics.get(name).and_then(number::as_i64_exact).unwrap_or(0);
        first.append("nReturned", of("nReturned")).append("executionTimeMillisEstimate", of("executionTimeMillis"));
    }
    let whole: ArrayBuf = resolved.views.as_ref().iter().chain(sent.iter()).collect();
    let mut stages = ArrayBuf::new();
    stages.push(&first);
    let left = pipeline.left_as_sent().filter_map(|position| whole.as_ref().get(position));
    push_described(&mut stages, left, &runs);
    Ok(of_stages(&stages))
}

fn cannot_explain(command: &str) -> Failure {
    Failure::new(ErrorCode::ILLEGAL_OPERATION, format!("Cannot explain cmd: {command}"))
}

/// An entry of `updates` or `deletes`.
enum Write<'a> {
    Update(DocumentRef<'a>),
    Delete(DocumentRef<'a>),
}

fn explain_write(
    invocation: &Invocation<'_>,
    subject: &Subject<'_>,
    write: ExplainedWrite,
) -> Result<DocumentBuf, Halt> {
    let fields = &subject.fields;
    let operation = match write {
        ExplainedWrite::Bulk => Some(bulk_write::only_operation(fields)?.1),
        ExplainedWrite::Update | ExplainedWrite::Delete | ExplainedWrite::FindAndModify => None,
    };
    let write = match (&operation, write) {
        (Some(Action::Insert(_)), _) => return Err(cannot_explain(insert::COMMAND.name).into()),
        (Some(Action::Update(statement)), _) => Some(Write::Update(statement.as_ref())),
        (Some(Action::Delete(statement)), _) => Some(Write::Delete(statement.as_ref())),
        (None, ExplainedWrite::Update) => Some(Write::Update(only_statement(fields, "updates")?)),
        (None, ExplainedWrite::Delete) => Some(Write::Delete(only_statement(fields, "deletes")?)),
        (None, ExplainedWrite::FindAndModify | ExplainedWrite::Bulk) => None,
    };
    let scope = scope_with_let(fields, Arc::clone(&subject.scope))?;
    let explanation = |strings: Option<&StringOrder>| WriteExplanation {
        collection: subject.collection.as_ref(),
        namespace: &subject.namespace,
        scope: match strings {
            Some(strings) => Arc::new(scope.with_strings(strings)),
            None => Arc::clone(&scope),
        },
        verbosity: subject.verbosity,
    };
    let refuse_long = |filter, sort, targets| {
        if !subject.verbosity.runs() {
            return Ok(());
        }
        refuse_long_batch(invocation, &subject.namespace, std::iter::once((filter, sort, targets)))
    };
    let explained = match write {
        Some(Write::Update(statement)) => {
            let statement = update::parse(statement)?;
            refuse_long(statement.filter, statement.sort, statement.targets)?;
            explanation(statement.strings.as_ref()).update(&statement)
        }
        Some(Write::Delete(statement)) => {
            let statement = delete::parse(statement)?;
            refuse_long(statement.filter, None, statement.targets)?;
            explanation(statement.strings.as_ref()).delete(&statement)
        }
        None => {
            let statement = find_and_modify::parse(fields)?;
            refuse_long(statement.filter, statement.sort, Targets::One)?;
            explanation(statement.strings.as_ref()).find_and_modify(&statement)
        }
    };
    Ok(explained?)
}

fn only_statement<'a>(fields: &Fields<'a>, name: &str) -> Result<DocumentRef<'a>> {
    let statements = fields.array(name)?.ok_or_else(|| {
        let message = format!("BSON field '{}.{name}' is missing but a required field", fields.command);
        Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message)
    })?;
    if statements.count() != 1 {
        return Err(Failure::new(ErrorCode::INVALID_LENGTH, "explained write batches must be of size 1"));
    }
    let only = statements.get(0).unwrap_or(ValueRef::Null);
    only.as_document().ok_or_else(|| fields.mismatch(&format!("{name}.0"), only, "type 'object'"))
}
