//! Index builds of a real server: killed midway, stopped by clients, and resumed by the next start.

use crate::oracle::{connect, durable_engines, start};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_client::{ClientError, Connection};
use bunko_testkit::patience::{wait_for, wait_until};
use bunko_testkit::process::temporary_dbpath;
use bunko_testkit::shell;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const DOCUMENTS: i32 = 6_000;
const DOCUMENTS_PER_INSERT: i32 = 1000;
/// Delays between the start of a build and the kill. Any moment is a good one: a busy machine only chooses another.
const KILLED_AFTER: [Duration; 3] = [Duration::from_millis(15), Duration::from_millis(60), Duration::from_millis(140)];
/// Indexes of each kind.
const CREATE: &str = "{createIndexes: 'c', indexes: [{key: {k: 1}, name: 'k_1', unique: true}, \
                      {key: {tags: 1, k: 1}, name: 'tags_1_k_1'}, {key: {k: 'hashed'}, name: 'k_hashed'}, \
                      {key: {until: 1}, name: 'until_1', expireAfterSeconds: 2000000000}, \
                      {key: {said: 'text', g: 1}, name: 'said_text'}, {key: {at: '2dsphere'}, name: 'at_2dsphere'}, \
                      {key: {at: '2d'}, name: 'at_2d'}, {key: {'more.$**': 1}, name: 'more'}, \
                      {key: {g: 1, '$**': 1}, wildcardProjection: {more: 1}, name: 'g_1_more'}]}";
const INDEXES: i32 = 10;
/// Documents of the test in which most expire.
const EXPIRING: i32 = 12_000;
/// Minimum number of documents that expire in a round before the process is killed.
const EXPIRED_BY_ROUND: i64 = 700;
/// Indexes of the kinds for which a write derives many keys.
const CREATE_SOME: &str = "{createIndexes: 'c', indexes: [{key: {said: 'text', g: 1}, name: 'said_text'}, \
                           {key: {at: '2dsphere'}, name: 'at_2dsphere'}, {key: {'more.$**': 1}, name: 'more'}, \
                           {key: {g: 1, '$**': 1}, wildcardProjection: {more: 1}, name: 'g_1_more'}]}";
const DROP_SOME: &str = "{dropIndexes: 'c', index: ['said_text', 'at_2dsphere', 'more', 'g_1_more']}";
const LATER: &str = "ISODate('2100-01-01T00:00:00Z')";

fn run(connection: &mut Connection, command: &str) -> Result<DocumentBuf, ClientError> {
    connection.run_command("test", shell::parse_document(command).expect("shell syntax").as_ref())
}

fn fill(connection: &mut Connection) {
    fill_with(connection, DOCUMENTS);
}

fn fill_with(connection: &mut Connection, documents: i32) {
    for first in (0..documents).step_by(DOCUMENTS_PER_INSERT as usize) {
        let mut documents = String::new();
        for id in first..first + DOCUMENTS_PER_INSERT {
            let (next, group) = (id + 1, id % 7);
            write!(
                documents,
                "{{_id: {id}, k: {id}, tags: [{id}, {next}, {group}], g: {group}, said: 'the word {id} of {next}', \
                 until: ISODate('2026-01-01T00:00:00Z'), at: [{group}, {}], more: {{a: {id}, b: [{group}, {next}]}}}},",
                id % 80
            )
            .expect("a string");
        }
        run(connection, &format!("{{insert: 'c', documents: [{documents}]}}")).expect("inserted");
    }
}

/// Writes until the server is gone.
fn write(mut connection: Connection) {
    for id in (0..DOCUMENTS).cycle().step_by(37) {
        let update = format!("{{update: 'c', updates: [{{q: {{_id: {id}}}, u: {{$inc: {{k: {DOCUMENTS}}}}}}}]}}");
        let delete = format!("{{delete: 'c', deletes: [{{q: {{_id: {}}}, limit: 1}}]}}", id + 1);
        if run(&mut connection, &update).is_err() || run(&mut connection, &delete).is_err() {
            return;
        }
    }
}

/// Ends the server while one client builds indexes and another writes.
fn while_writing(address: SocketAddr, build: impl FnOnce(Connection) + Send + 'static, end: impl FnOnce()) {
    // Both are connected before the delay begins, because the kill may come early.
    let (building, writing) = (connect(address), connect(address));
    let builder = std::thread::spawn(move || build(building));
    let writer = std::thread::spawn(move || write(writing));
    end();
    builder.join().expect("no panic");
    writer.join().expect("no panic");
}

/// Waits for the builds, and compares the indexes with the documents.
fn check(connection: &mut Connection, what: &str) {
    run(connection, CREATE).unwrap_or_else(|error| panic!("{what}: {error}"));
    let validated = run(connection, "{validate: 'c', full: true}").expect("validated");
    assert!(matches!(validated.as_ref().get("valid"), Some(ValueRef::Boolean(true))), "{what}: {validated:?}");
    let counted = validated.as_ref().get("nIndexes");
    assert!(matches!(counted, Some(ValueRef::Int32(INDEXES))), "{what}: {validated:?}");
}

#[test]
fn builds_survive_kill_9_and_sigterm() {
    for engine in durable_engines() {
        let dbpath = temporary_dbpath();
        for (round, killed_after) in KILLED_AFTER.into_iter().enumerate() {
            let mut server = start(engine, dbpath.path()).expect("it starts");
            let address = server.address();
            let mut connection = connect(address);
            if round == 0 {
                fill(&mut connection);
            } else {
                check(&mut connection, &format!("{engine}, round {round}"));
                run(&mut connection, "{dropIndexes: 'c', index: '*'}").expect("dropped");
            }
            let is_built = Arc::new(AtomicBool::new(false));
            let built = Arc::clone(&is_built);
            let build = move |mut connection: Connection| {
                built.store(run(&mut connection, CREATE).is_ok(), Ordering::Release);
            };
            while_writing(address, build, || {
                if round == 1 {
                    shown(&mut connection);
                    server.stop();
                } else {
                    std::thread::sleep(killed_after);
                    server.kill();
                }
            });
            assert!(round != 1 || !is_built.load(Ordering::Acquire), "{engine}: SIGTERM waited for the build");
        }
        let server = start(engine, dbpath.path()).expect("it starts");
        check(&mut connect(server.address()), engine);
    }
}

#[test]
fn indexes_that_are_built_anew_survive_kill_9() {
    for engine in durable_engines() {
        let dbpath = temporary_dbpath();
        for (round, killed_after) in KILLED_AFTER.into_iter().enumerate() {
            let mut server = start(engine, dbpath.path()).expect("it starts");
            let address = server.address();
            let mut connection = connect(address);
            if round == 0 {
                fill(&mut connection);
            }
            check(&mut connection, &format!("{engine}, round {round}"));
            let rebuild = |mut connection: Connection| while run(&mut connection, "{reIndex: 'c'}").is_ok() {};
            while_writing(address, rebuild, || {
                std::thread::sleep(killed_after);
                server.kill();
            });
        }
        let server = start(engine, dbpath.path()).expect("it starts");
        let mut connection = connect(server.address());
        check(&mut connection, engine);
        run(&mut connection, "{reIndex: 'c'}").expect("built anew");
        check(&mut connection, engine);
    }
}

fn count(connection: &mut Connection, query: &str) -> i64 {
    let counted = run(connection, &format!("{{count: 'c', query: {query}}}")).expect("counted");
    match counted.as_ref().get("n") {
        Some(ValueRef::Int32(count)) => i64::from(count),
        other => panic!("{query}: {other:?}"),
    }
}

/// Inserts expired documents and others until the server is gone; returns how many of the others were acknowledged.
fn insert_until_gone(mut connection: Connection, first: i32) -> i64 {
    let mut acknowledged = 0;
    for id in first.. {
        let until = if id % 2 == 0 { LATER } else { "ISODate('2020-01-01T00:00:00Z')" };
        let insert = format!(
            "{{insert: 'c', documents: [{{_id: {id}, k: {id}, tags: [{id}], g: 0, said: 'late words of {id}', \
             until: {until}, at: [3, 4], more: {{a: {id}}}}}]}}"
        );
        match run(&mut connection, &insert) {
            Ok(_) => acknowledged += i64::from(id % 2 == 0),
            Err(_) => break,
        }
        // Inserts must be slower than the deletion of expired documents.
        std::thread::sleep(Duration::from_millis(2));
    }
    acknowledged
}

#[test]
fn expired_documents_stay_deleted_after_kill_9() {
    for engine in durable_engines() {
        let dbpath = temporary_dbpath();
        let expired = format!("{{until: {{$lt: {LATER}}}}}");
        let mut kept = 0;
        for round in 0..=KILLED_AFTER.len() {
            let what = format!("{engine}, round {round}");
            let mut server = start(engine, dbpath.path()).expect("it starts");
            let address = server.address();
            let mut connection = connect(address);
            if round == 0 {
                fill_with(&mut connection, EXPIRING);
                run(&mut connection, CREATE).expect("created");
                let later = format!(
                    "{{update: 'c', updates: [{{q: {{g: 0}}, u: {{$set: {{until: {LATER}}}}}, multi: true}}]}}"
                );
                run(&mut connection, &later).expect("updated");
                kept = count(&mut connection, &format!("{{until: {LATER}}}"));
                run(&mut connection, "{collMod: 'c', index: {name: 'until_1', expireAfterSeconds: 1}}")
                    .expect("changed");
            } else {
                run(&mut connection, CREATE_SOME).expect("created, or built on");
            }
            let is_whole = |connection: &mut Connection| {
                let validated = run(connection, "{validate: 'c', full: true}").expect("validated");
                let valid = validated.as_ref().get("valid");
                assert!(matches!(valid, Some(ValueRef::Boolean(true))), "{what}: {validated:?}");
                let indexes = validated.as_ref().get("nIndexes");
                assert!(matches!(indexes, Some(ValueRef::Int32(INDEXES))), "{what}: {validated:?}");
            };
            is_whole(&mut connection);
            let late = count(&mut connection, &format!("{{until: {LATER}}}"));
            // In each round one more insert may have been done but not acknowledged.
            assert!((kept..=kept + 1).contains(&late), "{what}: {late} documents of {kept} are left");
            kept = late;
            let often = shell::parse_document("{setParameter: 1, ttlMonitorSleepSecs: 1}").expect("shell syntax");
            connection.run_command("admin", often.as_ref()).expect("set");
            let before = count(&mut connection, &expired);
            if let Some(killed_after) = KILLED_AFTER.get(round) {
                assert!(before > 0, "{what}: nothing is left to expire");
                let (building, inserting) = (connect(address), connect(address));
                let first = EXPIRING * (2 + round as i32);
                let inserter = std::thread::spawn(move || insert_until_gone(inserting, first));
                wait_until(&format!("{what}: documents expire"), || {
                    count(&mut connection, &expired) <= before - EXPIRED_BY_ROUND
                });
                let builder = std::thread::spawn(move || {
                    let mut building = building;
                    while run(&mut building, DROP_SOME).is_ok() && run(&mut building, CREATE_SOME).is_ok() {}
                });
                std::thread::sleep(*killed_after);
                server.kill();
                builder.join().expect("no panic");
                kept += inserter.join().expect("no panic");
            } else {
                wait_until(&format!("{what}: all expires"), || count(&mut connection, &expired) == 0);
                is_whole(&mut connection);
                assert_eq!(count(&mut connection, "{}"), kept, "{what}");
            }
        }
    }
}

#[test]
fn a_unique_index_keeps_duplicates_out_while_it_is_built_anew() {
    let dbpath = temporary_dbpath();
    let server = start(durable_engines()[0], dbpath.path()).expect("it starts");
    let address = server.address();
    let mut connection = connect(address);
    fill(&mut connection);
    check(&mut connection, "before");
    let rebuilder = std::thread::spawn(move || {
        let mut connection = connect(address);
        for _ in 0..4 {
            run(&mut connection, "{reIndex: 'c'}").expect("built anew");
        }
    });
    let mut refused = 0;
    while !rebuilder.is_finished() || refused == 0 {
        let insert = format!("{{insert: 'c', documents: [{{k: {}}}]}}", refused % DOCUMENTS);
        let reply = run(&mut connection, &insert);
        let reply = reply.map_or_else(|error| error.to_string(), |reply| format!("{reply:?}"));
        assert!(reply.contains("11000"), "{reply}");
        refused += 1;
    }
    rebuilder.join().expect("no panic");
    check(&mut connection, "after");
}

#[test]
fn a_build_is_shown_and_can_be_stopped() {
    let dbpath = temporary_dbpath();
    let server = start(durable_engines()[0], dbpath.path()).expect("it starts");
    let address = server.address();
    let mut connection = connect(address);
    fill(&mut connection);
    let limited = CREATE.replace("{createIndexes: 'c'", "{createIndexes: 'c', maxTimeMS: 5");
    assert_eq!(code(run(&mut connection, &limited)), Some(50));
    let builder = std::thread::spawn(move || code(run(&mut connect(address), CREATE)));
    let (opid, _) = shown(&mut connection);
    kill(&mut connection, opid);
    assert_eq!(builder.join().expect("no panic"), Some(11601));
    check(&mut connection, "after builds that were stopped");
}

#[test]
fn a_build_that_goes_on_is_shown_and_can_be_stopped() {
    let dbpath = temporary_dbpath();
    let mut server = start(durable_engines()[0], dbpath.path()).expect("it starts");
    let address = server.address();
    let mut connection = connect(address);
    fill(&mut connection);
    let builder = std::thread::spawn(move || drop(run(&mut connect(address), CREATE)));
    shown(&mut connection);
    // The client was not told that the build has begun: until this write is durable, a kill may undo the build.
    run(&mut connection, "{insert: 'other', documents: [{}], writeConcern: {j: true}}").expect("inserted");
    server.kill();
    builder.join().expect("no panic");
    let server = start(durable_engines()[0], dbpath.path()).expect("it starts");
    let mut connection = connect(server.address());
    let (opid, operation) = shown(&mut connection);
    assert_eq!(operation.as_ref().get("ns").and_then(ValueRef::as_str), Some("test.c"), "{operation:?}");
    assert!(operation.as_ref().get("client").is_none(), "{operation:?}");
    kill(&mut connection, opid);
    wait_until("the indexes are gone", || {
        let validated = run(&mut connection, "{validate: 'c'}").expect("validated");
        matches!(validated.as_ref().get("nIndexes"), Some(ValueRef::Int32(1)))
    });
    check(&mut connection, "after a build that was stopped");
}

#[test]
fn a_build_that_waits_for_its_turn_is_shown_and_ends_as_any_other() {
    let dbpath = temporary_dbpath();
    let mut server = start(durable_engines()[0], dbpath.path()).expect("it starts");
    let address = server.address();
    let mut connection = connect(address);
    fill(&mut connection);
    let none = shell::parse_document("{setParameter: 1, maxNumActiveUserIndexBuilds: 0}").expect("shell syntax");
    connection.run_command("admin", none.as_ref()).expect("set");
    let limited = CREATE.replace("{createIndexes: 'c'", "{createIndexes: 'c', maxTimeMS: 50");
    assert_eq!(code(run(&mut connection, &limited)), Some(50));
    let begin = || std::thread::spawn(move || code(run(&mut connect(address), CREATE)));
    // Reads and writes go on. A build that takes an instant does not wait either.
    let killed = begin();
    let (opid, _) = waiting(&mut connection);
    run(&mut connection, "{insert: 'c', documents: [{_id: -1, k: -1, tags: [1, 2]}]}").expect("inserted");
    run(&mut connection, "{delete: 'c', deletes: [{q: {_id: -1}, limit: 1}]}").expect("deleted");
    run(&mut connection, "{createIndexes: 'new', indexes: [{key: {a: 1}, name: 'a'}]}").expect("nothing to wait for");
    kill(&mut connection, opid);
    assert_eq!(killed.join().expect("no panic"), Some(11601));
    let dropped = begin();
    waiting(&mut connection);
    run(&mut connection, "{dropIndexes: 'c', index: '*'}").expect("dropped");
    assert_eq!(dropped.join().expect("no panic"), Some(276));
    let left = begin();
    waiting(&mut connection);
    run(&mut connection, "{insert: 'other', documents: [{}], writeConcern: {j: true}}").expect("inserted");
    server.kill();
    left.join().expect("no panic");
    let server = start(durable_engines()[0], dbpath.path()).expect("it starts");
    check(&mut connect(server.address()), "after a start that goes on with a build that waited");
}

/// The build in the reply of `currentOp`, once it is there.
fn shown(connection: &mut Connection) -> (i32, DocumentBuf) {
    let (opid, operation, message) = shown_with(connection, "{currentOp: 1, progress: {$exists: true}}");
    assert!(message.starts_with("Index Build: scanning collection"), "{message}");
    (opid, operation)
}

/// The build that waits for its turn in the reply of `currentOp`, once it is there.
fn waiting(connection: &mut Connection) -> (i32, DocumentBuf) {
    let (opid, operation, message) = shown_with(connection, "{currentOp: 1, msg: /^Index Build: waiting/}");
    assert!(message.contains("maxNumActiveUserIndexBuilds"), "{message}");
    (opid, operation)
}

fn shown_with(connection: &mut Connection, command: &str) -> (i32, DocumentBuf, String) {
    let command = shell::parse_document(command).expect("shell syntax");
    wait_for(|| {
        let shown = connection.run_command("admin", command.as_ref()).expect("answered");
        let first = shown.as_ref().get("inprog").and_then(ValueRef::as_array).expect("an array").get(0);
        let operation = first.and_then(ValueRef::as_document).ok_or("no build is shown")?;
        let message = operation.get("msg").and_then(ValueRef::as_str).expect("a message").to_owned();
        let Some(ValueRef::Int32(opid)) = operation.get("opid") else { panic!("{operation:?}") };
        Ok((opid, operation.to_owned(), message))
    })
}

fn kill(connection: &mut Connection, opid: i32) {
    let kill = DocumentBuf::new().with("killOp", 1).with("op", opid);
    connection.run_command("admin", kill.as_ref()).expect("answered");
}

fn code(outcome: Result<DocumentBuf, ClientError>) -> Option<i32> {
    match outcome {
        Err(ClientError::Command(error)) => Some(error.code),
        _ => None,
    }
}
