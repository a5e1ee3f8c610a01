//! Concurrent calls of `setDefaultRWConcern` by several clients.

use crate::server::Server;
use bunko_bson::{DocumentBuf, ValueRef, number};
use bunko_command::{ClientConnection, Peer, Request, RunOn};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_store::LogOptions;
use bunko_testkit::shell;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Barrier;

const ROUNDS: usize = 200;

fn connection(id: i32) -> ClientConnection {
    ClientConnection::new(id, Peer::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 50_000 + id as u16))))
}

fn run(server: &Server, connection: &mut ClientConnection, command: &str) -> DocumentBuf {
    let body = shell::parse_document(command).expect("a command");
    let mut reply = Vec::new();
    let request = Request::new("admin", body.as_ref(), None);
    server.service.run(connection, request, RunOn::OwnThread, &mut reply).expect("an answer");
    let reply = DocumentBuf::parse(reply).expect("a reply");
    let ok = reply.as_ref().get("ok").and_then(number::as_i64_exact);
    assert_eq!(ok, Some(1), "{command}: {reply:?}");
    reply
}

/// The read level and the write timeout in a reply.
fn told(reply: &DocumentBuf) -> (String, i64) {
    let concern = |name| reply.as_ref().get(name).and_then(ValueRef::as_document).expect("a concern");
    let level = concern("defaultReadConcern").get("level").and_then(ValueRef::as_str).expect("a level").to_owned();
    (level, concern("defaultWriteConcern").get("wtimeout").and_then(number::as_i64_exact).expect("a timeout"))
}

#[test]
fn concurrent_changes_of_the_two_defaults_keep_both() {
    let log = LogOptions { history_bytes_max: Some(128 << 20), ..LogOptions::default() };
    let server = Server::start_as_member(&ENGINES[0], &EngineOptions::default(), log);
    let mut asks = connection(3);
    for round in 1..=ROUNDS {
        let level = if round % 2 == 0 { "local" } else { "majority" };
        let read = format!("{{setDefaultRWConcern: 1, defaultReadConcern: {{level: '{level}'}}}}");
        let write = format!("{{setDefaultRWConcern: 1, defaultWriteConcern: {{w: 1, wtimeout: {round}}}}}");
        let together = Barrier::new(2);
        std::thread::scope(|scope| {
            for (id, command) in [(1, &read), (2, &write)] {
                let (server, together) = (&server, &together);
                scope.spawn(move || {
                    let mut connection = connection(id);
                    together.wait();
                    run(server, &mut connection, command);
                });
            }
        });
        let expected = (level.to_owned(), round as i64);
        assert_eq!(told(&run(&server, &mut asks, "{getDefaultRWConcern: 1}")), expected, "round {round}");
    }
}
