//! State that all threads of an import share.

use super::flaw::Flaw;
use super::options::{ImportOptions, Mode, RunId};
use super::queue::{Chunk, ChunkQueue};
use super::reader::CHUNK_BYTES;
use super::records::RecordFormat;
use super::resume::ResumeLog;
use super::summary::Tally;
use crate::progress::{Counts, Progress};
use crate::retry::Backoff;
use crate::{Interrupted, Link, Server, ToolError};
use bunko_bson::ObjectId;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One import.
pub(super) struct Run<'r> {
    pub server: &'r dyn Server,
    pub options: &'r ImportOptions,
    pub progress: &'r Progress,
    pub interrupted: &'r Interrupted,
    pub format: RecordFormat,
    pub queue: ChunkQueue,
    pub resume: Option<ResumeLog>,
    pub tally: Tally,
    pub counts: Arc<Counts>,
    /// Whether an earlier run may have sent any of the documents.
    pub is_resumed: bool,
    pub id: RunId,
    /// Whether the server wrote documents less durably than it was asked to.
    pub is_uncertain: AtomicBool,
    /// The input's path in messages.
    pub path: PathBuf,
    /// The reason why the run ended, and the place in the input where that happened; the first place counts.
    cause: Mutex<Option<(u64, ToolError)>>,
    is_over: AtomicBool,
}

/// A run's input, and the records of earlier runs.
pub(super) struct Begun {
    pub format: RecordFormat,
    pub path: PathBuf,
    pub resume: Option<ResumeLog>,
    /// The id of the earlier runs, if there were any.
    pub earlier: Option<RunId>,
}

/// Chunks that wait for each worker, beside the one that it parses and those in flight.
const CHUNKS_PER_WORKER: usize = 4;

impl<'r> Run<'r> {
    pub(super) fn new(
        server: &'r dyn Server,
        options: &'r ImportOptions,
        progress: &'r Progress,
        interrupted: &'r Interrupted,
        begun: Begun,
    ) -> Self {
        let Begun { format, path, resume, earlier } = begun;
        Self {
            server,
            options,
            progress,
            interrupted,
            format,
            queue: ChunkQueue::new(CHUNKS_PER_WORKER * options.workers().get() * CHUNK_BYTES),
            resume,
            tally: Tally::default(),
            counts: progress.namespace(&options.namespace()),
            is_resumed: earlier.is_some(),
            id: earlier.unwrap_or(options.run_id),
            is_uncertain: AtomicBool::new(false),
            path,
            cause: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Opens a link, after attempts that take about a minute.
    pub(super) fn connect(&self) -> Result<Box<dyn Link>, ToolError> {
        let mut backoff = Backoff::default();
        loop {
            match self.server.connect() {
                Ok(link) => return Ok(link),
                Err(error) => backoff.wait(&self.options.namespace(), error, self.interrupted)?,
            }
        }
    }

    /// Whether threads take no more work.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.interrupted.load(Ordering::Relaxed)
    }

    /// Ends the run because of an error at a place of the input.
    pub(super) fn stop(&self, (place, error): (u64, ToolError)) {
        self.is_over.store(true, Ordering::Relaxed);
        let mut cause = self.cause.lock();
        let is_earlier = cause.as_ref().is_none_or(|(known, _)| place < *known);
        // A thread that was interrupted does not know the reason.
        if is_earlier || matches!(*cause, Some((_, ToolError::Interrupted))) {
            *cause = Some((place, error));
        }
    }

    /// The reason why the run ended early.
    pub(super) fn take_cause(&self) -> Option<ToolError> {
        let cause = self.cause.lock().take().map(|(_, error)| error);
        cause.or_else(|| self.interrupted.load(Ordering::Relaxed).then_some(ToolError::Interrupted))
    }

    /// The `_id` of the record at this place, if it has none. A resumed run makes the same one again.
    pub(super) fn id_at(&self, place: u64) -> ObjectId {
        let mut id = [0; 12];
        id[..4].copy_from_slice(&self.id.seconds.to_be_bytes());
        // Half of all numbers are left for the places, so that later records have greater ids.
        id[4..].copy_from_slice(&(self.id.number / 2 + place).to_be_bytes());
        ObjectId(id)
    }

    /// A place in the input, for messages.
    pub(super) fn place(&self, chunk: &Chunk, offset: usize) -> String {
        let front = &chunk.bytes[..offset.min(chunk.bytes.len())];
        let line = chunk.line + memchr::memchr_iter(b'\n', front).count() as u64;
        let byte = chunk.start + offset as u64;
        match self.format {
            RecordFormat::Bson => format!("{}: byte {byte}", self.path.display()),
            _ => format!("{}: line {line}, byte {byte}", self.path.display()),
        }
    }

    /// The error of input that cannot be read.
    pub(super) fn flawed(&self, chunk: &Chunk, flaw: &Flaw) -> ToolError {
        let behind = if self.options.workers().get() > 1 { ", and some after it may be" } else { "" };
        let place = self.place(chunk, flaw.offset);
        ToolError::Failed(format!("{place}: {}; all records in front of it are written{behind}", flaw.reason))
    }
}

impl ImportOptions {
    /// Number of workers: documents that keep their order need one.
    pub(super) fn workers(&self) -> std::num::NonZeroUsize {
        if self.is_ordered() { std::num::NonZeroUsize::MIN } else { self.workers }
    }

    /// Whether a write may be sent again without harm if it may have been made already.
    pub(super) fn is_repeatable(&self) -> bool {
        self.mode != Mode::Delete || self.key_fields == ["_id"]
    }
}
