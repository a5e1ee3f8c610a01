//! A cursor whose documents have been read to disk, ahead of its client.
//!
//! A waiting cursor may hold a sorted result, groups, a window or the plan of a long list until its client returns,
//! which may be never. All waiting cursors share a part of the server's memory. When a cursor goes idle while that
//! share is used up, it is read to its end into a scratch file, and its memory and snapshot are released. This way no
//! stage needs code for writing its own state to disk.

use super::source::CursorSource;
use bunko_bson::DocumentRef;
use bunko_errors::{Failure, Result};
use bunko_operation::{Examined, OperationContext};
use bunko_query::Standing;
use bunko_scratch::{QueueWriter, RecordReader};
use bunko_store::Lsn;
use std::sync::Arc;
use std::time::Instant;

/// Documents on disk, and the source of any that follow.
struct Spooled {
    documents: RecordReader,
    rest: Rest,
    operation: Arc<OperationContext>,
    /// The collection and indexes that the source read, once the source is dropped.
    standing: Option<Standing>,
    examined: Option<Examined>,
}

enum Rest {
    Nothing,
    /// The failure of the source, returned after the documents before it.
    Failure(Option<Failure>),
    /// The source, if it could not be read to its end in time.
    Source(Box<dyn CursorSource>),
}

/// Whether a source's documents may be read ahead, because they do not depend on when they are requested.
pub(super) fn may_be_spooled(source: &dyn CursorSource) -> bool {
    source.may_be_read_ahead()
        && source.bell().is_none()
        && !source.stays_open()
        && source.resume_token().is_none()
        && !source.is_over()
}

/// Reads a source until its end, or until the given time. This thread must have entered `operation`, in which the
/// source counts its work. Returns the source itself if there is no room on disk.
pub(super) fn spooled(
    mut source: Box<dyn CursorSource>,
    operation: &Arc<OperationContext>,
    until: Instant,
) -> Box<dyn CursorSource> {
    let Ok(Some(mut documents)) = QueueWriter::create(operation) else { return source };
    let standing = source.standing();
    let mut outcome = Ok(None);
    while operation.clock().now() < until {
        outcome = source
            .next()
            .and_then(|document| document.map(|document| documents.add(document.as_bytes(), operation)).transpose());
        if !matches!(outcome, Ok(Some(()))) {
            break;
        }
    }
    let examined = source.examined();
    let rest = match (outcome, operation.clock().now() < until) {
        (Err(failure), _) => Rest::Failure(Some(failure)),
        (Ok(None), true) => Rest::Nothing,
        _ => Rest::Source(source),
    };
    match documents.finish() {
        Ok((documents, _)) => {
            Box::new(Spooled { documents, rest, operation: Arc::clone(operation), standing, examined })
        }
        Err(failure) => Box::new(Failed(Some(failure))),
    }
}

impl CursorSource for Spooled {
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>> {
        if !self.documents.is_over() {
            let document = self.documents.next(&self.operation)?;
            return Ok(document.map(|(_, document)| DocumentRef::trusted(document)));
        }
        match &mut self.rest {
            Rest::Nothing => Ok(None),
            Rest::Failure(failure) => failure.take().map_or(Ok(None), Err),
            Rest::Source(source) => source.next(),
        }
    }

    fn is_over(&self) -> bool {
        self.documents.is_over() && matches!(self.rest, Rest::Nothing)
    }

    fn examined(&self) -> Option<Examined> {
        if let Rest::Source(source) = &self.rest { source.examined() } else { self.examined }
    }

    fn resume(&mut self) -> Result<()> {
        match &mut self.rest {
            Rest::Source(source) => source.resume(),
            _ => self.standing.as_ref().map_or(Ok(()), Standing::check),
        }
    }

    fn snapshot(&self) -> Option<Lsn> {
        if let Rest::Source(source) = &self.rest { source.snapshot() } else { None }
    }

    fn may_be_read_ahead(&self) -> bool {
        false
    }
}

/// The source that is left if the file could not be finished.
struct Failed(Option<Failure>);

impl CursorSource for Failed {
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>> {
        self.0.take().map_or(Ok(None), Err)
    }
}
