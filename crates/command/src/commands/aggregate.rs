//! `aggregate`: documents through a pipeline.

use super::find::refuse_collation;
use crate::cursor_reply::{FIRST_BATCH_DOCUMENTS, FirstBatch, write_first_batch};
use crate::cursor_store::CursorSource;
use crate::dispatch::{Command, Databases, Halt};
use crate::fields::Fields;
use crate::invocation::Invocation;
use crate::oplog_view::{self, is_oplog};
use crate::source_stages::{SourcedPipeline, Subject};
use bunko_aggregate::{DocumentStream, Documents, Environment, Flow, Pipeline, PlannerPart};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, Writer, number};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure};
use bunko_query::{Execution, FindQuery, Footing, Hint, QueryScope, plan};
use bunko_store::Direction;
use std::sync::{Arc, Weak};

pub(super) const COMMAND: Command = Command {
    name: "aggregate",
    aliases: &[],
    fields: &["pipeline", "cursor", "explain", "allowDiskUse", "bypassDocumentValidation", "collation", "hint", "let"],
    databases: Databases::Any,
    run,
};

/// A pipeline, split between the planner and its stages.
pub(crate) struct Aggregation {
    /// What the planner does.
    pub query: FindQuery,
    /// What is left to the stages.
    pub pipeline: Pipeline,
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let sourced = invocation.array("pipeline")?.map(SourcedPipeline::take_off).transpose()?.flatten();
    let namespace = namespace(invocation, sourced.as_ref())?;
    if invocation.boolean("explain", false)? {
        return Err(invocation.unsupported("explain: use the explain command").into());
    }
    let batch_size = batch_size(invocation)?;
    let (source, is_long) = match sourced {
        Some(sourced) => (open_sourced(invocation, &namespace, &sourced)?, false),
        None if is_oplog(&invocation.service.catalog, &namespace) => (open_oplog(invocation)?, true),
        None => {
            let aggregation = parse(invocation, invocation.scope())?;
            open(invocation, &namespace, aggregation)?
        }
    };
    let batch = FirstBatch { documents: batch_size, is_only: false, is_long, has_no_timeout: false };
    write_first_batch(invocation, reply, namespace, source, &batch)
        .map_err(|failure| failure.with_prefix("PlanExecutor error during aggregation :: caused by :: ").into())
}

/// The collection that is named, or for `{aggregate: 1}` the name that its cursors have.
fn namespace(invocation: &mut Invocation<'_>, sourced: Option<&SourcedPipeline<'_>>) -> Result<Namespace, Failure> {
    let argument = invocation.argument();
    if argument.as_str().is_some() {
        return invocation.namespace();
    }
    if number::as_i64_exact(argument) != Some(1) {
        let message = "Invalid command format: the 'aggregate' field must specify a collection name or 1";
        return Err(Failure::failed_to_parse(message));
    }
    if sourced.is_some_and(|sourced| sourced.stage.subject != Subject::Collection) {
        return Namespace::of_cursor(invocation.request.database, "$cmd.aggregate");
    }
    let first = invocation.array("pipeline")?.and_then(|pipeline| pipeline.iter().next()?.as_document()?.first());
    let message = match first {
        None => "{aggregate: 1} is not valid for an empty pipeline.".to_owned(),
        Some(stage) => format!("{{aggregate: 1}} is not valid for '{}'; a collection is required.", stage.name),
    };
    Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message))
}

fn batch_size(invocation: &Invocation<'_>) -> Result<u64, Failure> {
    let Some(cursor) = invocation.document("cursor")? else {
        return Err(Failure::failed_to_parse(
            "The 'cursor' option is required, except for aggregate with the explain argument",
        ));
    };
    let fields = Fields::new("aggregate.cursor", cursor);
    for element in cursor {
        if element.name != "batchSize" {
            return Err(Failure::new(
                ErrorCode::IDL_UNKNOWN_FIELD,
                format!("BSON field 'aggregate.cursor.{}' is an unknown field.", element.name),
            ));
        }
    }
    Ok(fields.size("batchSize")?.unwrap_or(FIRST_BATCH_DOCUMENTS))
}

/// Reads a pipeline and hands its beginning to the planner; `explain` does too.
/// # Errors
/// MongoDB's codes for malformed fields, stages and expressions.
pub(crate) fn parse(fields: &Fields<'_>, scope: Arc<QueryScope>) -> Result<Aggregation, Failure> {
    check_options(fields)?;
    let stages = required_stages(fields)?;
    if let Some(sourced) = SourcedPipeline::take_off(stages)? {
        // Only `explain` comes here with one.
        let message = format!("explain of {} is not supported", sourced.stage.name);
        return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message));
    }
    let environment = Environment::new(Arc::clone(&scope));
    let (part, pipeline) = Pipeline::parse(stages, environment)?.split_for_planner();
    let mut query = planner_query(part, scope)?;
    if let Some(hint) = fields.field("hint") {
        query.hint = Hint::parse(hint)?;
    }
    Ok(Aggregation { query, pipeline })
}

fn required_stages<'a>(fields: &Fields<'a>) -> Result<ArrayRef<'a>, Failure> {
    fields.array("pipeline")?.ok_or_else(|| {
        Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, "BSON field 'aggregate.pipeline' is missing but a required field")
    })
}

fn check_options(fields: &Fields<'_>) -> Result<(), Failure> {
    refuse_collation(fields)?;
    if fields.document("let")?.is_some_and(|variables| !variables.is_empty()) {
        return Err(fields.unsupported("let"));
    }
    for name in ["allowDiskUse", "bypassDocumentValidation"] {
        fields.boolean(name, false)?;
    }
    Ok(())
}

fn planner_query(part: PlannerPart, scope: Arc<QueryScope>) -> Result<FindQuery, Failure> {
    let filter = match part.filters.as_slice() {
        [] => DocumentBuf::new(),
        [only] => only.clone(),
        several => DocumentBuf::new().with("$and", &several.iter().collect::<ArrayBuf>()),
    };
    let mut query = FindQuery::new(filter.as_ref(), scope)?;
    query.sort = part.sort;
    query.skip = part.skip;
    query.limit = part.limit;
    Ok(query)
}

fn open(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    aggregation: Aggregation,
) -> Result<(Box<dyn CursorSource>, bool), Halt> {
    let Aggregation { query, pipeline } = aggregation;
    let Some(collection) = invocation.collection(namespace) else {
        let stream = pipeline.open(Box::new(Documents::new(Vec::new())));
        return Ok((Box::new(Aggregated::of(stream)), false));
    };
    let plan = plan(&collection, Arc::new(query))?;
    let is_long = plan.is_long(&collection);
    invocation.refuse_if_long(is_long)?;
    let execution = plan.open(collection.snapshot())?;
    if pipeline.is_empty() {
        return Ok((Box::new(execution), is_long));
    }
    let footing = Arc::new(execution.footing().clone());
    let weak = Arc::downgrade(&footing);
    let stream = pipeline.open(Box::new(Planned { execution, footing: Some(footing) }));
    Ok((Box::new(Aggregated { footing: weak, ..Aggregated::of(stream) }), is_long))
}

/// Runs all stages over the oplog. A hint has nothing to choose from.
fn open_oplog(invocation: &Invocation<'_>) -> Result<Box<dyn CursorSource>, Halt> {
    invocation.refuse_if_long(true)?;
    check_options(invocation)?;
    let stages = required_stages(invocation)?;
    let scope = invocation.scope();
    let stream = oplog_view::open(invocation, stages, scope, Direction::Forward)?;
    Ok(Box::new(Aggregated::of(stream)))
}

/// Puts the other stages on top of a source stage. A hint has nothing to choose from, and is ignored as in MongoDB.
fn open_sourced(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    sourced: &SourcedPipeline<'_>,
) -> Result<Box<dyn CursorSource>, Failure> {
    check_options(invocation)?;
    let environment = Environment::new(invocation.scope());
    let pipeline = Pipeline::parse(sourced.rest.as_ref(), environment)?;
    let documents = sourced.documents(invocation, namespace)?;
    let stream = pipeline.open(Box::new(Documents::new(documents)));
    Ok(Box::new(Aggregated::of(stream)))
}

/// A plan's documents, lent to the stages above where they only look.
struct Planned {
    execution: Execution,
    /// Until all has been read: from then on the collection may go.
    footing: Option<Arc<Footing>>,
}

impl DocumentStream for Planned {
    fn next(&mut self) -> Result<Option<DocumentBuf>, Failure> {
        let document = self.execution.next()?.map(DocumentRef::to_owned);
        if document.is_none() {
            self.footing = None;
        }
        Ok(document)
    }

    fn visit(&mut self, visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<Flow, Failure>) -> Result<(), Failure> {
        while let Some(document) = self.execution.next()? {
            if visitor(document)? == Flow::Stop {
                return Ok(());
            }
        }
        self.footing = None;
        Ok(())
    }
}

/// What comes out of the last stage.
struct Aggregated {
    stream: Box<dyn DocumentStream>,
    current: Option<DocumentBuf>,
    /// That of the plan below, while it has more.
    footing: Weak<Footing>,
}

impl Aggregated {
    fn of(stream: Box<dyn DocumentStream>) -> Self {
        Self { stream, current: None, footing: Weak::new() }
    }
}

impl CursorSource for Aggregated {
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>, Failure> {
        self.current = self.stream.next()?;
        Ok(self.current.as_ref().map(DocumentBuf::as_ref))
    }

    fn resume(&self) -> Result<(), Failure> {
        self.footing.upgrade().map_or(Ok(()), |footing| footing.check())
    }
}
