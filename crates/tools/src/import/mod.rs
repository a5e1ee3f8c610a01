//! Importing documents from JSON, tables and BSON: a reader that cuts the input between records, and workers that parse
//! and send.
//!
//! ```text
//! file ── reader ── chunks ──┬── worker: parse ── batch ── link
//!                            ├── worker: parse ── batch ── link
//!                            └── worker: parse ── batch ── link
//!                                   └── state file: parts of the input that are acknowledged
//! ```
//! A document that has no `_id` gets one that depends on its place in the input and on the run's id. A resumed run has
//! the id of its first run, so that the server refuses a document that it got twice.
//!
//! **Invariant:** memory is bounded by workers and the longest record, not by the input: `ChunkQueue` lends
//! the room for text, and each worker has two batches in flight.
//! **Invariant:** of a chunk that a worker took, everything in front of an error in the input is written.

mod bson;
mod cutter;
mod flaw;
mod front;
mod json;
mod options;
mod queue;
mod reader;
mod records;
mod resume;
mod run;
mod summary;
mod table;
#[cfg(test)]
mod tests;
mod worker;
mod write;

pub use options::{
    Blanks, ColumnTypes, FieldNames, Format, Grace, ImportOptions, JsonForm, Mode, Positions, RunId, Separator, Source,
    TableOptions, WORKERS_MAX,
};
pub use summary::ImportSummary;

use crate::progress::{Activity, Progress};
use crate::restore::Existing;
use crate::{Interrupted, Server, ToolError};
use bunko_bson::DocumentBuf;
use bunko_client::{ClientError, CommandError};
use reader::{Gap, Reader};
use resume::{Earlier, ResumeLog};
use run::{Begun, Run};
use std::sync::atomic::Ordering;
use summary::Tally;

/// The reason why an import ended early, and the documents that it had written.
#[derive(Debug)]
pub struct ImportError {
    /// The reason.
    pub cause: ToolError,
    /// The documents that were written until then.
    pub summary: Box<ImportSummary>,
}

impl From<ToolError> for ImportError {
    fn from(cause: ToolError) -> Self {
        Self { cause, summary: Box::default() }
    }
}

/// Imports the documents of the input.
/// # Errors
/// `Usage` for options that mean nothing; `Failed` for input that cannot be read, with its place; `File`; the server's
/// error, after attempts that took about a minute, or the first refusal if that ends the run; `Interrupted`.
pub fn run(
    server: &dyn Server,
    options: &ImportOptions,
    progress: &Progress,
    interrupted: &Interrupted,
) -> Result<ImportSummary, ImportError> {
    options.validate()?;
    let mut reader = Reader::open(&options.source)?;
    let format = front::read(&mut reader, options)?;
    let (resume, earlier) = match (&options.resume_file, &options.source) {
        (Some(path), Source::File(input)) => {
            let (log, earlier) = ResumeLog::open(path, input, options)?;
            (Some(log), earlier)
        }
        _ => (None, Earlier::default()),
    };
    let begun = Begun { format, path: reader.path().to_owned(), resume, earlier: earlier.run_id };
    let run = Run::new(server, options, progress, interrupted, begun);
    count_earlier(&run, &earlier, &reader);
    if earlier.is_finished {
        progress
            .note("--resume: the import was finished by an earlier run; remove the state file to import again".into());
    } else if let Err(error) = prepare(&run, &earlier).and_then(|()| write_all(&run, &mut reader, &earlier)) {
        return Err(ImportError { cause: error, summary: Box::new(run.tally.summary(options.mode == Mode::Delete)) });
    }
    run.counts.finish();
    Ok(run.tally.summary(options.mode == Mode::Delete))
}

/// Counts the records that earlier runs have written.
fn count_earlier(run: &Run<'_>, earlier: &Earlier, reader: &Reader) {
    let bytes: u64 = earlier.parts.iter().map(|part| part.end - part.start).sum();
    let documents = earlier.parts.iter().map(|part| part.documents).sum();
    Tally::add(&run.tally.earlier, documents);
    Tally::add(&run.tally.failed, earlier.parts.iter().map(|part| part.failures).sum());
    run.counts.add_earlier(documents, 0);
    run.progress.source_bytes_expected.store(reader.len_bytes().unwrap_or(0), Ordering::Relaxed);
    run.progress.source_bytes.store(bytes, Ordering::Relaxed);
}

/// Drops the collection if that is asked for, and was not done by an earlier run.
fn prepare(run: &Run<'_>, earlier: &Earlier) -> Result<(), ToolError> {
    let options = run.options;
    if options.existing == Existing::Drop && !earlier.is_begun {
        let dropped = run.connect()?.run(&options.database, &DocumentBuf::new().with("drop", &options.collection));
        match dropped {
            Ok(_) | Err(ClientError::Command(CommandError { code: CommandError::NAMESPACE_NOT_FOUND, .. })) => {}
            Err(error) => return Err(ToolError::server(options.namespace(), error)),
        }
    }
    match &run.resume {
        Some(log) if !earlier.is_begun => log.begun(),
        _ => Ok(()),
    }
}

fn write_all(run: &Run<'_>, reader: &mut Reader, earlier: &Earlier) -> Result<(), ToolError> {
    let gaps = resume::gaps(&earlier.parts, reader.position());
    std::thread::scope(|scope| {
        for _ in 0..run.options.workers().get() {
            scope.spawn(|| {
                if let Err(error) = worker::work(run) {
                    run.stop(error);
                }
            });
        }
        if let Err(error) = read_all(run, reader, gaps) {
            // An error that a worker found has a place in the input, and is reported instead of this one.
            run.stop((u64::MAX, error));
        }
        run.queue.close();
    });
    match run.take_cause() {
        Some(cause) => Err(cause),
        // The state file lacks chunks that the next run sends again.
        None if run.is_uncertain.load(Ordering::Relaxed) => Ok(()),
        None => run.resume.as_ref().map_or(Ok(()), ResumeLog::finished),
    }
}

fn read_all(run: &Run<'_>, reader: &mut Reader, gaps: Vec<Gap>) -> Result<(), ToolError> {
    for gap in gaps {
        // Without a state file, the only gap begins where the reader is.
        if run.resume.is_some() {
            reader.go_to(gap)?;
        }
        let mut cutter = run.format.cutter();
        while !run.is_over() {
            match run.progress.time(Activity::ReadSource, || reader.next(&mut *cutter))? {
                Some(chunk) => run.queue.push(chunk, || run.is_over()),
                None => break,
            }
        }
    }
    Ok(())
}
