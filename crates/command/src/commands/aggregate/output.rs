//! Writes the documents of a pipeline that ends in a write.

use crate::cursor_reply::while_running;
use crate::invocation::Invocation;
use bunko_aggregate::{DocumentStream, Environment, WriteStage};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_catalog::Namespace;
use bunko_errors::Failure;
use bunko_pipelines::{Aggregation, PipelineWrite, WriteContext};
use bunko_session::Halt;
use bunko_session::cursors::CursorSource;

/// Writes all documents that a pipeline returns.
/// # Errors
/// Errors of the target; errors of the pipeline and of the writes, whose messages name `command` and `namespace`.
pub(in crate::commands) fn run_write(
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

/// Writes all documents of a stream, and notes what was written.
pub(super) fn run_into(
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

/// The documents of a cursor.
pub(super) struct FromCursor(pub Box<dyn CursorSource>);

impl DocumentStream for FromCursor {
    fn next(&mut self) -> Result<Option<DocumentBuf>, Failure> {
        Ok(self.0.next()?.map(DocumentRef::to_owned))
    }
}
