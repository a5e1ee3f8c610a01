//! A brawl: writers, index builds, drops, renames, idle cursors and checkpoints over all engines at once, kill -9 in
//! the middle of it, and a model that knows which writes were acknowledged.
//!
//! `BUNKO_BRAWL_SECONDS` makes it longer, `BUNKO_BRAWL_SEED` sets the seed.

mod check;
mod document;
mod fighter;
mod model;
mod ring;

use bunko_testkit::process::temporary_dbpath;
use check::{Since, check};
use fighter::{Brawl, Known};
use std::time::{Duration, Instant};

/// Minimum number of rounds for each engine.
const ROUNDS: u64 = 5;
/// Engines in which a server's own data survives a restart.
const OWN_ENGINES: [&str; 2] = ["lsm", "mmap"];

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: '{text}' is not a number")))
}

#[test]
fn a_brawl_leaves_what_was_acknowledged() {
    let seconds = from_environment("BUNKO_BRAWL_SECONDS").unwrap_or(0);
    let seed = from_environment("BUNKO_BRAWL_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    for engine in OWN_ENGINES {
        let share = Duration::from_secs(seconds) / OWN_ENGINES.len() as u32;
        brawl(engine, share, seed);
    }
}

/// Fights [`ROUNDS`] rounds, and more until the time is over. In odd rounds the server is killed; in even rounds the
/// state is first checked at rest.
fn brawl(engine: &str, share: Duration, seed: u64) {
    let end = Instant::now() + share;
    let dbpath = temporary_dbpath();
    let known = Known::default();
    let (mut rounds, mut indexes) = (0, 0);
    while rounds < ROUNDS || Instant::now() < end {
        let context = |error: String| -> ! { panic!("{engine}, seed {seed}, round {rounds}: {error}") };
        let mut server = ring::start(engine, dbpath.path()).unwrap_or_else(|error| context(error));
        if rounds == 0 {
            ring::prepare(server.address());
        }
        indexes += check(server.address(), &known, Since::Restart).unwrap_or_else(|error| context(error));
        let fight = Brawl::start(server.address(), &known, seed << 8 | rounds);
        // Not a round number, so that kills fall into all phases of checkpoints and builds.
        std::thread::sleep(Duration::from_millis(1_200 + 371 * (rounds % 5)));
        if rounds % 2 == 0 {
            fight.join();
            indexes += check(server.address(), &known, Since::Pause).unwrap_or_else(|error| context(error));
            server.kill();
        } else {
            server.kill();
            fight.join();
        }
        rounds += 1;
    }
    println!("{engine}, seed {seed}: {rounds} rounds, {} writes, {indexes} indexes compared", known.model.writes());
    assert!(known.model.writes() > 100 * rounds, "only {} writes in {rounds} rounds", known.model.writes());
    assert!(indexes as u64 > 8 * rounds, "only {indexes} indexes in {rounds} rounds");
}
