//! Reads one range of a collection into units, and resumes where a connection was lost.

use super::plan::{Order, Planned, with_read_preference};
use super::ranges::Range;
use super::target::DumpOutput;
use super::unit::{UNIT_BYTES, Unit};
use crate::cursor::{Cursor, DOCUMENT_BYTES_GUESSED, batch_documents};
use crate::progress::{Counts, Progress};
use crate::retry::{self, Backoff};
use crate::{Interrupted, Link, Server, ToolError};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_client::ClientError;
use std::sync::atomic::{AtomicBool, Ordering};

/// State that all readers share.
pub(super) struct Readers<'a> {
    pub server: &'a dyn Server,
    pub progress: &'a Progress,
    pub interrupted: &'a Interrupted,
    pub read_concern: Option<&'a DocumentBuf>,
    /// Set by the first reader that fails; the other readers then stop.
    pub is_stopped: AtomicBool,
}

/// One thread's connection to the server.
pub(super) struct Reader<'a> {
    shared: &'a Readers<'a>,
    link: Option<Box<dyn Link>>,
}

/// Reason why an attempt ended.
enum Broken {
    /// The server or the connection failed, which another attempt may overcome.
    Server(ClientError),
    /// Any other failure.
    Tool(ToolError),
}

impl From<ClientError> for Broken {
    fn from(error: ClientError) -> Self {
        Self::Server(error)
    }
}

impl From<ToolError> for Broken {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
}

/// Progress of a reader in its range.
struct Position<'a> {
    planned: &'a Planned,
    collection: usize,
    range: usize,
    /// Part of the range that is still to be read.
    rest: Range,
    unit: Unit,
    /// Whether units of the range have gone to the output.
    has_written: bool,
}

impl<'a> Reader<'a> {
    pub fn new(shared: &'a Readers<'a>) -> Self {
        Self { shared, link: None }
    }

    /// Reads the part of a range that earlier runs have not read.
    /// # Errors
    /// The server's error after all attempts; `File`; `Interrupted`.
    pub fn read_range(
        &mut self,
        target: &DumpOutput<'_>,
        planned: &Planned,
        collection: usize,
        range: usize,
        counts: &Counts,
    ) -> Result<(), ToolError> {
        let account = target.account(collection);
        let rest = match &account.ranges[range].last {
            Some(last) => planned.ranges[range].after(last.clone()),
            None => planned.ranges[range].clone(),
        };
        let mut unit = begin_unit(target, planned, range);
        unit.state.last.clone_from(&account.ranges[range].last);
        let mut position = Position { planned, collection, range, rest, unit, has_written: false };
        let mut backoff = Backoff::default();
        loop {
            match self.attempt(target, &mut position, counts, &mut backoff) {
                Ok(()) => {
                    position.unit.state.is_finished = true;
                    return target.write(collection, position.unit.seal(target.form()));
                }
                Err(Broken::Tool(error)) => return Err(error),
                Err(Broken::Server(error)) => {
                    self.link = None;
                    self.recover(&mut position, error, counts, &mut backoff)?;
                }
            }
        }
    }

    /// Waits, and prepares to continue after the last document, or from the beginning if it is unknown which documents
    /// have been read.
    fn recover(
        &self,
        position: &mut Position<'_>,
        error: ClientError,
        counts: &Counts,
        backoff: &mut Backoff,
    ) -> Result<(), ToolError> {
        let namespace = position.planned.namespace();
        if position.planned.order != Order::ById && position.has_written && retry::is_transient(&error) {
            let message = format!(
                "{namespace}: the cursor was lost ({error}) in the middle of a collection that cannot be read in the order of its _ids: it has to be dumped again"
            );
            return Err(ToolError::Failed(message));
        }
        backoff.wait(&namespace, error, self.shared.interrupted)?;
        match position.unit.state.last.clone() {
            Some(last) => position.rest = position.planned.ranges[position.range].after(last),
            None => position.unit.discard(counts),
        }
        Ok(())
    }

    fn attempt(
        &mut self,
        target: &DumpOutput<'_>,
        position: &mut Position<'_>,
        counts: &Counts,
        backoff: &mut Backoff,
    ) -> Result<(), Broken> {
        let Some(mut find) = find(position.planned, &position.rest) else { return Ok(()) };
        let shared = self.shared;
        if let Some(read_concern) = shared.read_concern {
            find.append("readConcern", read_concern);
        }
        let mut link = match self.link.take() {
            Some(link) => link,
            None => shared.server.connect()?,
        };
        let find = with_read_preference(find, link.as_ref());
        let mut cursor = Cursor::open(link.as_mut(), shared.progress, &position.planned.source_database, &find)?;
        loop {
            if let Err(stop) = shared.check() {
                // The stop is reported, even if closing the cursor fails.
                let _ = cursor.close();
                return Err(stop.into());
            }
            let before = position.unit.bytes.len();
            let copied = match cursor.next(&mut position.unit.bytes) {
                Ok(Some(copied)) => copied,
                Ok(None) => break,
                Err(error) => {
                    position.unit.bytes.truncate(before);
                    return Err(error.into());
                }
            };
            backoff.reset();
            let bytes = (position.unit.bytes.len() - before) as u64;
            counts.add(copied.documents as u64, bytes);
            position.unit.documents += copied.documents as u64;
            if position.planned.order == Order::ById && copied.documents > 0 {
                position.unit.state.last = Some(last_id(position.planned, &position.unit.bytes[copied.last_offset..])?);
            }
            if position.unit.bytes.len() >= UNIT_BYTES {
                write_unit(target, position)?;
            }
        }
        self.link = Some(link);
        Ok(())
    }
}

impl Readers<'_> {
    /// # Errors
    /// `Interrupted` if the user interrupted the run, or another thread has failed.
    pub fn check(&self) -> Result<(), ToolError> {
        if self.is_stopped.load(Ordering::Relaxed) {
            Err(ToolError::Interrupted)
        } else {
            retry::check(self.interrupted)
        }
    }
}

fn begin_unit(target: &DumpOutput<'_>, planned: &Planned, range: usize) -> Unit {
    Unit::begin(target.buffer(), target.form(), &planned.database, &planned.collection, range)
}

fn write_unit(target: &DumpOutput<'_>, position: &mut Position<'_>) -> Result<(), ToolError> {
    let mut next = begin_unit(target, position.planned, position.range);
    next.state = position.unit.state.clone();
    let full = std::mem::replace(&mut position.unit, next);
    position.has_written = true;
    target.write(position.collection, full.seal(target.form()))
}

/// The command that reads a range; `None` where nothing can be in it.
fn find(planned: &Planned, range: &Range) -> Option<DocumentBuf> {
    let of_range = range.filter()?;
    let filter = match &planned.filter {
        Some(filter) if of_range.as_ref().is_empty() => filter.clone(),
        Some(filter) => DocumentBuf::new().with("$and", &[filter, &of_range].into_iter().collect::<ArrayBuf>()),
        None => of_range,
    };
    let document_bytes = planned.size_bytes.checked_div(planned.documents).unwrap_or(DOCUMENT_BYTES_GUESSED);
    let mut find = DocumentBuf::new().with("find", &planned.source_collection).with("filter", &filter);
    match planned.order {
        Order::ById => {
            let by_id = DocumentBuf::new().with("_id", 1_i32);
            find.append("sort", &by_id).append("hint", &by_id);
        }
        Order::Natural => {
            find.append("hint", &DocumentBuf::new().with("$natural", 1_i32));
        }
        Order::Found => {}
    }
    find.append("batchSize", batch_documents(document_bytes) as i64);
    Some(find)
}

fn last_id(planned: &Planned, document: &[u8]) -> Result<Value, ToolError> {
    let id = DocumentRef::trusted(document).get("_id").map(ValueRef::to_value);
    id.ok_or_else(|| ToolError::Failed(format!("{}: a document came without _id", planned.namespace())))
}
