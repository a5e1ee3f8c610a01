//! The k-th call on a file fails, for every k and in every way, and nothing is lost.
//!
//! `BUNKO_FAULTS_ENGINE=mmap` runs one engine alone, `BUNKO_FAULTS_KIND=Torn` one kind of fault, `BUNKO_FAULTS_CALL=17`
//! one call. `BUNKO_FAULTS_STEP=5` takes every fifth call from `BUNKO_FAULTS_FIRST=2` on; without it every call is
//! taken, or every third for `Short` and `Slow`. `BUNKO_FAULTS_TOLD=1` prints the messages of each run. A failure names
//! its engine, kind and call.

mod directory;

use bunko_engines::Entry;
use bunko_faults::check::{self, Difference};
use bunko_faults::model::Model;
use bunko_faults::server::{Outcome, Server};
use bunko_faults::workload::{self, Step};
use bunko_faults::writes::Journal;
use bunko_faulty_files::{Fault, Kind, Watch};
use directory::{Inventory, Scratch};
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of failures of one kind at which its sweep stops; `BUNKO_FAULTS_ENOUGH` overrides it.
const FAILURES_MAX: usize = 40;

/// A run of the workload with a fault in it.
struct Run<'r> {
    watch: &'r Watch,
    engine: &'static Entry,
    model: Model,
    /// A second acceptable state: the server ended before it replied to a step, which may have been carried out.
    alternative: Option<Model>,
    /// Messages since the start of the run, most of which are about the fault.
    messages: Vec<String>,
}

impl Run<'_> {
    fn open(&mut self) -> Option<Server> {
        match Server::open(self.watch.path(), self.engine) {
            Ok(server) => Some(server),
            Err(message) => {
                self.messages.push(message);
                None
            }
        }
    }

    /// Starts the server. A start that the fault hit is tried once more, with room on the disk.
    fn open_again(&mut self) -> Result<Server, String> {
        if let Some(server) = self.open() {
            return Ok(server);
        }
        self.watch.give_room();
        Server::open(self.watch.path(), self.engine)
            .map_err(|message| format!("a promise is broken: a start without a fault: {message}"))
    }

    /// Carries out the steps. Returns the server if it still runs at the end.
    fn take(&mut self, steps: &[Step]) -> Result<Option<Server>, String> {
        let mut server = self.open_again()?;
        for step in steps {
            match step {
                step if !step.makes_sense(&self.model) => {}
                Step::Reopen => {
                    self.messages.extend(server.messages());
                    self.messages.extend(server.close().err());
                    step.apply(&mut self.model);
                    server = self.open_again()?;
                }
                Step::Look => self.look(&server).map_err(|found| format!("while it runs: {found}"))?,
                _ => match step.send(&server).expect("a step that is a command") {
                    Outcome::Acknowledged(_) => step.apply(&mut self.model),
                    Outcome::Refused(message) if self.watch.hit().is_none() => {
                        return Err(format!("{step:?} without a fault: {message}"));
                    }
                    Outcome::Refused(message) => {
                        if is_told() {
                            println!("{step:?} was refused");
                        }
                        self.messages.push(message);
                    }
                    Outcome::Unknown => {
                        let mut alternative = self.model.clone();
                        step.apply(&mut alternative);
                        self.alternative = Some(alternative);
                    }
                },
            }
            self.messages.extend(server.messages());
            if server.log_has_failed() {
                // A real server exits here: nothing that this one does may reach the disk any more.
                self.watch.kill();
                drop(server.close());
                return Ok(None);
            }
        }
        Ok(Some(server))
    }

    /// Checks that every read is right or fails with a message.
    fn look(&mut self, server: &Server) -> Result<(), String> {
        match check::all(server, &self.model) {
            Ok(()) => Ok(()),
            Err(Difference::Failed(message)) => {
                self.messages.push(message);
                Ok(())
            }
            Err(Difference::Wrong(found)) => Err(found),
        }
    }
}

/// Runs the workload with one fault, and opens the data without faults afterwards. Returns the call that was hit and
/// the files that are left; `None` if no call was hit.
fn case(engine: &'static Entry, fault: Option<Fault>) -> Result<Option<(String, Inventory)>, String> {
    let scratch = Scratch::new();
    let watch = Watch::new(scratch.path());
    watch.plan(fault);
    let mut run = Run { watch: &watch, engine, model: Model::default(), alternative: None, messages: Vec::new() };
    let server = run.take(&workload::everything())?;
    let is_killed = fault.is_some_and(|fault| fault.at % 2 == 0);
    let mut tidy = Ok(());
    if let Some(server) = server {
        run.look(&server)?;
        if is_killed {
            watch.kill();
            drop(server.close());
        } else {
            let (outcome, tables) = server.close_counting();
            run.messages.extend(outcome.err());
            tidy = left_of_tables(scratch.path(), tables, &watch.failed());
        }
    }
    let hit = watch.hit();
    let told = match (&hit, fault) {
        (Some(hit), Some(fault)) => explained(hit, fault, &run.messages),
        _ => Ok(()),
    };
    let messages = std::mem::take(&mut run.messages);
    if is_told() {
        println!("{fault:?} hit {hit:?}: {messages:#?}");
    }
    watch.plan(None);
    recovered(run).map_err(|found| format!("{found}; fault at {hit:?}; it was said: {messages:?}"))?;
    // Lost data is reported before leftover files and unclear messages: often it is the cause of both.
    tidy?;
    told?;
    Ok(hit.map(|hit| (hit, Inventory::of(scratch.path()))))
}

/// A flush or merge that failed must leave no tables for the next start to remove, unless a removal failed, or a call
/// on `trees` or `trees/current`, which name the tables: then the disk may name the new tables, and the next start
/// follows it. On a full disk, any call after the one that was hit may have failed too.
fn left_of_tables(directory: &Path, tables: Option<i64>, failed: &[String]) -> Result<(), String> {
    let Some(tables) = tables else { return Ok(()) };
    let is_kept =
        |call: &String| call.starts_with("unlink") || call.ends_with(" trees") || call.ends_with("trees/current");
    let found = std::fs::read_dir(directory.join("trees/tables")).expect("readable").count();
    if found as i64 == tables || failed.iter().any(is_kept) {
        return Ok(());
    }
    Err(format!("{found} files of tables, of which {tables} are named; what failed: {failed:?}"))
}

/// Checks that every message about the fault names a file and the cause.
fn explained(hit: &str, fault: Fault, messages: &[String]) -> Result<(), String> {
    let causes: &[&str] = match fault.kind {
        Kind::Failed | Kind::Torn => &["Input/output error", "os error 5"],
        Kind::NoSpace | Kind::DiskFull => &["no space left", "No space left"],
        Kind::Short | Kind::Slow => return Ok(()),
    };
    let mut was_named = false;
    for message in messages {
        // LMDB refuses all further work, with MDB_PANIC, if its last page did not reach the disk.
        let is_consequence = ["the log failed earlier", "MDB_PANIC"].iter().any(|known| message.contains(known));
        let is_named = message.contains("faults-") && causes.iter().any(|cause| message.contains(cause));
        was_named |= is_named;
        // Documents that a refused drop left behind collide with the next insert.
        let is_left_over = was_named && message.contains("E11000");
        if !is_named && !is_consequence && !is_left_over {
            return Err(format!("{hit} failed, and it is said without file or cause: {message}"));
        }
    }
    Ok(())
}

/// Opens the directory without faults, compares it with the model and writes to it.
fn recovered(mut run: Run<'_>) -> Result<(), String> {
    let open = || Server::open(run.watch.path(), run.engine);
    let server = open().map_err(|message| format!("a promise is broken: the next start: {message}"))?;
    let expected = run.model.clone().restarted();
    let alternative = run.alternative.take().map(Model::restarted);
    run.model = match (check::all(&server, &expected), alternative) {
        (Ok(()), _) => expected,
        (Err(_), Some(alternative)) if check::all(&server, &alternative).is_ok() => alternative,
        (Err(found), _) => return Err(format!("a promise is broken: after the next start {found:?}")),
    };
    let first = run.model.collections.keys().next().copied();
    let mut more = vec![Step::Compact];
    more.extend(first.map(|collection| Step::Insert {
        collection,
        ids: 900..902,
        pad_bytes: 50,
        journal: Journal::Synced,
    }));
    for step in more.into_iter().filter(|step| step.makes_sense(&run.model)).collect::<Vec<_>>() {
        match step.send(&server).expect("a command") {
            Outcome::Acknowledged(_) => step.apply(&mut run.model),
            other => return Err(format!("a promise is broken: {step:?} without a fault: {other:?}")),
        }
    }
    check::all(&server, &run.model).map_err(|found| format!("a promise is broken: in the end {found:?}"))?;
    let messages = server.messages();
    if !messages.is_empty() {
        return Err(format!("without a fault: {messages:?}"));
    }
    server.close().map_err(|message| format!("the end without a fault: {message}"))
}

fn is_told() -> bool {
    setting::<u8>("BUNKO_FAULTS_TOLD").is_some()
}

fn setting<T: FromStr>(name: &str) -> Option<T> {
    std::env::var(name)
        .ok()
        .map(|value| value.parse().ok().unwrap_or_else(|| panic!("{name}={value} is not understood")))
}

/// Runs one case for each call with this kind of fault. Returns the number of calls that were hit, and the failures.
fn sweep(engine: &'static Entry, kind: Kind, usual: &Inventory) -> (u64, Vec<String>) {
    let step = setting("BUNKO_FAULTS_STEP").unwrap_or(if matches!(kind, Kind::Short | Kind::Slow) { 3 } else { 1 });
    let only: Option<u64> = setting("BUNKO_FAULTS_CALL");
    let first = setting("BUNKO_FAULTS_FIRST").unwrap_or(1);
    let enough = setting("BUNKO_FAULTS_ENOUGH").unwrap_or(FAILURES_MAX);
    let next = AtomicU64::new(only.unwrap_or(first));
    let end = AtomicU64::new(only.map_or(u64::MAX, |only| only + 1));
    let failures = Mutex::new(Vec::new());
    let hits = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        // Two threads for each processor: a run often waits for its own threads to end.
        for _ in 0..2 * std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(step, Ordering::Relaxed);
                    let is_enough = failures.lock().expect("no panic").len() >= enough;
                    if at >= end.load(Ordering::Relaxed) || is_enough {
                        return;
                    }
                    let outcome = case(engine, Some(Fault { kind, at }));
                    let failure = match outcome {
                        Ok(Some((hit, inventory))) => {
                            hits.lock().expect("no panic").insert(at, hit.clone());
                            inventory.beyond(usual).map(|found| format!("{found}; the fault was at {hit}"))
                        }
                        // The workload makes fewer calls than that.
                        Ok(None) => {
                            end.fetch_min(at, Ordering::Relaxed);
                            None
                        }
                        Err(found) => Some(found),
                    };
                    let named = failure.map(|found| format!("{} {kind:?} {at}: {found}", engine.name));
                    failures.lock().expect("no panic").extend(named);
                }
            });
        }
    });
    let cases = hits.into_inner().expect("no panic").len() as u64;
    (cases, failures.into_inner().expect("no panic"))
}

#[test]
fn nothing_is_lost_whichever_call_fails() {
    let only_engine: Option<String> = setting("BUNKO_FAULTS_ENGINE");
    let only_kind: Option<String> = setting("BUNKO_FAULTS_KIND");
    let (mut calls, mut cases) = (0, 0);
    let mut failures = Vec::new();
    for engine in bunko_engines::ENGINES.iter().filter(|engine| engine.name != "memory") {
        if only_engine.as_ref().is_some_and(|only| only != engine.name) {
            continue;
        }
        let usual = usual_inventory(engine);
        for kind in Kind::ALL {
            if only_kind.as_ref().is_some_and(|only| *only != format!("{kind:?}")) {
                continue;
            }
            let began = std::time::Instant::now();
            let (hit, found) = sweep(engine, kind, &usual);
            println!("{} {kind:?}: {hit} calls, {} failures, {:?}", engine.name, found.len(), began.elapsed());
            calls += if kind == Kind::Failed { hit } else { 0 };
            cases += hit;
            failures.extend(found);
        }
    }
    println!("calls: {calls}, cases: {cases}");
    assert!(failures.is_empty(), "{} of {cases}:\n{}", failures.len(), failures.join("\n"));
    assert!(cases > 0, "no fault hit");
}

/// Files that a run leaves when no call fails.
fn usual_inventory(engine: &'static Entry) -> Inventory {
    let never = Fault { kind: Kind::Slow, at: 1 };
    let (_, inventory) = case(engine, Some(never)).unwrap_or_else(|found| panic!("{found}")).expect("a first call");
    inventory
}
