//! Parses chunks and sends their documents: one link, with a few commands in flight.

use super::flaw::Flaw;
use super::queue::Chunk;
use super::records::Records;
use super::resume::Part;
use super::run::Run;
use super::summary::Tally;
use super::table::Row;
use super::write::{self, BATCH_BYTES, BATCH_DOCUMENTS, Form};
use crate::error::OUT_OF_DISK_SPACE;
use crate::link::Command;
use crate::progress::Activity;
use crate::restore::in_doubt;
use crate::restore::outcome::{Outcome, WriteError};
use crate::retry::{Backoff, is_transient};
use crate::{Link, ToolError};
use bunko_archive::each_document;
use bunko_bson::DocumentRef;
use bunko_bson::text::ValueText;
use bunko_client::ClientError;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Commands in flight on one link: while the server works on one, the next is parsed.
const IN_FLIGHT_MAX: usize = 2;

/// Takes chunks until there are no more, or the run is over.
/// # Errors
/// The place in the input, and the error that ends the run.
pub(super) fn work(run: &Run<'_>) -> Result<(), (u64, ToolError)> {
    let link = run.connect().map_err(|error| (0, error))?;
    let (sent, backoff, inquiries) = (VecDeque::new(), Backoff::default(), None);
    let mut worker = Worker { run, link, sent, backoff, inquiries };
    while let Some(chunk) = worker.next_chunk()? {
        worker.chunk(chunk)?;
    }
    worker.await_all()
}

struct Worker<'r> {
    run: &'r Run<'r>,
    link: Box<dyn Link>,
    sent: VecDeque<Batch>,
    backoff: Backoff,
    /// A second link, for queries while commands are in flight; opened for the first query.
    inquiries: Option<Box<dyn Link>>,
}

/// The chunk that documents come from, and the results of its writes so far.
struct Origin {
    chunk: Chunk,
    done: AtomicU64,
    failed: AtomicU64,
    /// Whether the server wrote documents less durably than it was asked to.
    is_uncertain: AtomicBool,
}

/// The writes of one command.
struct Batch {
    form: Form,
    bytes: Vec<u8>,
    /// The place of each record in the chunk.
    places: Vec<u32>,
    origin: Arc<Origin>,
    ending: Ending,
    /// Whether the server may have made the writes already.
    is_in_doubt: bool,
}

/// Whether more batches of the same chunk follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Open,
    OfChunk,
}

impl Batch {
    fn new(form: Form, origin: &Arc<Origin>, is_in_doubt: bool) -> Self {
        let bytes = Vec::with_capacity(origin.chunk.bytes.len().min(BATCH_BYTES));
        Self { form, bytes, places: Vec::new(), origin: Arc::clone(origin), ending: Ending::Open, is_in_doubt }
    }

    fn write(&self, number: usize) -> &[u8] {
        each_document(&self.bytes).nth(number).unwrap_or_default()
    }

    /// Removes the writes up to the one with this number.
    fn drop_through(&mut self, number: usize) {
        let bytes: usize = each_document(&self.bytes).take(number + 1).map(<[u8]>::len).sum();
        self.bytes.drain(..bytes);
        self.places.drain(..(number + 1).min(self.places.len()));
    }

    /// Names a record by its place in the input and its key.
    fn name(&self, run: &Run<'_>, number: usize) -> String {
        let place = run.place(&self.origin.chunk, self.places.get(number).map_or(0, |&place| place as usize));
        let (field, write) = match self.form {
            Form::Insert => ("_id", self.write(number)),
            Form::Update | Form::Delete => ("q", self.write(number)),
        };
        match DocumentRef::trusted(write).get(field) {
            Some(key) if field == "_id" => format!("{place}: _id {}", ValueText(key)),
            Some(key) => format!("{place}: {}", ValueText(key)),
            None => place,
        }
    }
}

impl Worker<'_> {
    /// Takes the next chunk; `None` once there are no more, or the run is over.
    fn next_chunk(&mut self) -> Result<Option<Chunk>, (u64, ToolError)> {
        let run = self.run;
        if run.is_over() {
            return Ok(None);
        }
        if let Some(chunk) = run.queue.take_at_hand() {
            return Ok(Some(chunk));
        }
        // The input may be a slow pipe, and the reader may wait for the room of the chunks in flight.
        self.await_all()?;
        Ok(run.queue.take(|| run.is_over()))
    }

    /// Writes the documents of a chunk.
    fn chunk(&mut self, chunk: Chunk) -> Result<(), (u64, ToolError)> {
        let (run, start) = (self.run, chunk.start);
        let (done, failed, is_uncertain) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let origin = Arc::new(Origin { chunk, done, failed, is_uncertain });
        let mut records = Records::new(&run.format, &origin.chunk);
        let mut batch = Batch::new(Form::Insert, &origin, run.is_resumed);
        let flaw = loop {
            match run.progress.time(Activity::Parse, || parse(run, &mut records, &mut batch)) {
                Ok(Some(full)) => self.send(full).map_err(|error| (start, error))?,
                Ok(None) => break None,
                Err(flaw) => break Some(flaw),
            }
        };
        let Some(flaw) = flaw else { return self.end_chunk(batch).map_err(|error| (start, error)) };
        // The records in front of the flaw are written.
        if !batch.places.is_empty() {
            self.send(batch).map_err(|error| (start, error))?;
        }
        self.await_all()?;
        Err((start + flaw.offset as u64, run.flawed(&origin.chunk, &flaw)))
    }

    /// Sends a chunk's last batch, or marks the last one that was sent.
    fn end_chunk(&mut self, mut batch: Batch) -> Result<(), ToolError> {
        let origin = Arc::clone(&batch.origin);
        if !batch.places.is_empty() {
            batch.ending = Ending::OfChunk;
            return self.send(batch);
        }
        match self.sent.back_mut() {
            Some(last) if Arc::ptr_eq(&last.origin, &origin) => {
                last.ending = Ending::OfChunk;
                Ok(())
            }
            _ => self.finish(&origin),
        }
    }

    /// Sends a batch, once there is room among those in flight.
    fn send(&mut self, batch: Batch) -> Result<(), ToolError> {
        let in_flight_max = if self.run.options.stops_on_error() { 1 } else { IN_FLIGHT_MAX };
        while self.sent.len() >= in_flight_max {
            self.receive()?;
        }
        let sent = self.put(&batch);
        self.sent.push_back(batch);
        sent.or_else(|error| self.lost(error))
    }

    fn put(&mut self, batch: &Batch) -> Result<(), ClientError> {
        let body = batch.form.command(self.run.options);
        let documents = Some((batch.form.sequence(), batch.bytes.as_slice()));
        let command = Command { database: &self.run.options.database, body: body.as_ref(), documents };
        self.run.progress.time(Activity::Network, || self.link.send(command))
    }

    fn await_all(&mut self) -> Result<(), (u64, ToolError)> {
        while let Some(first) = self.sent.front() {
            let start = first.origin.chunk.start;
            self.receive().map_err(|error| (start, error))?;
        }
        Ok(())
    }

    /// Handles the reply to the oldest batch in flight.
    fn receive(&mut self) -> Result<(), ToolError> {
        let run = self.run;
        let reply = run.progress.time(Activity::Server, || self.link.receive());
        match reply.map(Outcome::read) {
            Ok(Ok(outcome)) => {
                self.backoff.reset();
                let batch = self.sent.pop_front().expect("a batch is in flight");
                self.settle(batch, outcome)
            }
            Ok(Err(refusal)) => match ClientError::Command(refusal) {
                passing if is_transient(&passing) => self.lost(passing),
                lasting => Err(ToolError::server(run.options.namespace(), lasting)),
            },
            Err(error) => self.lost(error),
        }
    }

    /// Handles a broken link, or a server that cannot write for now: sends all batches in flight again, each of which
    /// may have arrived or not.
    fn lost(&mut self, mut error: ClientError) -> Result<(), ToolError> {
        let namespace = self.run.options.namespace();
        if !self.run.options.is_repeatable() {
            let count: usize = self.sent.iter().map(|batch| batch.places.len()).sum();
            return Err(ToolError::Failed(format!(
                "{namespace}: {error}; {count} deletions may have been made or not, and cannot be repeated"
            )));
        }
        loop {
            self.backoff.wait(&namespace, error, self.run.interrupted)?;
            self.link = self.run.connect()?;
            let mut batches = std::mem::take(&mut self.sent);
            for batch in &mut batches {
                batch.is_in_doubt = true;
            }
            let failure = batches.iter().find_map(|batch| self.put(batch).err());
            self.sent = batches;
            match failure {
                None => return Ok(()),
                Some(again) => error = again,
            }
        }
    }

    /// Counts the results of a batch.
    fn settle(&mut self, mut batch: Batch, outcome: Outcome) -> Result<(), ToolError> {
        let (run, origin) = (self.run, Arc::clone(&batch.origin));
        let namespace = || run.options.namespace();
        let Outcome { inserted, write_errors: mut errors, concern_error } = outcome;
        if let Some(full) = errors.iter().find(|error| error.error.code == OUT_OF_DISK_SPACE) {
            return Err(ToolError::server(namespace(), full.error.clone()));
        }
        if let Some(error) = concern_error {
            origin.is_uncertain.store(true, Ordering::Relaxed);
            run.is_uncertain.store(true, Ordering::Relaxed);
            run.tally.note(|| format!("write concern: {error}"));
            if run.options.stops_on_error() {
                return Err(ToolError::server(namespace(), error));
            }
        }
        errors.sort_by_key(|error| error.number);
        let arrived = self.arrived(&batch, &errors)?;
        let last_arrived = arrived.last().copied();
        errors.retain(|error| arrived.binary_search(&error.number).is_err());
        let done = inserted + arrived.len() as u64;
        let failed_bytes: usize = errors.iter().map(|error| batch.write(error.number).len()).sum();
        Tally::add(&run.tally.imported, done);
        Tally::add(&run.tally.already_there, arrived.len() as u64);
        Tally::add(&run.tally.failed, errors.len() as u64);
        Tally::add(&origin.done, done);
        Tally::add(&origin.failed, errors.len() as u64);
        run.counts.add(done, batch.bytes.len().saturating_sub(failed_bytes) as u64);
        run.counts.failures.fetch_add(errors.len() as u64, Ordering::Relaxed);
        for error in &errors {
            run.tally.note(|| format!("{}: {}", batch.name(run, error.number), error.error));
        }
        match (errors.first(), last_arrived) {
            (Some(first), _) if run.options.stops_on_error() => {
                return Err(ToolError::server(namespace(), first.error.clone()));
            }
            // The server stopped at this document, because the command is ordered.
            (None, Some(number)) if run.options.stops_on_error() && number + 1 < batch.places.len() => {
                batch.drop_through(number);
                return self.send(batch);
            }
            _ => {}
        }
        if batch.ending == Ending::OfChunk { self.finish(&origin) } else { Ok(()) }
    }

    /// Numbers of the refused documents that the server holds byte for byte, because they were sent before.
    fn arrived(&mut self, batch: &Batch, errors: &[WriteError]) -> Result<Vec<usize>, ToolError> {
        let run = self.run;
        let known: Vec<usize> = errors.iter().filter(|error| error.is_known_id).map(|error| error.number).collect();
        if !batch.is_in_doubt || batch.form != Form::Insert || known.is_empty() {
            return Ok(Vec::new());
        }
        let mut wanted = known.iter().copied().peekable();
        let numbered = each_document(&batch.bytes).enumerate();
        let documents: Vec<&[u8]> =
            numbered.filter_map(|(number, document)| wanted.next_if_eq(&number).map(|_| document)).collect();
        let place = (run.options.database.as_str(), run.options.collection.as_str());
        let there = loop {
            let link = match &mut self.inquiries {
                Some(link) => link,
                none => none.insert(run.connect()?),
            };
            match in_doubt::are_there(&mut **link, run.progress, place, &documents) {
                Ok(there) => break there,
                Err(error) => {
                    self.inquiries = None;
                    self.backoff.wait(&run.options.namespace(), error, run.interrupted)?;
                }
            }
        };
        Ok(known.into_iter().zip(there).filter(|(_, is_there)| *is_there).map(|(number, _)| number).collect())
    }

    /// Ends a chunk: all of its writes are acknowledged.
    fn finish(&mut self, origin: &Origin) -> Result<(), ToolError> {
        let (run, chunk) = (self.run, &origin.chunk);
        run.progress.source_bytes.fetch_add(chunk.bytes.len() as u64, Ordering::Relaxed);
        run.queue.release(chunk.bytes.len());
        match &run.resume {
            Some(log) if !origin.is_uncertain.load(Ordering::Relaxed) => log.done(Part {
                start: chunk.start,
                end: chunk.end(),
                line: chunk.line,
                next_line: chunk.line + chunk.lines,
                documents: origin.done.load(Ordering::Relaxed),
                failures: origin.failed.load(Ordering::Relaxed),
                is_last: chunk.is_last,
            }),
            _ => Ok(()),
        }
    }
}

/// Parses records into `batch` until it is full, and returns it then; `None` at the chunk's end.
fn parse(run: &Run<'_>, records: &mut Records<'_>, batch: &mut Batch) -> Result<Option<Batch>, Flaw> {
    loop {
        let start = batch.bytes.len();
        let Some(record) = records.next(&mut batch.bytes)? else { return Ok(None) };
        let place = batch.origin.chunk.start + record.offset as u64;
        let form = match record.row {
            Row::Skipped => None,
            Row::Document => write::put_write(&mut batch.bytes, start, run.options, run.id_at(place)),
        };
        let Some(form) = form else {
            Tally::add(&run.tally.skipped, 1);
            continue;
        };
        if batch.places.is_empty() {
            batch.form = form;
        }
        let is_full = batch.bytes.len() >= BATCH_BYTES || batch.places.len() + 1 == BATCH_DOCUMENTS;
        if batch.form == form && !is_full {
            batch.places.push(record.offset as u32);
            continue;
        }
        // One command has writes of one kind; the others begin the next batch.
        let mut next = Batch::new(form, &batch.origin, run.is_resumed);
        if batch.form == form {
            batch.places.push(record.offset as u32);
        } else {
            next.bytes = batch.bytes.split_off(start);
            next.places.push(record.offset as u32);
        }
        return Ok(Some(std::mem::replace(batch, next)));
    }
}
