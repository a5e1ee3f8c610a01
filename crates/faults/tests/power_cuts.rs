//! The power fails at any moment, and any part of the unsynced changes is lost, in any order.
//!
//! A workload runs once and every call on its files is recorded. Then disks are made, one for each seed, from the calls
//! up to a random moment, and a server starts on each. Steps that were acknowledged with `j: true` before that moment
//! must be there, and the data must be that of a prefix of the steps. `BUNKO_FAULTS_STATES=20000` makes more disks than
//! usual, `BUNKO_FAULTS_HALF=1` only those of every second recording (0: of the others), `BUNKO_FAULTS_SEED=17` only that
//! one, and `BUNKO_FAULTS_ENOUGH=1` stops after one failure.
//! The disks are directories below `BUNKO_FAULTS_DISKS`, by default the temporary directory.

use bunko_engines::Entry;
use bunko_faults::check::{self, Difference};
use bunko_faults::model::Model;
use bunko_faults::server::{Outcome, Server};
use bunko_faults::workload::{self, Step};
use bunko_faulty_files::{Disk, Event, Random, Watch};

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Disks of one engine.
const STATES: u64 = 500;
/// Disks that are made from one recording.
const STATES_OF_RECORDING: u64 = 50;

/// A workload, the calls that it made, and the states that it went through.
struct Recording {
    events: Vec<Event>,
    /// States of the model. The first is empty; each step adds one.
    states: Vec<Model>,
    steps: Vec<Step>,
}

/// A mark in the recording: the steps up to this one are durable, or this step has begun.
#[derive(Clone, Copy)]
enum Mark {
    Durable(usize),
    Begun(usize),
}

/// Runs a workload and records it.
fn record(engine: &'static Entry, seed: u64) -> Recording {
    let scratch = scratch();
    let watch = Watch::new(scratch.path());
    watch.record();
    let steps = workload::shuffled(seed);
    let mut recording = Recording { events: Vec::new(), states: vec![Model::default()], steps };
    let mut server = Server::open(scratch.path(), engine).expect("a new directory");
    for (number, step) in recording.steps.iter().enumerate() {
        let mut model = recording.states[number].clone();
        step.apply(&mut model);
        recording.states.push(model);
        watch.note(Mark::Begun(number + 1).number());
        match step.send(&server) {
            Some(Outcome::Acknowledged(_)) => {}
            Some(other) => panic!("{step:?}: {other:?}"),
            None => {
                match step {
                    Step::Kill => {
                        watch.kill();
                        // A kill ends the threads of the process too; here they go on until they find that every call
                        // fails.
                        drop(server.close());
                        watch.revive();
                    }
                    Step::Reopen => server.close().expect("closes"),
                    _ => continue,
                }
                server = Server::open(scratch.path(), engine).expect("opens");
            }
        }
        // A step that changes nothing has no log record to wait for.
        let has_record = recording.states[number] != recording.states[number + 1];
        if step.is_durable() && (has_record || matches!(step, Step::Checkpoint | Step::Compact)) {
            watch.note(Mark::Durable(number + 1).number());
        }
    }
    let recorded = watch.recorded();
    watch.kill();
    drop(server.close());
    recording.events = recorded;
    recording
}

impl Mark {
    fn number(self) -> u64 {
        match self {
            Self::Durable(state) => 2 * state as u64,
            Self::Begun(state) => 2 * state as u64 + 1,
        }
    }

    fn of(number: u64) -> Self {
        let state = (number / 2) as usize;
        if number.is_multiple_of(2) { Self::Durable(state) } else { Self::Begun(state) }
    }
}

/// Makes a disk, starts a server on it and compares its data.
fn case(recording: &Recording, engine: &'static Entry, random: &mut Random) -> Result<(), String> {
    let end = random.below(recording.events.len() as u64 + 1) as usize;
    let mut disk = Disk::new();
    let (mut durable, mut begun) = (0, 0);
    for event in &recording.events[..end] {
        disk.apply(event);
        if let Event::Note(number) = event {
            match Mark::of(*number) {
                Mark::Durable(state) => durable = state,
                Mark::Begun(state) => begun = state,
            }
        }
    }
    disk.cut(random);
    let scratch = scratch();
    disk.write_to(scratch.path()).map_err(|error| format!("the disk cannot be made: {error}"))?;
    // No more power cuts: with a watch, syncs need not reach the machine's disk.
    let _watch = Watch::new(scratch.path());
    let doubtful = &recording.steps[durable.saturating_sub(1)..begun];
    let at = || format!("after {end} of {} calls, steps {durable}..={begun}: {doubtful:?}", recording.events.len());
    let broken = |found: String| format!("a promise is broken: {found}; {}", at());
    let server = Server::open(scratch.path(), engine).map_err(|message| broken(format!("no start: {message}")))?;
    let mut differences = Vec::new();
    // The newest state is tried first: usually more is kept than was promised.
    let found = (durable..=begun).rev().find(|&state| {
        let expected = recording.states[state].clone().restarted();
        check::all(&server, &expected).inspect_err(|found| differences.push(format!("{state}: {found:?}"))).is_ok()
    });
    let state = found.ok_or_else(|| broken(format!("no state that was promised: {differences:#?}")))?;
    // The server must also be able to go on from this state.
    let mut model = recording.states[state].clone().restarted();
    for step in
        [Step::Compact, Step::Checkpoint].into_iter().filter(|step| step.makes_sense(&model)).collect::<Vec<_>>()
    {
        match step.send(&server).expect("a command") {
            Outcome::Acknowledged(_) => step.apply(&mut model),
            other => return Err(broken(format!("{step:?}: {other:?}"))),
        }
    }
    server.close().map_err(|message| broken(format!("the end: {message}")))?;
    let server = Server::open(scratch.path(), engine).map_err(|message| broken(format!("start: {message}")))?;
    match check::all(&server, &model) {
        Ok(()) => server.close().map_err(|message| broken(format!("the end: {message}"))),
        Err(Difference::Wrong(found) | Difference::Failed(found)) => {
            Err(broken(format!("after a compaction: {found}")))
        }
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

#[test]
fn durable_writes_survive_a_power_cut() {
    let only = setting("BUNKO_FAULTS_SEED");
    let half = setting("BUNKO_FAULTS_HALF");
    let total = setting("BUNKO_FAULTS_STATES").unwrap_or(STATES);
    let enough = setting("BUNKO_FAULTS_ENOUGH").unwrap_or(u64::MAX);
    let failures = Mutex::new(Vec::new());
    let is_enough = || failures.lock().expect("no panic").len() as u64 >= enough;
    let states = AtomicU64::new(0);
    for engine in bunko_engines::ENGINES.iter().filter(|engine| engine.name != "memory") {
        if std::env::var("BUNKO_FAULTS_ENGINE").is_ok_and(|name| name != engine.name) {
            continue;
        }
        let next = AtomicU64::new(only.map_or(half.unwrap_or(0), |seed| seed / STATES_OF_RECORDING));
        let step = if half.is_some() { 2 } else { 1 };
        let end = only.map_or(total.div_ceil(STATES_OF_RECORDING), |seed| seed / STATES_OF_RECORDING + 1);
        std::thread::scope(|scope| {
            for _ in 0..2 * std::thread::available_parallelism().map_or(2, usize::from) {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(step, Ordering::Relaxed);
                        if number >= end || is_enough() {
                            return;
                        }
                        let recording = record(engine, number);
                        let seeds = number * STATES_OF_RECORDING..(number + 1) * STATES_OF_RECORDING;
                        for seed in seeds.filter(|seed| only.is_none_or(|only| only == *seed)) {
                            if is_enough() {
                                return;
                            }
                            states.fetch_add(1, Ordering::Relaxed);
                            if let Err(found) = case(&recording, engine, &mut Random(seed)) {
                                failures
                                    .lock()
                                    .expect("no panic")
                                    .push(format!("{} seed {seed}: {found}", engine.name));
                            }
                        }
                    }
                });
            }
        });
        println!("{}: {} states so far", engine.name, states.load(Ordering::Relaxed));
    }
    let failures = failures.into_inner().expect("no panic");
    println!("states: {}, failures: {}", states.into_inner(), failures.len());
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}

fn scratch() -> tempfile::TempDir {
    let directory = std::env::var_os("BUNKO_FAULTS_DISKS").map_or_else(std::env::temp_dir, PathBuf::from);
    tempfile::Builder::new().prefix("faults-").tempdir_in(directory).expect("temporary directory")
}
