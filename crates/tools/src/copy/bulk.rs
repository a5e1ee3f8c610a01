//! Copies whole collections: a dump into a pipe, and a restore out of it.

use super::listing::Listed;
use super::pair::Pair;
use super::{Copy, Notice, record};
use crate::dump::{self, ArchiveTarget, DumpOptions, Output};
use crate::namespaces::Filter;
use crate::pipe::pipe;
use crate::progress::{NamespaceSnapshot, Progress};
use crate::restore::target::CONCERN_ERROR;
use crate::restore::{
    self, ArchiveSource, Existing, NamespaceOutcome, RestoreOptions, RestoreSummary, Source, UsersAndRoles, Validation,
};
use crate::{ToolError, retry};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_client::{Acknowledgement, WriteConcern};
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time between two checks of which collections are copied.
const LOOK: Duration = Duration::from_millis(250);
/// Time between two lines on the progress.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// One run of dump and restore.
struct Flow<'f> {
    /// Only this database; all if `None`.
    database: Option<&'f str>,
    namespaces: Filter,
    read_concern: Option<&'f DocumentBuf>,
    existing: Existing,
    users_and_roles: UsersAndRoles,
}

/// The progress of one run of dump and restore.
struct Sides {
    dumped: Arc<Progress>,
    restored: Arc<Progress>,
}

impl Sides {
    fn new(copy: &Copy<'_>) -> Self {
        let begun = || Arc::new(Progress::new(copy.progress.clock().clone()));
        Self { dumped: begun(), restored: begun() }
    }
}

/// Copies all collections and views in the scope, except those in `apart` and those that an earlier run has copied.
/// # Errors
/// The servers'; `Failed` for a collection that the target refuses; `Interrupted`; `Usage` if another run has taken the
/// record over from `run`.
pub(super) fn copy_all(
    copy: &Copy<'_>,
    run: i64,
    apart: &[Listed],
    read_concern: Option<&DocumentBuf>,
) -> Result<(), ToolError> {
    let earlier = record::copied(Pair::connect(copy)?.target())?;
    let left_out = apart.iter().map(Listed::namespace).chain(earlier);
    let namespaces = left_out.fold(copy.scope.filter(), |filter, name| filter.without_namespace(&name));
    let flow = Flow {
        database: None,
        namespaces,
        read_concern,
        existing: Existing::Drop,
        users_and_roles: UsersAndRoles::Skip,
    };
    let is_over = AtomicBool::new(false);
    // A collection that an earlier attempt has finished, and that was not noted, is not finished in this one.
    let sides = Sides::new(copy);
    let summary = std::thread::scope(|scope| {
        let noting = scope.spawn(|| note_copied(copy, run, &sides, &is_over));
        let summary = flow.run(copy, &sides);
        is_over.store(true, Ordering::Relaxed);
        noting.join().expect("the thread does not panic")?;
        summary
    })?;
    judge(copy, &summary, read_concern)
}

/// Copies one collection anew.
/// # Errors
/// As [`copy_all`].
pub(super) fn copy_one(copy: &Copy<'_>, listed: &Listed, read_concern: &DocumentBuf) -> Result<(), ToolError> {
    let flow = Flow {
        database: Some(&listed.database),
        namespaces: Filter::default().with(Some(&listed.database), Some(&listed.name)),
        read_concern: Some(read_concern),
        existing: Existing::Drop,
        users_and_roles: UsersAndRoles::Skip,
    };
    let summary = flow.run(copy, &Sides::new(copy))?;
    judge(copy, &summary, Some(read_concern))
}

/// Copies users and roles. The target keeps its other ones.
/// # Errors
/// As [`copy_all`].
pub(super) fn copy_users(copy: &Copy<'_>) -> Result<(), ToolError> {
    let list = DocumentBuf::new().with("listCollections", 1_i32).with("nameOnly", true);
    let listed = Pair::connect(copy)?.source().list("admin", &list)?;
    let is_there =
        |name| listed.iter().any(|listed| listed.as_ref().get("name").and_then(ValueRef::as_str) == Some(name));
    if !is_there("system.users") && !is_there("system.roles") {
        return Ok(());
    }
    let names = ["admin.system.users".to_owned(), "admin.system.roles".to_owned()];
    let namespaces = Filter::new(&names, &[]).map_err(|error| ToolError::Usage(error.to_string()))?;
    let flow = Flow {
        database: Some("admin"),
        namespaces,
        read_concern: None,
        existing: Existing::Keep,
        users_and_roles: UsersAndRoles::IfPresent,
    };
    let summary = flow.run(copy, &Sides::new(copy))?;
    summary.warnings.iter().for_each(|warning| copy.note(warning.clone()));
    Ok(())
}

impl Flow<'_> {
    fn run(&self, copy: &Copy<'_>, sides: &Sides) -> Result<RestoreSummary, ToolError> {
        let (reader, writer) = pipe().map_err(|cause| ToolError::File { path: "-".into(), cause })?;
        let dump = DumpOptions {
            database: self.database.map(str::to_owned),
            namespaces: self.namespaces.clone(),
            read_concern: self.read_concern.cloned(),
            threads: copy.options.threads,
            ..DumpOptions::new(Output::Archive(ArchiveTarget::Pipe(writer.clone())))
        };
        let restore = RestoreOptions {
            filter: self.namespaces.clone(),
            existing: self.existing,
            validation: Validation::Bypass,
            empty_timestamps: copy.empty_timestamps,
            users_and_roles: self.users_and_roles.clone(),
            write_concern: WriteConcern { w: Acknowledgement::Majority, ..WriteConcern::default() },
            threads: copy.options.threads,
            ..RestoreOptions::new(Source::Archive(ArchiveSource::Pipe(reader.clone())))
        };
        let (dumped, restored) = std::thread::scope(|scope| {
            let dumping = scope.spawn(|| {
                let dumped = dump::run(copy.source, &dump, &sides.dumped, copy.interrupted);
                // A dump that failed early has not taken its end, for whose close the restore waits.
                drop(writer.take());
                dumped
            });
            let restored = restore::run(copy.target, &restore, &sides.restored, copy.interrupted);
            drop(reader.take());
            (dumping.join().expect("the dump does not panic"), restored)
        });
        sides.dumped.take_notes().into_iter().for_each(|note| copy.note(note));
        let restored = restored.map_err(|error| error.cause);
        match (dumped, restored) {
            (Err(error), Err(cause)) if is_broken_pipe(&error) => Err(cause),
            (Err(error), _) => Err(error),
            (Ok(_), restored) => restored,
        }
    }
}

fn is_broken_pipe(error: &ToolError) -> bool {
    matches!(error, ToolError::File { cause, .. } if cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Refuses the result if a collection is not copied, or a document was refused. A copy that is not of one moment may hold a
/// unique key twice: the events settle that, so it is only told.
fn judge(copy: &Copy<'_>, summary: &RestoreSummary, read_concern: Option<&DocumentBuf>) -> Result<(), ToolError> {
    if summary.is_clean() {
        return Ok(());
    }
    let is_followed = read_concern.is_some_and(|concern| concern.as_ref().get("afterClusterTime").is_some());
    let troubles = summary.troubles();
    if is_followed && events_settle(summary) {
        copy.note(format!("settled later: {}", troubles.trim_end()));
        return Ok(());
    }
    Err(ToolError::Failed(troubles.trim_end().to_owned()))
}

/// Whether the change stream settles all troubles: documents that the target refused for a key, and indexes that the
/// documents do not allow yet.
fn events_settle(summary: &RestoreSummary) -> bool {
    summary.namespaces.iter().all(|namespace| {
        // A write that no majority has acknowledged may be rolled back, and has no event then.
        let are_kept = !namespace.errors.iter().any(|error| error.starts_with(CONCERN_ERROR));
        namespace.state == NamespaceOutcome::Restored && namespace.failures == namespace.key_failures && are_kept
    })
}

/// Notes each collection that is copied, until all are, and tells how far the dump and the restore are.
fn note_copied(copy: &Copy<'_>, run: i64, sides: &Sides, is_over: &AtomicBool) -> Result<(), ToolError> {
    let mut pair = None;
    let mut noted = HashSet::<String>::new();
    let clock = copy.progress.clock();
    let mut reported = clock.now();
    loop {
        let is_last = is_over.load(Ordering::Relaxed);
        let snapshot = sides.restored.snapshot();
        let is_due = clock.since(reported) >= REPORT_INTERVAL;
        if is_due {
            reported = clock.now();
            let expected =
                sides.dumped.snapshot().namespaces.iter().map(|namespace| namespace.documents_expected).sum();
            (copy.report)(&Notice::Copying { documents: snapshot.documents(), expected });
        }
        let complete = snapshot.namespaces.into_iter().filter(NamespaceSnapshot::is_complete);
        let names: Vec<_> = complete.map(|namespace| namespace.name).filter(|name| !noted.contains(name)).collect();
        if is_due || !names.is_empty() {
            match note_names(copy, &mut pair, run, names, &mut noted) {
                // The next look connects again.
                Err(ToolError::Server { cause, .. }) if retry::is_transient(&cause) && !is_last => pair = None,
                Err(error) => {
                    if matches!(error, ToolError::Usage(_)) {
                        // Two copies to one target spoil each other: this one ends.
                        copy.interrupted.store(true, Ordering::Relaxed);
                    }
                    return Err(error);
                }
                Ok(()) => {}
            }
        }
        if is_last || retry::check(copy.interrupted).is_err() {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}

/// Notes that these collections are copied, unless another run has taken the record over.
fn note_names(
    copy: &Copy<'_>,
    pair: &mut Option<Pair>,
    run: i64,
    names: Vec<String>,
    noted: &mut HashSet<String>,
) -> Result<(), ToolError> {
    let pair = match pair {
        Some(pair) => pair,
        none => none.insert(Pair::connect(copy)?),
    };
    record::check_run(pair.target(), run)?;
    for name in names {
        if name.split_once('.').is_some_and(|(database, collection)| copy.scope.takes(database, collection)) {
            record::note_copied(pair.target(), &name)?;
        }
        noted.insert(name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::restore::NamespaceSummary;

    #[test]
    fn only_refusals_for_a_key_are_settled_later() {
        let of = |state, failures, key_failures, error: &str| {
            let namespace = NamespaceSummary {
                source: "a.b".to_owned(),
                target: "a.b".to_owned(),
                kind: "collection",
                size_bytes: 0,
                state,
                documents: 1,
                bytes: 1,
                failures,
                key_failures,
                indexes_built: 0,
                indexes_refused: vec!["u_1: E11000".to_owned()],
                errors: vec![error.to_owned()],
            };
            events_settle(&RestoreSummary { namespaces: vec![namespace], ..RestoreSummary::default() })
        };
        let refused = "_id 1: E11000";
        assert!(of(NamespaceOutcome::Restored, 0, 0, refused) && of(NamespaceOutcome::Restored, 2, 2, refused));
        assert!(!of(NamespaceOutcome::Restored, 2, 1, refused), "a document was refused for another reason");
        assert!(!of(NamespaceOutcome::Failed, 0, 0, refused));
        assert!(!of(NamespaceOutcome::Restored, 0, 0, "write concern: PrimarySteppedDown"));
    }
}
