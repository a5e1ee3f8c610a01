//! Sends batches: one link with a few of them in flight.

use super::batch::{Batch, Doubt};
use super::in_doubt;
use super::insert::{Form, Journal};
use super::outcome::{Outcome, WriteError};
use super::queue::Wait;
use super::resume::Checkpoint;
use super::run::Run;
use crate::error::OUT_OF_DISK_SPACE;
use crate::link::Command;
use crate::progress::Activity;
use crate::retry::{Backoff, is_transient};
use crate::{Link, ToolError};
use bunko_archive::each_document;
use bunko_bson::DocumentRef;
use bunko_bson::text::ValueText;
use bunko_client::{ClientError, CommandError};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// Requests in flight on one link: while the server works on one, the other travels.
const IN_FLIGHT_MAX: usize = 2;

/// Sends batches from the queue until it is closed and empty, or the run is over.
/// # Errors
/// An error that ends the run.
pub(super) fn work(run: &Run<'_>) -> Result<(), ToolError> {
    let link = run.connect("")?;
    let mut worker = Worker {
        run,
        link,
        sent: VecDeque::new(),
        again: VecDeque::new(),
        suspects: VecDeque::new(),
        backoff: Backoff::default(),
    };
    worker.work()
}

struct Worker<'r> {
    run: &'r Run<'r>,
    link: Box<dyn Link>,
    sent: VecDeque<Sent>,
    /// Batches that have to be sent again.
    again: VecDeque<Batch>,
    suspects: VecDeque<Suspects>,
    backoff: Backoff,
}

/// A batch in flight.
struct Sent {
    batch: Batch,
    form: Form,
    /// Positions to record once the batch is acknowledged.
    checkpoint: Option<Checkpoint>,
}

/// Documents of a batch whose `_id`s exist on the server, possibly because they arrived before.
struct Suspects {
    batch: Batch,
    inserted: u64,
    /// The server's errors for the documents, by number in the batch.
    errors: Vec<WriteError>,
}

impl Worker<'_> {
    fn work(&mut self) -> Result<(), ToolError> {
        while !self.run.is_over() {
            self.fill()?;
            if let Some(sent) = self.sent.pop_front() {
                self.receive(sent)?;
            } else if !self.suspects.is_empty() {
                self.resolve()?;
            } else if self.again.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends batches until `IN_FLIGHT_MAX` are in flight or no batch is ready.
    fn fill(&mut self) -> Result<(), ToolError> {
        // Suspects are looked up over the same link, while no batch is in flight.
        while self.sent.len() < IN_FLIGHT_MAX && self.suspects.is_empty() {
            let wait = if self.sent.is_empty() { Wait::UntilThere } else { Wait::Never };
            let next = self.again.pop_front().or_else(|| self.run.queue.take(wait, || self.run.is_over()));
            let Some(batch) = next else { return Ok(()) };
            if batch.may_be_doubled() && !batch.target.has_failed() {
                let refusal = "documents without _id may be there already, and cannot be looked for: they would be doubled. \
                               --drop restores this collection anew";
                batch.target.fail(refusal.to_owned());
                if self.run.options.stops_on_error() {
                    return Err(ToolError::Failed(format!("{}: {refusal}", batch.target.name)));
                }
            }
            if batch.target.has_failed() {
                self.run.queue.release(&batch);
                continue;
            }
            self.send(batch)?;
        }
        Ok(())
    }

    fn send(&mut self, batch: Batch) -> Result<(), ToolError> {
        let run = self.run;
        let checkpoint = run.resume.as_ref().and_then(|resume| resume.checkpoint(batch.bytes.len(), &run.targets));
        let journal = if checkpoint.is_some() { Journal::Required } else { Journal::AsAsked };
        let form = run.form_of(&batch);
        let body = form.command(&batch.target, run.options, journal);
        let documents = Some(("documents", batch.documents()));
        let command = Command { database: &batch.target.database, body: body.as_ref(), documents };
        let sent = run.progress.time(Activity::Network, || self.link.send(command));
        self.sent.push_back(Sent { batch, form, checkpoint });
        sent.or_else(|error| self.lost(error))
    }

    fn receive(&mut self, sent: Sent) -> Result<(), ToolError> {
        let reply = self.run.progress.time(Activity::Server, || self.link.receive());
        let outcome = match reply.map(Outcome::read) {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(refusal)) if refusal.code == OUT_OF_DISK_SPACE => {
                return Err(ToolError::server(&sent.batch.target.name, refusal));
            }
            Ok(Err(refusal)) if !is_transient(&ClientError::Command(refusal.clone())) => {
                return self.refused(sent, refusal);
            }
            Ok(Err(passing)) => {
                self.sent.push_front(sent);
                return self.lost(ClientError::Command(passing));
            }
            Err(error) => {
                self.sent.push_front(sent);
                return self.lost(error);
            }
        };
        self.backoff.reset();
        self.settle(sent, outcome)
    }

    /// Handles a broken link, or a server that cannot write for now: batches in flight may have arrived or not.
    fn lost(&mut self, error: ClientError) -> Result<(), ToolError> {
        let namespace = self.sent.front().map_or_else(String::new, |sent| sent.batch.target.name.clone());
        for sent in self.sent.drain(..).rev() {
            self.again.push_front(Batch { doubt: Doubt::MayBeThere, ..sent.batch });
        }
        self.backoff.wait(&namespace, error, self.run.interrupted)?;
        self.link = self.run.connect(&namespace)?;
        Ok(())
    }

    /// Handles a refusal of the whole command.
    fn refused(&mut self, sent: Sent, refusal: CommandError) -> Result<(), ToolError> {
        let target = &sent.batch.target;
        if sent.form == Form::Bulk {
            // Plain inserts may work for a collection that the bulk path refuses.
            target.refuses_bulk.store(true, Ordering::Relaxed);
            self.again.push_back(sent.batch);
            return Ok(());
        }
        target.counts.failures.fetch_add(sent.batch.count as u64, Ordering::Relaxed);
        target.fail(format!("insert refused: {refusal}"));
        self.run.queue.release(&sent.batch);
        if self.run.options.stops_on_error() {
            return Err(ToolError::server(&target.name, refusal));
        }
        Ok(())
    }

    fn settle(&mut self, sent: Sent, outcome: Outcome) -> Result<(), ToolError> {
        let Sent { batch, checkpoint, .. } = sent;
        // A full disk is not an error of the documents; they are sent again once there is room.
        let full = outcome.write_errors.iter().find(|error| error.error.code == OUT_OF_DISK_SPACE);
        if let Some(full) = full {
            return Err(ToolError::server(&batch.target.name, full.error.clone()));
        }
        match (outcome.concern_error, checkpoint) {
            (Some(error), _) => {
                batch.target.note_concern_error(&error);
                if self.run.options.stops_on_error() {
                    return Err(ToolError::server(&batch.target.name, error));
                }
            }
            (None, Some(checkpoint)) => {
                if let Some(resume) = &self.run.resume {
                    resume.record(checkpoint)?;
                }
            }
            (None, None) => {}
        }
        let is_suspect = |error: &WriteError| batch.doubt == Doubt::MayBeThere && error.is_known_id;
        if outcome.write_errors.iter().any(is_suspect) {
            let (inserted, mut errors) = (outcome.inserted, outcome.write_errors);
            errors.sort_by_key(|error| error.number);
            self.suspects.push_back(Suspects { batch, inserted, errors });
            return Ok(());
        }
        self.finish(&batch, outcome.inserted, outcome.write_errors)
    }

    /// Compares the suspects with the server's documents. Equal ones arrived before, and are not failures.
    fn resolve(&mut self) -> Result<(), ToolError> {
        let Some(suspects) = self.suspects.front() else { return Ok(()) };
        let batch = &suspects.batch;
        let known = suspects.errors.iter().filter(|error| error.is_known_id);
        let numbers: Vec<usize> = known.map(|error| error.number).collect();
        let documents = documents(batch, &numbers);
        let (database, collection) = (batch.target.database.as_str(), batch.target.data_collection());
        let progress = self.run.progress;
        let there = match in_doubt::are_there(&mut *self.link, progress, (database, &collection), &documents) {
            Ok(there) => there,
            Err(error) => return self.lost(error),
        };
        let arrived: Vec<usize> = numbers.into_iter().zip(there).filter(|(_, there)| *there).map(|(n, _)| n).collect();
        let Suspects { batch, inserted, mut errors } = self.suspects.pop_front().expect("it was there");
        errors.retain(|error| arrived.binary_search(&error.number).is_err());
        self.finish(&batch, inserted + arrived.len() as u64, errors)
    }

    /// Counts the results of a batch.
    fn finish(&mut self, batch: &Batch, inserted: u64, errors: Vec<WriteError>) -> Result<(), ToolError> {
        let target = &batch.target;
        let mut failed_bytes = 0;
        for error in &errors {
            let document = batch.document(error.number).unwrap_or_default();
            failed_bytes += document.len();
            target.note_error(|| format!("_id {}: {}", shown_id(document), error.error));
        }
        target.counts.add(inserted, batch.bytes.len().saturating_sub(failed_bytes) as u64);
        target.counts.failures.fetch_add(errors.len() as u64, Ordering::Relaxed);
        let of_keys = errors.iter().filter(|error| error.error.code == CommandError::DUPLICATE_KEY).count();
        target.counts.key_failures.fetch_add(of_keys as u64, Ordering::Relaxed);
        let first = errors.into_iter().next().filter(|_| self.run.options.stops_on_error());
        if let Some(first) = first {
            return Err(ToolError::server(&target.name, first.error));
        }
        self.run.acknowledge(batch);
        self.run.queue.release(batch);
        Ok(())
    }
}

/// The documents with these numbers, which must ascend.
fn documents<'b>(batch: &'b Batch, numbers: &[usize]) -> Vec<&'b [u8]> {
    let mut wanted = numbers.iter().copied().peekable();
    let numbered = each_document(batch.documents()).enumerate();
    numbered.filter_map(|(number, document)| wanted.next_if_eq(&number).map(|_| document)).collect()
}

fn shown_id(document: &[u8]) -> String {
    let id = DocumentRef::trusted(document).get("_id");
    id.map_or_else(|| "(none)".to_owned(), |id| ValueText(id).to_string())
}
