//! Dumping databases: a plan, threads that read ranges of collections, and an output that takes their units.
//!
//! ```text
//! plan ── schedule ──┬── reader ── cursor ──┐
//!                    ├── reader ── cursor ──┼── target ── stream ── compression ── file
//!                    └── reader ── cursor ──┘         └── state file
//! ```
//! A document is copied once, from the reply into the unit that is compressed or written. The state file records
//! progress only after the data is synced, so that a dump can be resumed after a kill at any moment.
//!
//! **Invariant:** ranges of one collection cover every `_id` exactly once.
//! **Invariant:** memory is bounded by threads, not by data: a reply and a unit for each, and the compressors' queue.

mod authorisation;
mod extended_json_text;
mod oplog;
mod options;
mod place;
mod plan;
mod planner;
mod ranges;
mod read;
mod schedule;
mod selection;
mod state;
mod stream;
mod target;
mod unit;

pub use options::{ArchiveTarget, DumpOptions, OplogMode, Output, Resume, UsersAndRoles, Views};

use crate::error::is_full;
use crate::progress::Progress;
use crate::{Interrupted, Link, Server, ToolError};
use place::OutputPlace;
use plan::{Kind, Plan, Resumability};
use read::{Reader, Readers};
use schedule::{Schedule, Task};
use state::{Begun, EarlierRun, StateFile};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use target::DumpOutput;

/// Result of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpSummary {
    /// In the order of the plan: large collections first.
    pub collections: Vec<CollectionSummary>,
    /// Entries of the oplog; `None` if it was not asked for.
    pub oplog_entries: Option<u64>,
}

/// Result of a dump for one collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectionSummary {
    /// `database.collection`.
    pub namespace: String,
    /// Number of documents.
    pub documents: u64,
    /// Encoded length of the documents.
    pub bytes: u64,
}

/// Advice on a full disk for a dump that has begun to write.
const GO_ON: &str = "what is written so far is kept: make room, then give the same command with --resume";
/// Advice on a full disk for a dump that has written nothing.
const BEGIN_AGAIN: &str = "nothing is written yet: make room, then give the same command again";

/// Dumps the databases and collections that `options` name.
/// # Errors
/// `Usage` for options that mean nothing; the server's error, after attempts that took about a minute; `File`;
/// `Interrupted`. After any but `Usage`, a dump to files or a directory that was begun can be resumed
/// ([`Resume::Continue`]).
pub fn run(
    server: &dyn Server,
    options: &DumpOptions,
    progress: &Arc<Progress>,
    interrupted: &Interrupted,
) -> Result<DumpSummary, ToolError> {
    options.validate()?;
    let place = OutputPlace::prepare(&options.output).map_err(|error| with_advice(error, BEGIN_AGAIN))?;
    let begun = begin(server, options, &place, progress);
    let (mut link, begun) = begun.map_err(|error| with_advice(error, BEGIN_AGAIN)).inspect_err(|_| place.give_up())?;
    let Begun { mut plan, state, streams } = begun;
    let advised = |error| match place.resumability {
        Resumability::Resumable => with_advice(error, GO_ON),
        Resumability::Once => error,
    };
    // The oplog's entries are chosen last, so the collections are dumped under a plan without them.
    let collections = Dump { server, options, progress, interrupted, plan: plan.clone(), kind: PlanPart::Collections };
    let target = DumpOutput::open(options, &collections.plan, progress, state, streams).map_err(advised)?;
    let result = collections.read_all(&target).and_then(|()| {
        if plan.oplog_start().is_none() {
            return Ok(());
        }
        oplog::fix_entries(&mut plan, link.as_mut(), progress)?;
        let entries = Dump { server, options, progress, interrupted, plan: plan.clone(), kind: PlanPart::Oplog };
        entries.read_all(&target)?;
        // The server may have deleted entries while they were being read.
        plan.oplog_start().map_or(Ok(()), |start| oplog::check_reach(link.as_mut(), progress, start))
    });
    if let Err(error) = result {
        target.stop();
        return Err(advised(error));
    }
    let summary = summary(&plan, &target);
    target.finish().map_err(advised)?;
    Ok(summary)
}

/// Makes a plan, or reads the plan of the dump that is resumed.
fn begin(
    server: &dyn Server,
    options: &DumpOptions,
    place: &OutputPlace,
    progress: &Progress,
) -> Result<(Box<dyn Link>, Begun), ToolError> {
    let mut link = server.connect().map_err(|cause| ToolError::server("", cause))?;
    if options.resume == Resume::Continue
        && let Some(begun) = earlier(options, place, progress)?
    {
        return Ok((link, begun));
    }
    let plan = planner::make(link.as_mut(), options, place.resumability, progress)?;
    let state = place.state.clone().map(|path| StateFile::create(path, &plan)).transpose()?;
    Ok((link, Begun { plan, state, streams: BTreeMap::new() }))
}

/// The dump to resume; `None` if none was begun, which a note says.
fn earlier(options: &DumpOptions, place: &OutputPlace, progress: &Progress) -> Result<Option<Begun>, ToolError> {
    let Some(state) = &place.state else {
        let message = "--resume needs a file or a directory, not a pipe or a device";
        return Err(ToolError::Usage(message.into()));
    };
    let has_state = state.exists();
    if let EarlierRun::Dump(begun) = StateFile::resume(state.clone(), &options.fingerprint())? {
        return Ok(Some(*begun));
    }
    let state = state.display();
    match &place.existing {
        // Most likely the dump was finished: starting anew would destroy it.
        Some(existing) if !has_state => Err(ToolError::Failed(format!(
            "--resume: {state} is not there, but {} is: its dump was finished. Without --resume it is made again",
            existing.display()
        ))),
        _ => {
            let what = if has_state { "is empty" } else { "is not there" };
            progress.note(format!("--resume: {state} {what}: nothing to continue, so the dump starts over"));
            Ok(None)
        }
    }
}

/// The namespaces of the plan that are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PlanPart {
    Collections,
    Oplog,
}

struct Dump<'a> {
    server: &'a dyn Server,
    options: &'a DumpOptions,
    progress: &'a Progress,
    interrupted: &'a Interrupted,
    plan: Plan,
    kind: PlanPart,
}

impl Dump<'_> {
    fn read_all(&self, target: &DumpOutput<'_>) -> Result<(), ToolError> {
        let accounts: Vec<_> = (0..self.plan.collections.len()).map(|collection| target.account(collection)).collect();
        for (collection, planned) in self.plan.collections.iter().enumerate() {
            let account = &accounts[collection];
            if !self.is_of_part(collection) {
                continue;
            }
            let counts = self.progress.namespace(&planned.namespace());
            counts.documents_expected.store(planned.documents, Ordering::Relaxed);
            counts.bytes_expected.store(planned.size_bytes, Ordering::Relaxed);
            counts.add_earlier(account.documents, account.bytes);
            if planned.ranges.is_empty() && !account.is_finished {
                target.write_empty(collection)?;
            }
            if planned.ranges.is_empty() || account.is_finished {
                counts.finish();
            }
        }
        let is_left =
            |task: Task| self.is_of_part(task.collection) && !accounts[task.collection].ranges[task.range].is_finished;
        let schedule = Schedule::new(&self.plan.collections, self.options.parallel_collections, is_left);
        let readers = Readers {
            server: self.server,
            progress: self.progress,
            interrupted: self.interrupted,
            read_concern: self.options.read_concern.as_ref(),
            is_stopped: AtomicBool::new(false),
        };
        let threads = self.options.parallel_collections.max(self.options.threads).get();
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..threads).map(|_| scope.spawn(|| self.work(&schedule, &readers, target))).collect();
            let results = threads.into_iter().map(|thread| thread.join().expect("a reader does not panic"));
            // A thread that was stopped because of another's failure returns `Interrupted`, which is not the reason.
            results.reduce(|first, second| match (first, second) {
                (Ok(()) | Err(ToolError::Interrupted), Err(error)) => Err(error),
                (first, _) => first,
            })
        })
        .unwrap_or(Ok(()))
    }

    fn is_of_part(&self, collection: usize) -> bool {
        (self.plan.collections[collection].kind == Kind::Oplog) == (self.kind == PlanPart::Oplog)
    }

    fn work(&self, schedule: &Schedule, readers: &Readers<'_>, target: &DumpOutput<'_>) -> Result<(), ToolError> {
        let mut reader = Reader::new(readers);
        while let Some(task) = schedule.take() {
            let planned = &self.plan.collections[task.collection];
            let counts = self.progress.namespace(&planned.namespace());
            let read = reader.read_range(target, planned, task.collection, task.range, &counts);
            schedule.finish(task);
            if read.is_err() {
                readers.is_stopped.store(true, Ordering::Relaxed);
                schedule.stop();
                return read;
            }
            if target.account(task.collection).is_finished {
                counts.finish();
            }
        }
        Ok(())
    }
}

fn summary(plan: &Plan, target: &DumpOutput<'_>) -> DumpSummary {
    let mut summary = DumpSummary::default();
    for (collection, planned) in plan.collections.iter().enumerate() {
        let account = target.account(collection);
        if planned.kind == Kind::Oplog {
            summary.oplog_entries = Some(account.documents);
        } else {
            let (documents, bytes) = (account.documents, account.bytes);
            summary.collections.push(CollectionSummary { namespace: planned.namespace(), documents, bytes });
        }
    }
    summary
}

/// Adds advice to an error that a full disk caused.
fn with_advice(error: ToolError, advice: &str) -> ToolError {
    match error {
        ToolError::File { path, cause } if is_full(&cause) => {
            ToolError::Failed(format!("{}: {cause}; {advice}", path.display()))
        }
        other => other,
    }
}
