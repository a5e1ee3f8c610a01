//! kill -9 during inserts from 16 connections, again and again on one data directory.
//!
//! Shown to fail by `tests/planted/run`, which plants `ack before append`.

mod oracle;

use bunko_testkit::process::{Server, temporary_dbpath};
use oracle::{Acknowledged, Level, Writers, binary, check, prepare};
use std::time::Duration;

const ROUNDS: usize = 20;
const WRITERS: usize = 16;

#[test]
fn no_acknowledged_document_is_lost_by_kill_9() {
    let dbpath = temporary_dbpath();
    let acknowledged = Acknowledged::default();
    for round in 0..ROUNDS {
        let mut server = Server::start(&binary(), dbpath.path(), &[]).expect("the server starts");
        if round == 0 {
            prepare(server.address());
        } else {
            check(server.address(), &acknowledged.snapshot()).unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
        let writers = Writers::start(server.address(), WRITERS, round, Level::Written, &acknowledged);
        // Not a round number: kills should fall into all phases of syncs and group writes.
        std::thread::sleep(Duration::from_millis(60 + 37 * (round as u64 % 7)));
        server.kill();
        writers.join();
    }
    let server = Server::start(&binary(), dbpath.path(), &[]).expect("the server starts");
    let acknowledged = acknowledged.snapshot();
    assert!(acknowledged.len() > ROUNDS * WRITERS, "only {} writes in all rounds", acknowledged.len());
    check(server.address(), &acknowledged).expect("after the last kill");
}

#[test]
fn sigterm_closes_in_order_and_loses_nothing() {
    let dbpath = temporary_dbpath();
    let acknowledged = Acknowledged::default();
    let mut server = Server::start(&binary(), dbpath.path(), &[]).expect("the server starts");
    prepare(server.address());
    let writers = Writers::start(server.address(), 4, 0, Level::Written, &acknowledged);
    std::thread::sleep(Duration::from_millis(200));
    assert!(server.terminate().success(), "{}", server.output_tail());
    writers.join();
    let server = Server::start(&binary(), dbpath.path(), &[]).expect("the server starts");
    check(server.address(), &acknowledged.snapshot()).expect("after SIGTERM");
}
