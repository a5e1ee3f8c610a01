//! Replays an oplog: the operations that happened while the dump was made, in their order.
//!
//! Entries are idempotent when they are applied in order, so a replay that was interrupted begins anew. Indexes are
//! built after it: the dump's documents are from different moments, and a unique index need not hold before the oplog
//! has brought them to one.
//! Source: MongoDB's documentation of `mongorestore`, `--oplogReplay`, and of `applyOps`.

mod apply;
mod entry;
mod pending;
mod transactions;

use super::earlier::Earlier;
use super::indexes;
use super::options::{Indexes, Oplog, RestoreOptions};
use super::run::Run;
use super::source::{File, Input, OplogOfDump, Stream, refuse_unfinished_file};
use super::summary::RestoreSummary;
use super::target::{RestoredNamespace, Role, TargetDescription};
use crate::progress::Activity;
use crate::{Link, ToolError};
use apply::Applier;
use bunko_archive::metadata::Metadata;
use bunko_bson::{DocumentBuf, Timestamp};
use entry::{Entry, Kind, Rewriter};
use foldhash::HashSet;
use pending::PendingIndexes;
use std::sync::Arc;
use transactions::{Step, Transactions};

/// Bytes of entries that are read at once.
const PART_BYTES: usize = 4 * 1024 * 1024;

/// Checks that there is an oplog to replay, before anything is restored.
/// # Errors
/// `Failed` if there is none or if there are two, `File` if its file cannot be opened.
pub(super) fn check(options: &RestoreOptions, of_dump: OplogOfDump) -> Result<(), ToolError> {
    match (&options.oplog, of_dump) {
        (Oplog::Replay { file: None, .. }, OplogOfDump::Missing) => {
            Err(ToolError::Failed("the dump has no oplog to replay: it was made without --oplog".to_owned()))
        }
        (Oplog::Replay { file: Some(path), .. }, OplogOfDump::Included) => Err(ToolError::Failed(format!(
            "the dump has an oplog, and --oplogFile names another, {}: move the dump's oplog.bson away, or replay the other \
             file alone when the dump is restored",
            path.display()
        ))),
        (Oplog::Replay { file: Some(path), .. }, OplogOfDump::Missing) => {
            refuse_unfinished_file(path)?;
            let found = std::fs::metadata(path).map(|_| ());
            found.map_err(|cause| ToolError::File { path: path.clone(), cause })
        }
        _ => Ok(()),
    }
}

/// Reads the oplog to its end, without a server.
/// # Errors
/// The first entry that is not valid.
pub(super) fn rehearse(run: &Run<'_>, input: Input) -> Result<(), ToolError> {
    let Some(mut stream) = open(run, input)? else { return Ok(()) };
    let mut transactions = Transactions::default();
    each_entry(run, &mut stream, None, |entry| match transactions.step(entry).map_err(ToolError::Failed)? {
        Step::Operations(operations) => operations.iter().try_for_each(|operation| {
            let operation = Entry::parse_inner(operation.as_ref(), entry.at);
            operation.map(|_| ()).map_err(ToolError::Failed)
        }),
        Step::Alone | Step::Held => Ok(()),
    })
}

/// Opens the oplog; `None` if there is none, or it is not to be replayed.
fn open(run: &Run<'_>, input: Input) -> Result<Option<Stream>, ToolError> {
    match &run.options.oplog {
        Oplog::None => Ok(None),
        Oplog::Replay { file: None, .. } => input.oplog(run),
        Oplog::Replay { file: Some(path), .. } => File::open(path, run.options, PART_BYTES).map(Stream::File).map(Some),
    }
}

/// Applies the oplog, then builds the collections' indexes. Collections that the oplog made and the dump lacks are
/// added to the summary.
/// # Errors
/// The first entry that the server refuses ends the replay: later entries may need it.
pub(super) fn replay(run: &Run<'_>, input: Input, summary: &mut RestoreSummary) -> Result<(), ToolError> {
    let Oplog::Replay { limit, .. } = &run.options.oplog else { return Ok(()) };
    let stream = open(run, input)?;
    record_documents(run)?;
    let mut pending = PendingIndexes::default();
    for target in run.targets.iter().filter(|target| !target.has_failed() && target.role != Role::View) {
        pending.set(&target.name, indexes::of_target(run, target));
    }
    let mut replay = Replay {
        run,
        applier: Applier::new(run)?,
        rewriter: Rewriter::new(run.options, given_up(run)),
        transactions: Transactions::default(),
        pending,
    };
    let ended = stream.map_or(Ok(()), |stream| replay.all(stream, *limit));
    summary.oplog_entries = replay.applier.applied();
    ended?;
    let Replay { pending, .. } = replay;
    build(run, pending, summary)
}

/// Collections that the server did not take. The oplog's operations would restore them by half, or as something else.
fn given_up(run: &Run<'_>) -> HashSet<String> {
    run.targets.iter().filter(|target| target.has_failed()).map(|target| target.name.clone()).collect()
}

/// Records that all documents are loaded. A resumed restore could not find documents again that the oplog has changed.
fn record_documents(run: &Run<'_>) -> Result<(), ToolError> {
    let Some(resume) = &run.resume else { return Ok(()) };
    let checkpoint = resume.checkpoint_now(&run.targets);
    let fsync = DocumentBuf::new().with("fsync", 1_i32);
    // Without the privilege for `fsync`, nothing is recorded, and a resumed restore has more documents to compare.
    match run.command(&mut run.connect("")?, Activity::Server, ("admin", "$cmd"), &fsync)? {
        Ok(_) => resume.record(checkpoint),
        Err(_) => Ok(()),
    }
}

struct Replay<'r> {
    run: &'r Run<'r>,
    applier: Applier<'r>,
    rewriter: Rewriter<'r>,
    transactions: Transactions,
    pending: PendingIndexes,
}

/// Hands over the entries before `limit`, in their order.
fn each_entry(
    run: &Run<'_>,
    stream: &mut Stream,
    limit: Option<Timestamp>,
    mut work: impl FnMut(&Entry<'_>) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    let mut buffer = Vec::new();
    while let Some(documents) = stream.next(std::mem::take(&mut buffer), run.progress)? {
        for document in &documents {
            crate::retry::check(run.interrupted)?;
            let entry = Entry::parse(document).map_err(ToolError::Failed)?;
            if limit.is_some_and(|limit| entry.at >= limit) {
                return Ok(());
            }
            work(&entry)?;
        }
        buffer = documents.bytes;
    }
    Ok(())
}

impl Replay<'_> {
    fn all(&mut self, mut stream: Stream, limit: Option<Timestamp>) -> Result<(), ToolError> {
        each_entry(self.run, &mut stream, limit, |entry| self.entry(entry))?;
        self.applier.flush()
    }

    fn entry(&mut self, entry: &Entry<'_>) -> Result<(), ToolError> {
        match self.transactions.step(entry).map_err(ToolError::Failed)? {
            Step::Alone => self.operation(entry),
            Step::Held => Ok(()),
            Step::Operations(operations) => operations.iter().try_for_each(|operation| {
                let operation = Entry::parse_inner(operation.as_ref(), entry.at).map_err(ToolError::Failed)?;
                self.operation(&operation)
            }),
        }
    }

    /// Applies one operation outside transactions.
    fn operation(&mut self, entry: &Entry<'_>) -> Result<(), ToolError> {
        match entry.kind() {
            Kind::Nothing => Ok(()),
            Kind::Document => match self.rewriter.document(entry) {
                Some(operation) => self.applier.add(entry.at, &operation),
                None => Ok(()),
            },
            Kind::Command => {
                let Some(command) = self.rewriter.command(entry) else { return Ok(()) };
                if self.pending.takes(&command) {
                    return Ok(());
                }
                // Operations before and after a command are sent separately, because the command changes what they
                // mean.
                self.applier.flush()?;
                self.applier.add(entry.at, &command.operation)?;
                self.applier.flush()
            }
        }
    }
}

/// Builds the pending indexes after the last entry.
fn build(run: &Run<'_>, pending: PendingIndexes, summary: &mut RestoreSummary) -> Result<(), ToolError> {
    let mut link: Option<Box<dyn Link>> = None;
    for (namespace, indexes) in pending.into_namespaces() {
        // `Indexes::Skip` applies to the oplog's indexes as to the dump's.
        if indexes.is_empty() || run.options.indexes == Indexes::Skip {
            continue;
        }
        let link = match &mut link {
            Some(link) => link,
            none => none.insert(run.connect(&namespace)?),
        };
        let of_dump = run.targets.iter().find(|target| target.name == namespace);
        let target = of_dump.cloned().unwrap_or_else(|| made_by_oplog(run, &namespace));
        indexes::build(run, link, &target, &indexes)?;
        if of_dump.is_none() {
            target.finish();
            summary.namespaces.push(target.summary());
        }
    }
    for target in run.targets.iter().filter(|target| target.ledger().is_complete()) {
        target.finish();
    }
    Ok(())
}

fn made_by_oplog(run: &Run<'_>, namespace: &str) -> Arc<RestoredNamespace> {
    let found = TargetDescription {
        source: namespace.to_owned(),
        name: namespace.to_owned(),
        role: Role::Collection,
        metadata: Metadata::default(),
        size_bytes: 0,
    };
    let counts = run.progress.namespace(namespace);
    Arc::new(RestoredNamespace::new(found, run.options.order, counts, Earlier::default()))
}
