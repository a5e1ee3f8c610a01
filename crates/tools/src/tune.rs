//! Finds the flags with which a dump is restored fastest into a server, by short trials with that dump.
//!
//! A trial restores into a database of its own, which is dropped again, and is stopped after a few seconds. One setting
//! is varied at a time, starting from the defaults: workers, then documents in a batch, then collections at a time. The
//! best settings and the defaults are then tried again in turns, because a single trial proves little.
//!
//! **Invariant:** nothing outside the trials' database is written, and an existing database is not touched.

use crate::namespaces::Renames;
use crate::progress::{Activity, Progress};
use crate::restore::{
    self, ArchiveSource, Existing, Indexes, InsertionOrder, Mode, Oplog, RestoreOptions, Source, UsersAndRoles, Uuids,
    Verify,
};
use crate::{Interrupted, Link, Server, ToolError};
use bunko_bson::{ArrayRef, DocumentBuf, ValueRef};
use bunko_client::ClientError;
use bunko_host::Clock;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// The database that trials restore into. Its collections are named after the dump's namespaces.
pub const DATABASE: &str = "bunko_tune";
/// Duration of a trial; it ends earlier if the dump does.
const TRIAL: Duration = Duration::from_secs(3);
/// How often a trial checks for an interruption.
const POLL: Duration = Duration::from_millis(50);
/// Factor by which a setting must be faster than the best one so far to replace it.
const GAIN_MIN: f64 = 1.05;
/// Shortest trial whose rate is taken to hold for a longer restore.
const BRIEF: Duration = Duration::from_secs(1);
/// Number of turns in which the best settings and the defaults are tried at the end.
const CONFIRMATIONS: usize = 3;
/// Numbers of insertion workers that are tried; with `None`, the restore adapts their number itself.
const WORKERS: [usize; 4] = [1, 2, 4, 8];
/// Numbers of documents in a batch that are tried; with `None`, only bytes limit a batch.
const BATCHES: [usize; 2] = [1_000, 10_000];
/// Numbers of collections at a time that are tried.
const COLLECTIONS: [usize; 4] = [1, 2, 4, 8];

/// The settings that are varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `--numInsertionWorkersPerCollection`
    pub workers: Option<NonZeroUsize>,
    /// `--batchSize`
    pub batch_documents: Option<NonZeroUsize>,
    /// `--numParallelCollections`
    pub parallel_collections: NonZeroUsize,
}

/// One trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The settings that were tried.
    pub settings: Settings,
    /// Documents that the server acknowledged.
    pub documents: u64,
    /// Bytes of these documents.
    pub bytes: u64,
    /// Duration of the trial.
    pub elapsed: Duration,
    /// The activity on which the threads spent most time, and its share of all their time.
    pub bottleneck: Option<(Activity, f64)>,
}

/// Result of a tuning.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// All trials, in the order in which they were made.
    pub trials: Vec<Trial>,
    /// The settings without tuning.
    pub defaults: Settings,
    /// The best settings.
    pub best: Settings,
    /// Factor by which the best settings are faster than the defaults, by medians of trials in turns; 1 if they are
    /// equal.
    pub gain: f64,
}

impl Settings {
    fn of(options: &RestoreOptions) -> Self {
        Self {
            workers: options.insertion_workers,
            batch_documents: options.batch_documents,
            parallel_collections: options.parallel_collections,
        }
    }

    fn apply(self, options: &RestoreOptions) -> RestoreOptions {
        RestoreOptions {
            insertion_workers: self.workers,
            batch_documents: self.batch_documents,
            parallel_collections: self.parallel_collections,
            ..options.clone()
        }
    }
}

/// Shows the settings as flags.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--numParallelCollections={}", self.parallel_collections)?;
        if let Some(workers) = self.workers {
            write!(f, " --numInsertionWorkersPerCollection={workers}")?;
        }
        match self.batch_documents {
            Some(documents) => write!(f, " --batchSize={documents}"),
            None => Ok(()),
        }
    }
}

impl Trial {
    fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let (documents, megabytes) = (self.documents as f64 / seconds, self.bytes_per_second() / 1e6);
        write!(f, "{documents:>9.0} docs/s  {megabytes:>7.1} MB/s  {seconds:>4.1} s  {}", self.settings)?;
        match self.bottleneck {
            Some((activity, share)) => write!(f, "  ({} {:.0} %)", activity.label(), share * 100.0),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shortest = self.trials.iter().map(|trial| trial.elapsed).min().unwrap_or_default();
        if shortest < BRIEF {
            let seconds = shortest.as_secs_f64();
            let defaults = self.defaults;
            return write!(
                f,
                "best unknown: trials took only {seconds:.3} s, the dump is too small to tell; stay with {defaults}"
            );
        }
        if self.best == self.defaults {
            return write!(f, "best as it is: {}: nothing that was tried is faster by 5 % beyond doubt", self.defaults);
        }
        write!(
            f,
            "best: {}: {:.2} times as fast as {} (medians of {CONFIRMATIONS}, the slowest of these trials faster than the \
             fastest of those)",
            self.best, self.gain, self.defaults
        )
    }
}

/// Tries settings for this restore, and calls `on_trial` after each trial.
/// # Errors
/// `Usage` for a restore that cannot be tried: a dump that can be read only once, documents in order, an existing
/// database [`DATABASE`]; the error of a trial; `Interrupted`.
pub fn run(
    server: &dyn Server,
    options: &RestoreOptions,
    interrupted: &Interrupted,
    clock: &Clock,
    on_trial: &mut dyn FnMut(&Trial),
) -> Result<Tuning, ToolError> {
    check(options)?;
    let mut link = server.connect().map_err(failed)?;
    refuse_existing(link.as_mut())?;
    let defaults = Settings::of(options);
    let mut trials = Vec::new();
    let mut attempt = |settings: Settings| {
        let trial = attempt(server, &settings.apply(&for_trial(options)), interrupted, clock);
        // The database is dropped also after a failure.
        let dropped = link.run(DATABASE, &DocumentBuf::new().with("dropDatabase", 1_i32)).map_err(failed);
        let trial = trial?;
        dropped?;
        on_trial(&trial);
        trials.push(trial.clone());
        Ok(trial.bytes_per_second())
    };
    // The first trial does not count: the caches of dump and server are cold.
    attempt(defaults)?;
    let found = search(defaults, &mut attempt)?;
    let (best, gain) = confirm(defaults, found, &mut attempt)?;
    Ok(Tuning { trials, defaults, best, gain })
}

/// Varies one setting after the other, each from the best so far.
fn search(
    defaults: Settings,
    attempt: &mut impl FnMut(Settings) -> Result<f64, ToolError>,
) -> Result<Settings, ToolError> {
    type Vary = fn(Settings, NonZeroUsize) -> Settings;
    let axes: [(&[usize], Vary); 3] = [
        (&WORKERS, |settings, number| Settings { workers: Some(number), ..settings }),
        (&BATCHES, |settings, number| Settings { batch_documents: Some(number), ..settings }),
        (&COLLECTIONS, |settings, number| Settings { parallel_collections: number, ..settings }),
    ];
    let (mut best, mut rate) = (defaults, attempt(defaults)?);
    for (numbers, vary) in axes {
        let from = best;
        for settings in numbers.iter().filter_map(|&number| NonZeroUsize::new(number)).map(|number| vary(from, number))
        {
            if settings == from {
                continue;
            }
            let tried = attempt(settings)?;
            if tried >= rate * GAIN_MIN {
                (best, rate) = (settings, tried);
            }
        }
    }
    Ok(best)
}

/// Tries the found settings and the defaults in turns. Returns the defaults, unless every trial of the found settings
/// is faster than all of theirs, and the gain is large enough.
fn confirm(
    defaults: Settings,
    found: Settings,
    attempt: &mut impl FnMut(Settings) -> Result<f64, ToolError>,
) -> Result<(Settings, f64), ToolError> {
    if found == defaults {
        return Ok((defaults, 1.0));
    }
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for _ in 0..CONFIRMATIONS {
        before.push(attempt(defaults)?);
        after.push(attempt(found)?);
    }
    let fastest_before = before.iter().copied().fold(0.0, f64::max);
    let is_apart = after.iter().all(|rate| *rate > fastest_before);
    let gain = median(after) / median(before).max(f64::MIN_POSITIVE);
    Ok(if is_apart && gain >= GAIN_MIN { (found, gain) } else { (defaults, 1.0) })
}

/// The median of an odd number of rates.
fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(0.0)
}

/// Options of a trial. It leaves out everything but documents, and everything that would outlast it: a server would
/// merge users and roles into its own.
fn for_trial(options: &RestoreOptions) -> RestoreOptions {
    let renames = Renames::new(&["$db$.$collection$".to_owned()], &[format!("{DATABASE}.$db$.$collection$")]);
    RestoreOptions {
        mode: Mode::Restore,
        renames: renames.expect("a pattern that is sound"),
        existing: Existing::Keep,
        uuids: Uuids::New,
        indexes: Indexes::Skip,
        oplog: Oplog::None,
        users_and_roles: UsersAndRoles::Skip,
        resume: None,
        verify: Verify::Nothing,
        ..options.clone()
    }
}

/// Refuses restores that cannot be tried.
fn check(options: &RestoreOptions) -> Result<(), ToolError> {
    let usage = |message: &str| Err(ToolError::Usage(message.to_owned()));
    let is_stdin = match &options.source {
        Source::Archive(source) => matches!(source, ArchiveSource::Stdin),
        Source::File { path, .. } => path == Path::new("-"),
        Source::Directory { .. } | Source::Absent => false,
    };
    if is_stdin {
        return usage("--tune reads the dump several times: standard input cannot be");
    }
    if options.order == InsertionOrder::Maintain {
        return usage("--tune has nothing to vary with --maintainInsertionOrder");
    }
    Ok(())
}

/// Refuses an existing database: it may be the user's, or left by a tuning that was killed.
fn refuse_existing(link: &mut dyn Link) -> Result<(), ToolError> {
    let command = DocumentBuf::new().with("listCollections", 1_i32).with("nameOnly", true);
    let reply = link.run(DATABASE, &command).map_err(failed)?;
    let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document);
    let batch = cursor.and_then(|cursor| cursor.get("firstBatch")?.as_array());
    match batch.map_or(0, ArrayRef::count) {
        0 => Ok(()),
        _ => Err(ToolError::Usage(format!("--tune works in the database '{DATABASE}', which is there: drop it first"))),
    }
}

fn failed(cause: ClientError) -> ToolError {
    ToolError::server(DATABASE, cause)
}

/// Restores until the dump ends or the time is over.
fn attempt(
    server: &dyn Server,
    options: &RestoreOptions,
    interrupted: &Interrupted,
    clock: &Clock,
) -> Result<Trial, ToolError> {
    let progress = Arc::new(Progress::new(clock.clone()));
    let stop: Interrupted = Arc::new(AtomicBool::new(false));
    let (done, is_done) = mpsc::channel::<()>();
    let (ended, snapshot) = std::thread::scope(|scope| {
        let restored = scope.spawn({
            let (progress, stop) = (&progress, &stop);
            move || {
                let ended = restore::run(server, options, progress, stop);
                drop(done);
                ended.map_err(|error| error.cause)
            }
        });
        let deadline = clock.now() + TRIAL;
        while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(POLL) {
            if clock.now() >= deadline || interrupted.load(Ordering::Relaxed) {
                break;
            }
        }
        // The snapshot is taken before the trial is stopped: documents acknowledged later do not count.
        let snapshot = progress.snapshot();
        stop.store(true, Ordering::Relaxed);
        (restored.join().expect("a restore does not panic"), snapshot)
    });
    if interrupted.load(Ordering::Relaxed) {
        return Err(ToolError::Interrupted);
    }
    match ended {
        Ok(_) | Err(ToolError::Interrupted) => {}
        Err(error) => return Err(error),
    }
    Ok(Trial {
        settings: Settings::of(options),
        documents: snapshot.documents(),
        bytes: snapshot.bytes(),
        elapsed: snapshot.elapsed,
        bottleneck: snapshot.bottleneck(&crate::progress::Snapshot::default()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults() -> Settings {
        Settings::of(&RestoreOptions::new(Source::Directory { path: "dump".into(), database: None }))
    }

    /// A server that is fastest with four workers and small batches.
    fn rate(settings: Settings) -> f64 {
        let workers = match settings.workers.map(NonZeroUsize::get) {
            Some(4) => 150.0,
            Some(_) => 90.0,
            None => 100.0,
        };
        workers * if settings.batch_documents.is_some_and(|documents| documents.get() == 1_000) { 1.2 } else { 1.0 }
    }

    #[test]
    fn each_setting_is_varied_from_the_best_so_far() {
        let mut tried = Vec::new();
        let mut attempt = |settings| {
            tried.push(settings);
            Ok(rate(settings))
        };
        let best = search(defaults(), &mut attempt).expect("no trial fails");
        let (settings, gain) = confirm(defaults(), best, &mut attempt).expect("no trial fails");
        let expected = "--numParallelCollections=4 --numInsertionWorkersPerCollection=4 --batchSize=1000";
        assert_eq!(settings.to_string(), expected);
        assert!((gain - 1.8).abs() < 1e-9, "{gain}");
        // The defaults, 4 workers, 2 batches, 3 numbers of collections other than 4; then both in turns.
        assert_eq!(tried.len(), 1 + 4 + 2 + 3 + 2 * CONFIRMATIONS);
        assert!(tried[5..7].iter().all(|settings| settings.workers == NonZeroUsize::new(4)));
    }

    #[test]
    fn a_difference_by_chance_is_not_recommended() {
        let mut trials = 0;
        let mut attempt = |_| {
            trials += 1;
            Ok(if trials == 3 { 200.0 } else { 100.0 })
        };
        let found = search(defaults(), &mut attempt).expect("no trial fails");
        assert_ne!(found, defaults());
        assert_eq!(confirm(defaults(), found, &mut attempt).expect("no trial fails"), (defaults(), 1.0));
    }

    /// Medians that differ by half are no gain if the trials of both overlap.
    #[test]
    fn a_gain_within_the_spread_is_none() {
        let mut rates = [100.0, 150.0, 160.0, 90.0, 90.0, 150.0].into_iter();
        let found = Settings { parallel_collections: NonZeroUsize::MIN, ..defaults() };
        let mut attempt = |_| Ok(rates.next().expect("six trials"));
        assert_eq!(confirm(defaults(), found, &mut attempt).expect("no trial fails"), (defaults(), 1.0));
    }

    #[test]
    fn trials_of_a_moment_recommend_nothing() {
        let trial = |milliseconds| Trial {
            settings: defaults(),
            documents: 100,
            bytes: 100_000,
            elapsed: Duration::from_millis(milliseconds),
            bottleneck: None,
        };
        let best = Settings { parallel_collections: NonZeroUsize::MIN, ..defaults() };
        let tuning = |milliseconds: [u64; 2]| {
            Tuning { trials: milliseconds.map(trial).to_vec(), defaults: defaults(), best, gain: 1.5 }.to_string()
        };
        assert!(tuning([3_000, 12]).starts_with("best unknown: trials took only 0.012 s"), "{}", tuning([3_000, 12]));
        assert!(tuning([3_000, 2_000]).starts_with("best: --numParallelCollections=1: 1.50 times as fast as "));
    }

    #[test]
    fn trials_restore_into_a_database_of_their_own_and_leave_nothing_behind() {
        let options = RestoreOptions {
            existing: Existing::Drop,
            uuids: Uuids::Preserve,
            verify: Verify::Everything,
            ..RestoreOptions::new(Source::Directory { path: "dump".into(), database: None })
        };
        let trial = for_trial(&options);
        assert_eq!(trial.renames.apply("shop.orders.old"), "bunko_tune.shop.orders.old");
        assert_eq!((trial.existing, trial.uuids, trial.verify), (Existing::Keep, Uuids::New, Verify::Nothing));
        assert_eq!(trial.users_and_roles, UsersAndRoles::Skip);
    }
}
