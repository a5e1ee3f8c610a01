//! Many clients create, fill, read and drop collections of one name concurrently. Each command must succeed, or fail
//! with an error that its kind allows.

use crate::server::Server;
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_command::{ClientConnection, Halt, Peer, Request, RunOn, Service};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_store::LogOptions;
use bunko_testkit::random::scramble;
use bunko_testkit::shell;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;

const CLIENTS: u64 = 6;
const TURNS: u64 = 400;

/// Commands, with their frequency and the codes that they may fail with.
///
/// 175 is for a statement that had begun to make changes when its collection was dropped.
const COMMANDS: &[(&str, u64, &[i64])] = &[
    ("{drop: 'c'}", 3, &[]),
    ("{create: 'c'}", 1, &[48]),
    ("{create: 'c', capped: true, size: 100000}", 1, &[48]),
    ("{insert: 'c', documents: [{a: 1}, {a: 2}, {a: 3}, {a: 4}]}", 8, &[]),
    ("{insert: 'c', documents: [{_id: 1, a: 1}, {_id: 2, a: 2}], ordered: false}", 2, &[11000]),
    ("{update: 'c', updates: [{q: {a: 2}, u: {$inc: {b: 1}}}]}", 4, &[]),
    ("{update: 'c', updates: [{q: {_id: 1}, u: {$inc: {b: 1}}, upsert: true}]}", 4, &[]),
    ("{update: 'c', updates: [{q: {a: {$gt: 1}}, u: {$inc: {b: 1}}, multi: true}]}", 2, &[175]),
    ("{delete: 'c', deletes: [{q: {a: 3}, limit: 1}]}", 4, &[]),
    ("{delete: 'c', deletes: [{q: {_id: 1}, limit: 1}]}", 4, &[]),
    ("{delete: 'c', deletes: [{q: {a: {$gt: 3}}, limit: 0}]}", 2, &[175]),
    ("{findAndModify: 'c', query: {a: 1}, update: {$inc: {b: 1}}}", 3, &[]),
    ("{findAndModify: 'c', query: {a: 4}, sort: {b: 1}, remove: true}", 3, &[]),
    ("{findAndModify: 'c', query: {_id: 2}, update: {$inc: {b: 1}}, upsert: true}", 2, &[]),
    ("{find: 'c', filter: {a: 1}, batchSize: 1000}", 3, &[]),
    ("{find: 'c', filter: {_id: 1}}", 2, &[]),
    ("{count: 'c'}", 2, &[]),
    ("{count: 'c', query: {a: 1}}", 2, &[]),
    ("{distinct: 'c', key: 'a'}", 2, &[]),
    ("{aggregate: 'c', pipeline: [{$group: {_id: '$a', n: {$sum: 1}}}], cursor: {}}", 2, &[]),
    (
        "{aggregate: 'c', pipeline: [{$lookup: {from: 'c', localField: 'a', foreignField: 'a', as: 'all'}}, {$limit: 3}], cursor: {}}",
        1,
        &[],
    ),
    ("{createIndexes: 'c', indexes: [{key: {a: 1}, name: 'a'}]}", 2, &[276]),
    ("{listIndexes: 'c'}", 1, &[26]),
    ("{collStats: 'c'}", 1, &[]),
    ("{dropIndexes: 'c', index: 'a'}", 1, &[26, 27]),
];

fn drawn(number: u64) -> &'static (&'static str, u64, &'static [i64]) {
    let all: u64 = COMMANDS.iter().map(|(_, often, _)| often).sum();
    let mut left = scramble(number) % all;
    COMMANDS
        .iter()
        .find(|(_, often, _)| match left.checked_sub(*often) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        })
        .expect("it is below the sum")
}

/// Runs a command as the server does, on whatever thread it needs.
fn run(service: &Service, connection: &mut ClientConnection, command: DocumentRef<'_>) -> DocumentBuf {
    let request = Request::new("test", command, None);
    let mut reply = Vec::new();
    let mut run_on = RunOn::SharedThread;
    loop {
        match service.run(connection, request, run_on, &mut reply) {
            Ok(_) => return DocumentBuf::parse(reply).expect("the reply is well formed"),
            Err(Halt::TooLong) => run_on = RunOn::OwnThread,
            Err(Halt::Awaits(_)) => std::thread::yield_now(),
            Err(Halt::ClosesConnection | Halt::Failed(_)) => panic!("{command:?}"),
        }
    }
}

/// The codes in a reply: its own, and those of its statements.
fn codes(reply: DocumentRef<'_>) -> Vec<i64> {
    let of = |document: DocumentRef<'_>| document.get("code").and_then(number::as_i64_exact);
    let statements = reply.get("writeErrors").and_then(ValueRef::as_array).into_iter().flat_map(ArrayRef::iter);
    of(reply).into_iter().chain(statements.filter_map(|error| of(error.as_document()?))).collect()
}

fn connected(client: u64) -> ClientConnection {
    let peer = Peer::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 40_000 + client as u16)));
    ClientConnection::new(client as i32 + 100, peer)
}

/// `$out` renames a new collection to the name of the old one, which it drops.
#[test]
fn a_list_names_each_collection_once_while_collections_replace_each_other() {
    let server = Server::start(&ENGINES[0], &EngineOptions::default());
    let service = &server.service;
    let run_text = |connection: &mut ClientConnection, command: &str| {
        run(service, connection, shell::parse_document(command).expect("a command").as_ref())
    };
    run_text(&mut connected(0), "{insert: 'from', documents: [{_id: 1}]}");
    std::thread::scope(|scope| {
        let replacing = scope.spawn(|| {
            let mut connection = connected(1);
            for _ in 0..TURNS {
                run_text(&mut connection, "{aggregate: 'from', pipeline: [{$out: 'c'}], cursor: {}}");
            }
        });
        let mut connection = connected(2);
        while !replacing.is_finished() {
            for list in ["{listCollections: 1}", "{aggregate: 1, pipeline: [{$listClusterCatalog: {}}], cursor: {}}"] {
                let reply = run_text(&mut connection, list);
                let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect(list);
                let listed = cursor.get("firstBatch").and_then(ValueRef::as_array).expect(list);
                let of = |element: ValueRef<'_>| {
                    let fields = element.as_document()?;
                    fields.get("name").or(fields.get("ns"))?.as_str().map(str::to_owned)
                };
                let mut names: Vec<_> = listed.iter().filter_map(of).collect();
                names.sort();
                assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
            }
        }
    });
}

#[test]
fn commands_on_a_name_that_comes_and_goes_are_refused_for_their_own_reasons_alone() {
    for engine in &ENGINES[..2] {
        let log = LogOptions { history_bytes_max: Some(128 << 20), ..LogOptions::default() };
        let server = Server::start_as_member(engine, &EngineOptions::default(), log);
        let service = &server.service;
        let wrong = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let wrong = &wrong;
                scope.spawn(move || {
                    let mut connection = connected(client);
                    for turn in 0..TURNS {
                        let (command, _, allowed) = drawn(client << 32 | turn);
                        let parsed = shell::parse_document(command).expect("a command");
                        let reply = run(service, &mut connection, parsed.as_ref());
                        let codes = codes(reply.as_ref());
                        if codes.iter().any(|code| !allowed.contains(code)) {
                            wrong
                                .lock()
                                .expect("no panic")
                                .push(format!("{command}: {}", shell::print(reply.as_ref().into())));
                        }
                    }
                });
            }
        });
        let wrong = wrong.into_inner().expect("no panic");
        assert!(
            wrong.is_empty(),
            "{}: {} of {}:\n{}",
            engine.name,
            wrong.len(),
            CLIENTS * TURNS,
            wrong[..wrong.len().min(8)].join("\n")
        );
    }
}
