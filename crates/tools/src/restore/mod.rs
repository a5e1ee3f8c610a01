//! `bunko restore`: documents out of a dump and into a server.
//!
//! ```text
//! source ──▶ feed ──▶ queue ──▶ workers ──▶ server        (documents; bounded by the pool that buffers come from)
//!                                  └──▶ loaded ──▶ indexes (while other collections load)
//! then: oplog ──▶ views ──▶ users and roles ──▶ comparison
//! ```
//! One thread reads an archive, several read a directory's files. Documents are not copied: a part is read once,
//! stretches of it are sent, and the buffer returns to the pool when the server has acknowledged all of them.
//!
//! **Invariant:** all work that the state for `--resume` (`resume.rs`) lists as done is on the server, journaled.
//! **Invariant:** documents that may have been sent before are compared, byte for byte, with the server's before they
//! count as refused.

mod adapt;
mod batch;
mod collection;
mod compare;
mod earlier;
mod feed;
pub(crate) mod in_doubt;
mod incarnation;
mod indexes;
mod insert;
mod ledger;
mod oplog;
mod options;
pub(crate) mod outcome;
mod plan;
mod pool;
mod queue;
mod resume;
mod run;
mod source;
mod summary;
pub(crate) mod target;
#[cfg(test)]
mod tests;
mod users;
mod worker;
mod workers;

pub use options::{
    ArchiveSource, Bulk, CollectionOptions, EmptyTimestamps, Existing, IndexVersion, Indexes, InsertionOrder, Mode,
    ObjectCheck, OnError, Oplog, RestoreOptions, Resume, ResumeFile, Source, UsersAndRoles, Uuids, Validation, Verify,
};
pub use summary::{NamespaceOutcome, NamespaceSummary, RestoreError, RestoreSummary};

use crate::error::{OUT_OF_DISK_SPACE, is_full};
use crate::progress::Progress;
use crate::{Interrupted, Server, ToolError};
use bunko_client::ClientError;
use earlier::Earlier;
use foldhash::HashMap;
use insert::Form;
use resume::{Begun, ResumeLog};
use run::Run;
use source::{Input, Opened};
use std::sync::{Arc, mpsc};
use target::{RestoredNamespace, Role, TargetDescription};

/// Maximum number of attempts: a restore is resumed from its state if the server was restarted.
const ATTEMPTS_MAX: u32 = 5;

/// Restores a dump.
/// # Errors
/// The reason why it ended early, with the summary until then. Documents and indexes that the server refuses are no
/// such errors unless the options say so: [`RestoreSummary::is_clean`] tells whether there were any.
pub fn run(
    server: &dyn Server,
    options: &RestoreOptions,
    progress: &Arc<Progress>,
    interrupted: &Interrupted,
) -> Result<RestoreSummary, RestoreError> {
    let begun = progress.clock().now();
    let mut options = options.clone();
    let mut attempts = 0;
    loop {
        attempts += 1;
        let mut attempted = Attempted::default();
        let ended = restore(server, &options, progress, interrupted, &mut attempted);
        let Attempted { mut summary, has_restarted } = attempted;
        summary.elapsed = progress.clock().since(begun);
        let cause = match ended {
            Ok(()) => return Ok(summary),
            Err(cause) => cause,
        };
        match &mut options.resume {
            // The state records only journaled writes; the next attempt reads the rest once more.
            Some(resume) if has_restarted && attempts < ATTEMPTS_MAX => resume.mode = Resume::Continue,
            _ => return Err(RestoreError { cause, summary: Box::new(summary) }),
        }
    }
}

/// Result of one attempt.
#[derive(Default)]
struct Attempted {
    summary: RestoreSummary,
    /// Whether the server was restarted during the attempt.
    has_restarted: bool,
}

fn restore(
    server: &dyn Server,
    options: &RestoreOptions,
    progress: &Arc<Progress>,
    interrupted: &Interrupted,
    attempted: &mut Attempted,
) -> Result<(), ToolError> {
    options.validate()?;
    let summary = &mut attempted.summary;
    let failed = |cause| ToolError::server("", cause);
    let form = match options.mode {
        Mode::Restore => {
            let mut link = server.connect().map_err(failed)?;
            Form::choose(&mut *link, options).map_err(failed)?
        }
        Mode::DryRun | Mode::List => Form::Insert,
    };
    let Opened { found, identity, warnings, oplog, input } = source::open(options, form.batch_bytes(), progress)?;
    // Missing parts of the dump that were asked for are reported before anything is restored.
    oplog::check(options, oplog)?;
    users::check(options, &found)?;
    summary.warnings = warnings;
    let mut run = Run::new(server, options, progress, interrupted, form);
    if let (Mode::Restore, Some(file)) = (options.mode, &options.resume) {
        run.resume = Some(open_state(file, &state_identity(server, options, &identity), progress)?);
    }
    run.targets = targets(&run, found)?;
    let ended = execute(&run, input, summary).map_err(|error| with_advice(error, run.resume.as_ref()));
    summary.namespaces.splice(0..0, run.targets.iter().map(|target| target.summary()));
    attempted.has_restarted = run.has_restarted();
    ended?;
    if attempted.has_restarted {
        let warning = "the server was restarted meanwhile: it may have lost what it had not journaled; see --verify";
        summary.warnings.push(warning.to_owned());
    }
    // The server would refuse the same documents again, so there is nothing to resume.
    run.resume.take().map_or(Ok(()), ResumeLog::remove)
}

/// Opens the state file. If the user asked to resume and there is no state, a note says so.
fn open_state(file: &ResumeFile, identity: &str, progress: &Progress) -> Result<ResumeLog, ToolError> {
    let log = ResumeLog::open(file, identity, progress.clock())?;
    if log.begun() == Begun::Anew {
        progress.note(format!(
            "--resume: {} is not there or empty: nothing to continue, so the restore starts over; what is there \
             already, byte for byte, counts as restored",
            file.path.display()
        ));
    }
    Ok(log)
}

/// Adds advice to an error that a full disk caused, the server's or the one that holds the state.
fn with_advice(error: ToolError, state: Option<&ResumeLog>) -> ToolError {
    let is_full = match &error {
        ToolError::Server { cause, .. } => {
            matches!(&**cause, ClientError::Command(refusal) if refusal.code == OUT_OF_DISK_SPACE)
        }
        ToolError::File { cause, .. } => is_full(cause),
        _ => false,
    };
    match state {
        Some(state) if is_full => ToolError::Failed(format!(
            "{error}; {} says how far the restore is: make room, then give the same command with --resume",
            state.path().display()
        )),
        _ => error,
    }
}

/// Identifies the restore that a state for `--resume` belongs to: the dump, the server, and the choice of namespaces.
fn state_identity(server: &dyn Server, options: &RestoreOptions, dump: &str) -> String {
    let RestoreOptions { filter, renames, users_and_roles, .. } = options;
    let namespaces = xxhash_rust::xxh3::xxh3_64(format!("{filter:?} {renames:?} {users_and_roles:?}").as_bytes());
    format!("{dump}; to {}; namespaces {namespaces:016x}", server.name())
}

fn targets(run: &Run<'_>, found: Vec<TargetDescription>) -> Result<Vec<Arc<RestoredNamespace>>, ToolError> {
    let mut sources = HashMap::<String, String>::default();
    let mut targets = Vec::with_capacity(found.len());
    for found in found {
        if let Some(other) = sources.insert(found.name.clone(), found.source.clone()) {
            let message = format!("{other} and {} would both become {}", found.source, found.name);
            return Err(ToolError::Usage(message));
        }
        let counts = run.progress.namespace(&found.name);
        let earlier = match &run.resume {
            // Temporary collections are always loaded anew: an earlier run may have merged and dropped them.
            Some(resume) if !found.role.is_temporary() => resume.earlier(&found.source),
            _ => Earlier::default(),
        };
        targets.push(Arc::new(RestoredNamespace::new(found, run.options.order, counts, earlier)));
    }
    Ok(targets)
}

fn execute(run: &Run<'_>, mut input: Input, summary: &mut RestoreSummary) -> Result<(), ToolError> {
    match run.options.mode {
        Mode::List => return Ok(()),
        Mode::DryRun => {
            input.read(run)?;
            run.take_cause().map_or(Ok(()), Err)?;
            return oplog::rehearse(run, input);
        }
        Mode::Restore => load(run, &mut input)?,
    }
    if let Oplog::Replay { .. } = run.options.oplog {
        oplog::replay(run, input, summary)?;
    }
    views(run)?;
    summary.warnings.extend(users::merge(run)?);
    if run.options.verify == Verify::Everything {
        summary.differences = Some(compare::differences(run)?);
    }
    run.take_cause().map_or(Ok(()), Err)
}

/// Reads, sends, and builds indexes at the same time.
fn load(run: &Run<'_>, input: &mut Input) -> Result<(), ToolError> {
    let (sender, loaded) = mpsc::channel();
    run.send_loaded_to(Some(sender));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Err(cause) = indexes::build_loaded(run, &loaded) {
                run.stop(cause);
            }
        });
        scope.spawn(move || {
            // The queue is closed even if reading panics; otherwise workers would wait for ever.
            let _closing = Closing(run);
            if let Err(cause) = input.read(run) {
                run.stop_reading(cause);
            }
        });
        workers::run_workers(scope, run);
        run.send_loaded_to(None);
    });
    run.take_cause().map_or(Ok(()), Err)
}

/// Closes the queue when dropped.
struct Closing<'r>(&'r Run<'r>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.queue.close();
    }
}

fn views(run: &Run<'_>) -> Result<(), ToolError> {
    let mut link = None;
    for target in run.targets.iter().filter(|target| target.role == Role::View) {
        let link = match &mut link {
            Some(link) => link,
            none => none.insert(run.connect(&target.name)?),
        };
        collection::prepare(run, link, target)?;
        target.finish();
    }
    Ok(())
}
