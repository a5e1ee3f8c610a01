//! A step that dumps or restores: prepares data and caches, runs the tool, records its results.

use super::archive::Archive;
use super::conclusion;
use super::preparation::{self, Caches};
use super::set;
use super::settled::SettledPhase;
use super::skipped;
use super::variant::Session;
use crate::BenchError;
use crate::clock::now_ms;
use crate::database::{self, DATABASE};
use crate::measure::{MeasuredTransfer, measure_transfer};
use crate::observer::Observer;
use crate::operation::{ArchiveCache, BulkSetting, Dump, Restore, Transfer, Workers};
use bunko_report::result::{Finding, Measurement, Run};
use bunko_tools::dump::{self, DumpOptions};
use bunko_tools::progress::Progress;
use bunko_tools::restore::{self, Bulk, RestoreOptions};
use bunko_tools::{Remote, ToolError};
use std::sync::Arc;

/// A tool's results.
#[derive(Default)]
struct Moved {
    documents: u64,
    bytes: u64,
    errors: u64,
    first_error: String,
}

pub(super) fn run(
    session: &mut Session<'_>,
    phase: &SettledPhase,
    transfer: Transfer<'_>,
    observer: &mut dyn Observer,
) -> Result<Run, BenchError> {
    if session.share.count > 1 {
        return Ok(skipped(session, "one generator alone dumps and restores".to_owned()));
    }
    match transfer {
        Transfer::Dump(settings) => dump(session, phase, settings, observer),
        Transfer::Restore(settings) => restore(session, phase, settings, observer),
    }
}

fn dump(
    session: &mut Session<'_>,
    phase: &SettledPhase,
    settings: &Dump,
    observer: &mut dyn Observer,
) -> Result<Run, BenchError> {
    let caches = match preparation::prepare_cache(session, phase.phase.cache)? {
        Ok(caches) => caches,
        Err(reason) => return Ok(skipped(session, reason)),
    };
    // An earlier dump is removed first, because there may be no room for two.
    session.archive = None;
    let archive = Archive::create(&session.archive_directory, settings.form)?;
    let mut options = DumpOptions::new(archive.output());
    options.database = Some(DATABASE.to_owned());
    options.compression = settings.compression.get();
    options.parallel_collections = settings.parallel_collections;
    let server = Remote::new(session.uri.clone())?;
    let stop = session.stop.clone();
    let started_at_ms = now_ms();
    let work = |progress: &Arc<Progress>| dump::run(&server, &options, progress, &stop);
    let (measured, members) = set::watched(session, |session| measure_transfer(work, &mut session.probe, observer));
    let MeasuredTransfer { mut measurement, returned, counted } = measured;
    set::enter(&mut measurement, members);
    let moved = match returned {
        Ok(summary) => Moved {
            documents: summary.collections.iter().map(|collection| collection.documents).sum(),
            bytes: summary.collections.iter().map(|collection| collection.bytes).sum(),
            ..Moved::default()
        },
        Err(ToolError::Interrupted) => return Ok(skipped(session, INTERRUPTED.to_owned())),
        Err(error) => {
            Moved { documents: counted.documents(), bytes: counted.bytes(), errors: 1, first_error: error.to_string() }
        }
    };
    let is_whole = moved.errors == 0;
    let (expected, found) = (session.data.expected, moved.documents);
    if found != expected {
        let what = "documents in the dump".to_owned();
        measurement.findings.push(Finding::CountsDiffer { what, expected, found });
    }
    enter(&mut measurement, moved, &archive, caches, "the dump is new");
    session.archive = is_whole.then_some(archive);
    conclusion::conclude(session, phase, started_at_ms, measurement, true)
}

fn restore(
    session: &mut Session<'_>,
    phase: &SettledPhase,
    settings: &Restore,
    observer: &mut dyn Observer,
) -> Result<Run, BenchError> {
    let Some(archive) = session.archive.take() else {
        return Ok(skipped(session, "there is no dump to restore".to_owned()));
    };
    database::drop(&mut session.control)?;
    let caches = match preparation::prepare_cache(session, phase.phase.cache)? {
        Ok(caches) => caches,
        Err(reason) => return Ok(skipped(session, reason)),
    };
    let (archive_state, not_cold) = prepare_archive(&archive, settings.archive_cache);
    let concern = preparation::write_concern(session, phase);
    let acknowledges = concern.expects_reply();
    let mut options = RestoreOptions::new(archive.source());
    options.write_concern = concern;
    options.parallel_collections = settings.parallel_collections;
    options.insertion_workers = match settings.workers {
        Workers::Automatic => None,
        Workers::Number(number) => Some(number),
    };
    options.bulk = match settings.bulk {
        BulkSetting::Automatic => Bulk::Automatic,
        BulkSetting::Never => Bulk::Never,
    };
    let server = Remote::new(session.uri.clone())?;
    let stop = session.stop.clone();
    let started_at_ms = now_ms();
    let work = |progress: &Arc<Progress>| restore::run(&server, &options, progress, &stop);
    let (measured, members) = set::watched(session, |session| measure_transfer(work, &mut session.probe, observer));
    let MeasuredTransfer { mut measurement, returned, .. } = measured;
    set::enter(&mut measurement, members);
    let (summary, ended_by) = match returned {
        Ok(summary) => (summary, None),
        Err(error) if matches!(error.cause, ToolError::Interrupted) => {
            return Ok(skipped(session, INTERRUPTED.to_owned()));
        }
        Err(error) => (*error.summary, Some(error.cause.to_string())),
    };
    // Counts refused documents and indexes, and the error that ended the restore.
    let refused =
        summary.namespaces.iter().flat_map(|namespace| namespace.errors.iter().chain(&namespace.indexes_refused));
    let errors = summary.failures()
        + summary.namespaces.iter().map(|namespace| namespace.indexes_refused.len() as u64).sum::<u64>()
        + u64::from(ended_by.is_some());
    let moved = Moved {
        documents: summary.documents(),
        bytes: summary.bytes(),
        errors,
        first_error: ended_by.or_else(|| refused.clone().next().cloned()).unwrap_or_default(),
    };
    measurement.findings.extend(not_cold);
    enter(&mut measurement, moved, &archive, caches, archive_state);
    session.archive = Some(archive);
    conclusion::conclude(session, phase, started_at_ms, measurement, acknowledges)
}

const INTERRUPTED: &str = "interrupted";

/// Brings the kernel's pages of the dump into the declared state; returns a description of the state.
fn prepare_archive(archive: &Archive, cache: ArchiveCache) -> (&'static str, Option<Finding>) {
    if cache == ArchiveCache::AsLeft {
        return ("the kernel keeps the pages of the dump that the dump phase left", None);
    }
    match bunko_host::forget_cached_pages(archive.directory()) {
        Ok(()) => ("the kernel has dropped the dump's pages", None),
        Err(error) => {
            let detail = format!("the kernel keeps the dump's pages: {error}");
            ("the kernel keeps the dump's pages", Some(Finding::CacheNotAsDeclared { detail }))
        }
    }
}

/// Records the tool's results.
fn enter(measurement: &mut Measurement, moved: Moved, archive: &Archive, caches: Caches, archive_state: &str) {
    let Moved { documents, bytes, errors, first_error } = moved;
    (measurement.documents, measurement.document_bytes, measurement.errors) = (documents, Some(bytes), errors);
    measurement.documents_per_second = documents as f64 / measurement.elapsed_seconds;
    if errors > 0 {
        measurement.findings.push(Finding::Errors { count: errors, first: first_error });
    }
    if let Some(transfer) = &mut measurement.transfer {
        transfer.archive_bytes = archive.bytes();
    }
    measurement.cache = format!("{}; {archive_state}", caches.state);
    measurement.findings.extend(caches.finding);
}
