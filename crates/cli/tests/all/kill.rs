//! kill -9 during writes from 16 connections, again and again on one data directory, while documents move from the log
//! into extents, extents are rewritten, and segments are deleted.
//!
//! `tests/planted/run` plants bugs and shows that this test finds them.

use crate::oracle::{Evidence, Ledger, Level, Load, Moment, Watch, check, durable_engines, prepare, start};
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::{Server, temporary_dbpath};
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::time::Duration;

const ROUNDS: usize = 20;
const WRITERS: usize = 16;
/// Longest wait for a moment to kill in. A moment usually comes within a second; on a busy machine it takes longer.
const MOMENT_TIMEOUT: Duration = Duration::from_mins(2);

#[test]
fn no_acknowledged_write_is_lost_by_kill_9() {
    let mut evidence = Evidence::default();
    // Most rounds wait for the moment of their kill. Two servers wait for it at the same time.
    std::thread::scope(|scope| {
        let engines: Vec<_> =
            durable_engines().into_iter().map(|engine| scope.spawn(move || survive_kills(engine))).collect();
        for engine in engines {
            evidence.add(&engine.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
    });
    evidence.assert_complete();
}

fn survive_kills(engine: &str) -> Evidence {
    let dbpath = temporary_dbpath();
    let ledger = Ledger::default();
    let mut evidence = Evidence::default();
    let moments = Moment::all();
    let mut kills: BTreeMap<_, usize> = moments.iter().map(|moment| (*moment, 0)).collect();
    for round in 0..ROUNDS {
        let mut server = started(engine, &dbpath, round);
        if round == 0 {
            prepare(server.address());
        }
        settle(&server, &ledger).unwrap_or_else(|error| panic!("{engine}, round {round}: {error}"));
        let load = Load::start(server.address(), WRITERS, Level::Written, &ledger);
        // Not a round number, so that kills fall into all phases of syncs and group writes.
        let enough = ledger.writes() + 100 + 37 * (round as u64 % 7);
        wait_until("the writers write", || ledger.writes() >= enough);
        let moment = moments[round % moments.len()];
        if Watch::new(dbpath.path()).wait(moment, MOMENT_TIMEOUT) {
            *kills.entry(moment).or_default() += 1;
        }
        server.kill();
        evidence.add(&load.join());
    }
    let server = started(engine, &dbpath, ROUNDS);
    settle(&server, &ledger).unwrap_or_else(|error| panic!("{engine}, after the last kill: {error}"));
    println!("{engine}: {} writes, {evidence:?}, killed at {kills:?}", ledger.writes());
    assert!(ledger.writes() > (ROUNDS * WRITERS) as u64, "only {} writes in all rounds", ledger.writes());
    assert!(kills.values().all(|kills| *kills > 0), "not killed at every moment: {kills:?}");
    evidence
}

fn started(engine: &str, dbpath: &tempfile::TempDir, round: usize) -> Server {
    start(engine, dbpath.path()).unwrap_or_else(|error| panic!("{engine}, round {round}: {error}"))
}

/// Checks the contents, and takes them as acknowledged from now on.
fn settle(server: &Server, ledger: &Ledger) -> Result<(), String> {
    let documents = ledger.snapshot();
    ledger.settle(&check(server.address(), &documents, &documents)?);
    Ok(())
}

#[test]
fn sigterm_closes_in_order_and_loses_nothing() {
    for engine in durable_engines() {
        let dbpath = temporary_dbpath();
        let ledger = Ledger::default();
        let mut server = started(engine, &dbpath, 0);
        prepare(server.address());
        let load = Load::start(server.address(), 4, Level::Written, &ledger);
        wait_until("the writers write", || ledger.writes() >= 100);
        server.stop();
        load.join();
        let server = started(engine, &dbpath, 1);
        settle(&server, &ledger).unwrap_or_else(|error| panic!("{engine}, after SIGTERM: {error}"));
    }
}
