//! `explain` of a read of the oplog: the scan of the log, and the stages above it.

use super::{Subject, of_stages, push_described, stages_alone};
use crate::invocation::Invocation;
use bunko_aggregate::{Pipeline, Plannable, StageRun};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf};
use bunko_errors::Result;
use bunko_pipelines::{Aggregation, PipelineWrite, all_of, behind_views, direction, oplog};
use bunko_query::{Explained, FindQuery, LogRead, LogRun, Origin, explain_log_read};
use bunko_request::facts::Explanation;
use bunko_session::Halt;
use bunko_store::Direction;
use std::sync::Arc;

/// Explains a pipeline over the oplog. A pipeline of filters only is shown as a scan with that filter.
/// # Errors
/// Errors of running the pipeline, if the verbosity asks for that; errors of the target of a write.
pub(super) fn explain(
    invocation: &Invocation<'_>,
    subject: &Subject<'_>,
    aggregation: Aggregation,
    sent: ArrayRef<'_>,
) -> Result<DocumentBuf, Halt> {
    let Aggregation { query, pipeline, resolved, .. } = aggregation;
    // Always present: the caller found that the pipeline is over the oplog.
    let Some(resolved) = resolved else { return Ok(stages_alone(sent, &[])) };
    let direction = direction(query.hint.as_ref())?;
    let began = invocation.now();
    let runs = match pipeline.write() {
        Some(stage) => {
            // The target of the write is checked, but not written to.
            PipelineWrite::new(invocation, stage, &pipeline.environment().scope.strings)?;
            Vec::new()
        }
        None if subject.verbosity.runs() => run(invocation, &pipeline, direction)?,
        None => Vec::new(),
    };
    let only_filter = only_filter(&pipeline);
    let scan = FindQuery::new(only_filter.clone().unwrap_or_default().as_ref(), Arc::clone(&query.scope))?;
    let examined = runs.first().map(|source| source.returned());
    let let_through = if only_filter.is_some() { runs.last() } else { runs.first() };
    let returned = let_through.map(|last| last.returned());
    let run = examined.zip(returned).map(|(examined, returned)| LogRun { examined, returned });
    let explained = Explained {
        namespace: resolved.namespace.as_str(),
        query: &scan,
        verbosity: subject.verbosity,
        elapsed: invocation.now() - began,
        failure: None,
        origin: match (&only_filter, subject.command.explain) {
            (Some(_), Explanation::Pipeline) => Origin::WholePipeline,
            _ => Origin::Query,
        },
    };
    let read = explain_log_read(explained, LogRead { from: oplog::earliest_of(&pipeline), direction, run });
    if only_filter.is_some() {
        return Ok(read);
    }
    let mut cursor = DocumentBuf::new();
    for part in read.as_ref().iter().filter(|part| part.name != "explainVersion") {
        cursor.append(part.name, part.value);
    }
    let mut first = DocumentBuf::new().with("$cursor", &cursor);
    if let Some(source) = runs.first() {
        source.describe(&mut first);
    }
    let mut stages = ArrayBuf::new();
    stages.push(&first);
    push_described(&mut stages, behind_views(&resolved, sent).as_ref().iter(), runs.get(1..).unwrap_or_default());
    Ok(of_stages(&stages))
}

/// Runs the pipeline to its end and returns the statistics of the scan and of each stage.
fn run(invocation: &Invocation<'_>, pipeline: &Pipeline, direction: Direction) -> Result<Vec<Arc<StageRun>>, Halt> {
    invocation.refuse_if_long(true)?;
    let entries = oplog::open(&invocation.service.catalog, pipeline, direction, invocation.operation())?;
    let (mut stream, runs) = pipeline.open_counted_from(entries);
    while stream.next()?.is_some() {}
    Ok(runs)
}

/// The combined filter of a pipeline; `None` if a stage is not a filter.
fn only_filter(pipeline: &Pipeline) -> Option<DocumentBuf> {
    let filters = pipeline.stages().map(|stage| match stage.plannable() {
        Plannable::Filter(filter) => Some(filter.to_owned()),
        _ => None,
    });
    filters.collect::<Option<Vec<_>>>().map(|filters| all_of(&filters))
}
