//! Failpoints of commands and statements that move between threads.

use crate::server::Server;
use bunko_command::{ClientConnection, Halt, Peer, Request, RunOn};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_store::LogOptions;
use bunko_testkit::shell;
use std::net::{Ipv4Addr, SocketAddr};

fn run(
    server: &Server,
    connection: &mut ClientConnection,
    database: &str,
    command: &str,
    run_on: RunOn,
) -> Option<Halt> {
    let body = shell::parse_document(command).expect("a command");
    let request = Request::new(database, body.as_ref(), None);
    server.service.run(connection, request, run_on, &mut Vec::new()).err()
}

#[test]
fn a_command_that_begins_anew_has_met_no_failpoint() {
    let log = LogOptions { history_bytes_max: Some(128 << 20), ..LogOptions::default() };
    let server = Server::start_for_tests(&ENGINES[0], &EngineOptions::default(), log);
    let mut connection = ClientConnection::new(1, Peer::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 50_001))));
    let once = "{configureFailPoint: 'onPrimaryTransactionalWrite', mode: {times: 1}}";
    assert!(run(&server, &mut connection, "admin", once, RunOn::OwnThread).is_none());
    let insert = "{insert: 's', documents: [{_id: 1}], lsid: {id: UUID('00000000-0000-4000-8000-000000000001')}, \
                  txnNumber: NumberLong(1)}";
    // A busy machine may move any command to another thread; here the move is certain.
    let first = run(&server, &mut connection, "test", insert, RunOn::SharedThread);
    assert!(matches!(first, Some(Halt::TooLong)), "{first:?}");
    let again = run(&server, &mut connection, "test", insert, RunOn::OwnThread);
    assert!(matches!(again, Some(Halt::ClosesConnection)), "the reply is lost: {again:?}");
}

#[test]
fn a_point_for_commands_waits_for_a_thread_of_their_own() {
    let server = Server::start_for_tests(&ENGINES[0], &EngineOptions::default(), LogOptions::default());
    let mut connection = ClientConnection::new(1, Peer::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 50_001))));
    let once = "{configureFailPoint: 'failCommand', mode: {times: 1}, data: {failCommands: ['aggregate'], \
                closeConnection: true}}";
    assert!(run(&server, &mut connection, "admin", once, RunOn::OwnThread).is_none());
    let aggregate = "{aggregate: 's', pipeline: [{$out: 't'}], cursor: {}}";
    let first = run(&server, &mut connection, "test", aggregate, RunOn::SharedThread);
    assert!(matches!(first, Some(Halt::TooLong)), "{first:?}");
    let again = run(&server, &mut connection, "test", aggregate, RunOn::OwnThread);
    assert!(matches!(again, Some(Halt::ClosesConnection)), "{again:?}");
}
