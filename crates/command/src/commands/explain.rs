//! `explain`: how another command would run, or how it ran.

mod inner;
mod oplog;
mod privileges;
mod surroundings;

use super::aggregate::Aggregate;
use super::count::Count;
use super::insert;
use super::map_reduce::MapReduce;
use crate::authorization::Privileges;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::let_variables::Let;
use crate::scope_options::ScopeOptions;
use crate::target::Target;
use crate::view_reads::ReadByPipeline;
use crate::write_statement::refuse_long_batch;
use bunko_aggregate::{Documents, StageRun};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef, Writer, number};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_pipelines::source_stages::SourcedPipeline;
use bunko_pipelines::unstored::{self, Unstored};
use bunko_pipelines::{Aggregation, Below, PipelineWrite, no_collection_near, vector_search};
use bunko_query::write::WriteExplanation;
use bunko_query::{
    CountPlan, Execution, Explained, FindQuery, Origin, QueryScope, Verbosity, explain_count, explain_plan, failed_run,
    plan,
};
use bunko_request::facts::{CommandFacts, Explanation, ReadConcernUse, Secrets, Stability};
use bunko_request::field_kinds::{Kind, field};
use bunko_session::Halt;

use bunko_update::Targets;
use inner::{Inner, Write, parse_command, parse_inner};
use privileges::may_explain;
use std::sync::Arc;
use surroundings::write_surroundings;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "explain",
        fields: &[field("verbosity", Kind::Choice(&["queryPlanner", "executionStats", "allPlansExecution"]))],
        read_concern: ReadConcernUse::OfExplained,
        stable_api: Stability::WHOLE,
        secrets: Secrets::OfExplained(|name| super::find(name).map(|command| &command.facts)),
        explain: Explanation::Itself,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::ByServer(may_explain),
    run,
    ..Command::PLAIN
};

/// The command to be explained, and the target that it is over.
struct Subject<'a> {
    command: &'static CommandFacts,
    /// The command as it was sent.
    body: DocumentRef<'a>,
    namespace: Namespace,
    target: Target,
    verbosity: Verbosity,
    scope: Arc<QueryScope>,
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let (subject, inner) = parse_subject(invocation)?;
    let is_read_by_pipeline = subject.target.is_read_by_pipeline();
    let explained = match inner {
        Inner::Find(find) if is_read_by_pipeline => {
            find.query_over(&subject.target, Arc::clone(&subject.scope))?;
            explain_view(invocation, &subject, &find.by_pipeline()?)?
        }
        Inner::Count(count) if is_read_by_pipeline => explain_view(invocation, &subject, &count.by_pipeline())?,
        Inner::Distinct(distinct) if is_read_by_pipeline => {
            explain_view(invocation, &subject, &distinct.by_pipeline())?
        }
        Inner::Find(find) => {
            let query = find.query_over(&subject.target, Arc::clone(&subject.scope))?;
            explain_query(invocation, &subject, query, Origin::Query)?
        }
        Inner::Distinct(distinct) => {
            explain_query(invocation, &subject, distinct.query(&subject.scope)?, Origin::Query)?
        }
        Inner::Count(count) => explain_counting(invocation, &subject, &count)?,
        Inner::Pipeline(request) => explain_pipeline(invocation, &subject, &request)?,
        Inner::MapReduce(request) => {
            refuse_view(invocation, &subject)?;
            explain_map_reduce(invocation, &subject, &request)?
        }
        Inner::Write(write, variables) => {
            refuse_view(invocation, &subject)?;
            explain_write(invocation, &subject, &write, variables)?
        }
    };
    reply.extend(explained.as_ref());
    write_surroundings(invocation, reply, &subject);
    Ok(())
}

/// Refuses to explain a command that cannot run on a view, if its target is a view. A time series is allowed.
/// # Errors
/// `CommandNotSupportedOnView`.
fn refuse_view(invocation: &Invocation<'_>, subject: &Subject<'_>) -> Result<()> {
    match subject.target {
        Target::View => invocation.service.catalog.refuse_view(&subject.namespace),
        _ => Ok(()),
    }
}

/// Explains an `aggregate` with `explain: true`.
pub(super) fn run_pipeline(
    invocation: &Invocation<'_>,
    namespace: Namespace,
    request: &Aggregate<'_>,
    reply: &mut Writer<'_>,
) -> Result<(), Halt> {
    let subject = Subject {
        command: invocation.command,
        body: invocation.request.body,
        target: Target::of(&invocation.service.catalog, invocation, &namespace)?,
        namespace,
        verbosity: Verbosity::QueryPlanner,
        scope: invocation.scope(),
    };
    let explained = explain_pipeline(invocation, &subject, request)?;
    reply.extend(explained.as_ref());
    write_surroundings(invocation, reply, &subject);
    Ok(())
}

fn parse_subject<'a>(invocation: &mut Invocation<'a>) -> Result<(Subject<'a>, Inner<'a>)> {
    let verbosity = parse_verbosity(invocation)?;
    let (command, fields) = parse_command(invocation)?;
    let (inner, namespace) = parse_inner(invocation, command, &fields)?;
    let is_named = match &inner {
        Inner::Pipeline(request) => request.is_over_collection(),
        _ => true,
    };
    if is_named {
        // MongoDB profiles and logs the `explain` under the collection of the explained command.
        invocation.note_namespace(&namespace);
    }
    let catalog = &invocation.service.catalog;
    unstored::check(catalog, invocation.service.deployment(), &namespace, command)?;
    match &inner {
        Inner::Pipeline(request) => request.check_uuid(catalog, &namespace)?,
        _ => collection_uuid::check(catalog, &namespace, collection_uuid::parse(&fields)?)?,
    }
    let scope = invocation.scope_in(&ScopeOptions::parse(&fields, command)?, &namespace)?;
    let target = Target::of(&invocation.service.catalog, invocation, &namespace)?;
    Ok((Subject { command, body: fields.body, namespace, target, verbosity, scope }, inner))
}

fn parse_verbosity(invocation: &Invocation<'_>) -> Result<Verbosity> {
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
    let started = invocation.now();
    let stored = subject.target.collection();
    let mut plan = stored.map(|collection| plan(collection, Arc::clone(&query))).transpose()?;
    if let (Some(contested), Some(collection)) = (&plan, stored) {
        invocation.refuse_if_long(contested.is_contested() && contested.is_long(collection))?;
        plan = Some(contested.contested()?);
    }
    let (mut execution, mut failure) = (None, None);
    if let (Some(plan), Some(collection), true) = (&plan, stored, subject.verbosity.runs()) {
        invocation.refuse_if_long(plan.is_long(collection))?;
        let mut running = plan.open()?;
        failure = run_to_end(&mut running).err().map(failed_run).transpose()?;
        execution = Some(running);
    }
    let explained = Explained {
        namespace: subject.namespace.as_str(),
        query: &query,
        verbosity: subject.verbosity,
        elapsed: invocation.now() - started,
        failure: failure.as_ref(),
        origin,
    };
    Ok(explain_plan(explained, plan.as_ref(), execution.as_ref()))
}

fn run_to_end(execution: &mut Execution) -> Result<()> {
    while execution.next()?.is_some() {}
    Ok(())
}

fn explain_counting(
    invocation: &Invocation<'_>,
    subject: &Subject<'_>,
    count: &Count<'_>,
) -> Result<DocumentBuf, Halt> {
    let query = count.query(&subject.scope)?;
    let started = invocation.now();
    let stored = subject.target.collection();
    let plan = match stored {
        None => None,
        Some(collection) => {
            let plan = CountPlan::new(collection, count.query(&subject.scope)?)?;
            let is_long = plan.plan().is_some_and(|plan| plan.is_contested() && plan.is_long(collection));
            invocation.refuse_if_long(is_long)?;
            Some(plan.contested()?)
        }
    };
    let (mut counted, mut failure) = (None, None);
    if let (Some(plan), Some(collection), true) = (&plan, stored, subject.verbosity.runs()) {
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
        elapsed: invocation.now() - started,
        failure: failure.as_ref(),
        origin: Origin::Query,
    };
    Ok(explain_count(explained, plan.as_ref(), counted.as_ref()))
}

fn explain_pipeline(
    invocation: &Invocation<'_>,
    subject: &Subject<'_>,
    request: &Aggregate<'_>,
) -> Result<DocumentBuf, Halt> {
    let sent = request.stages.unwrap_or(ArrayRef::EMPTY);
    if bunko_change_stream::begins(sent)? {
        let stages = request.with_stream(invocation, &subject.namespace, |context, stream| {
            bunko_change_stream::explain(context, stream, subject.verbosity)
        })?;
        return Ok(of_stages(&stages));
    }
    if let Some(sourced) = request.take_off_source(invocation, &subject.namespace)? {
        sourced.check_subject(&invocation.service.catalog, &subject.namespace)?;
        return explain_sourced(invocation, subject, request, &sourced);
    }
    let parse = || request.prepare(invocation, request.named(&subject.namespace));
    explain_stages(invocation, subject, sent, &parse)
}

/// Explains a pipeline that begins with a source stage. It has no plan.
fn explain_sourced(
    invocation: &Invocation<'_>,
    subject: &Subject<'_>,
    request: &Aggregate<'_>,
    sourced: &SourcedPipeline<'_>,
) -> Result<DocumentBuf, Halt> {
    let sent = request.stages.unwrap_or(ArrayRef::EMPTY);
    let pipeline = request.behind_source(invocation, &subject.namespace, sourced)?;
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
fn explain_map_reduce(
    invocation: &Invocation<'_>,
    subject: &Subject<'_>,
    request: &MapReduce<'_>,
) -> Result<DocumentBuf, Halt> {
    let stages = request.stages();
    let scope = request.scope(invocation, &subject.namespace)?;
    let parse = || Aggregation::prepare(invocation, Some(&subject.namespace), stages.as_ref(), Arc::clone(&scope));
    explain_stages(invocation, subject, stages.as_ref(), &parse)
}

/// Explains a read of a view as the pipeline that it is turned into.
fn explain_view(
    invocation: &Invocation<'_>,
    subject: &Subject<'_>,
    read: &ReadByPipeline<'_>,
) -> Result<DocumentBuf, Halt> {
    let scope = read.scope.variables.define_in(Arc::clone(&subject.scope))?;
    let hint = read.hint(&invocation.service.catalog, &subject.namespace)?;
    let parse = || {
        let namespace = Some(&subject.namespace);
        let mut aggregation = Aggregation::prepare(invocation, namespace, read.stages.as_ref(), Arc::clone(&scope))?;
        aggregation.set_hint(hint.clone())?;
        Ok(aggregation)
    };
    explain_stages(invocation, subject, read.stages.as_ref(), &parse)
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
        None if subject.verbosity.runs() && !pipeline.is_empty() => parse()?.run_counted(invocation)?,
        _ => Vec::new(),
    };
    if let Some(stage) = write {
        // The target of the write is checked, but not written to.
        PipelineWrite::new(invocation, stage, &pipeline.environment().scope.strings)?;
    }
    let Some(resolved) = resolved else { return Ok(stages_alone(sent, &runs)) };
    let target = match resolved.below {
        Below::Unstored(_) => return Ok(stages_alone(sent, &runs)),
        Below::Collection(noted) => Target::Collection(noted.collection),
        Below::Absent => Target::Absent,
    };
    let below = Subject {
        command: subject.command,
        body: subject.body,
        namespace: resolved.namespace,
        target,
        verbosity: subject.verbosity,
        scope: Arc::clone(&query.scope),
    };
    if pipeline.brings_documents() {
        let searched = vector_search::explain(&below.namespace, below.target.collection(), sent, &runs)?;
        return Ok(of_stages(&searched));
    }
    let is_near = query.near.is_some();
    if is_near && below.target.collection().is_none() {
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

fn explain_write(
    invocation: &Invocation<'_>,
    subject: &Subject<'_>,
    write: &Write<'_>,
    variables: Let<'_>,
) -> Result<DocumentBuf, Halt> {
    let (filter, sort, targets, strings) = match write {
        Write::Insert => return Err(cannot_explain(insert::COMMAND.name).into()),
        Write::Update(update) => (update.filter, update.sort, update.targets, &update.strings),
        Write::Delete(delete) => (delete.filter, None, delete.targets, &delete.strings),
        Write::FindAndModify(modify) => (modify.filter, modify.sort, Targets::One, &modify.strings),
    };
    if let (Write::FindAndModify(statement), Some(_)) = (write, subject.target.series()) {
        bunko_series::check_find_and_modify(statement)?;
    }
    let scope = variables.define_in(Arc::clone(&subject.scope))?;
    if subject.verbosity.runs() {
        refuse_long_batch(invocation, &subject.namespace, std::iter::once((filter, sort, targets)))?;
    }
    let explanation = WriteExplanation {
        collection: subject.target.collection(),
        namespace: &subject.namespace,
        scope: match strings {
            Some(strings) => Arc::new(scope.with_strings(strings)),
            None => scope,
        },
        verbosity: subject.verbosity,
    };
    Ok(match write {
        Write::Insert => return Err(cannot_explain(insert::COMMAND.name).into()),
        Write::Update(statement) => explanation.update(statement)?,
        Write::Delete(statement) => explanation.delete(statement)?,
        Write::FindAndModify(statement) => explanation.find_and_modify(statement)?,
    })
}
