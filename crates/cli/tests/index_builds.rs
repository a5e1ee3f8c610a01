//! Index builds of a real server: killed in their midst, stopped by clients, and left to the next start.

mod oracle;

use bunko_bson::{DocumentBuf, ValueRef};
use bunko_client::{ClientError, Connection};
use bunko_testkit::process::temporary_dbpath;
use bunko_testkit::shell;
use oracle::{connect, durable_engines, start};
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const DOCUMENTS: i32 = 12_000;
const DOCUMENTS_PER_INSERT: i32 = 1000;
/// When the process is killed, after the build was asked for.
const KILLED_AFTER: [Duration; 3] = [Duration::from_millis(15), Duration::from_millis(60), Duration::from_millis(140)];
/// Indexes of each kind.
const CREATE: &str = "{createIndexes: 'c', indexes: [{key: {k: 1}, name: 'k_1', unique: true}, \
                      {key: {tags: 1, k: 1}, name: 'tags_1_k_1'}, {key: {k: 'hashed'}, name: 'k_hashed'}, \
                      {key: {until: 1}, name: 'until_1', expireAfterSeconds: 2000000000}, \
                      {key: {said: 'text', g: 1}, name: 'said_text'}, {key: {at: '2dsphere'}, name: 'at_2dsphere'}, \
                      {key: {at: '2d'}, name: 'at_2d'}, {key: {'more.$**': 1}, name: 'more'}, \
                      {key: {g: 1, '$**': 1}, wildcardProjection: {more: 1}, name: 'g_1_more'}]}";
const INDEXES: i32 = 10;

fn run(connection: &mut Connection, command: &str) -> Result<DocumentBuf, ClientError> {
    connection.run_command("test", shell::parse_document(command).expect("shell syntax").as_ref())
}

fn fill(connection: &mut Connection) {
    for first in (0..DOCUMENTS).step_by(DOCUMENTS_PER_INSERT as usize) {
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

/// Ends the server while one client builds and another writes.
fn while_writing(address: SocketAddr, build: impl FnOnce(Connection) + Send + 'static, end: impl FnOnce()) {
    // Both are connected before the time runs: the kill may come early.
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
            let build = |mut connection: Connection| drop(run(&mut connection, CREATE));
            while_writing(address, build, || {
                std::thread::sleep(killed_after);
                if round == 1 {
                    let began = Instant::now();
                    server.stop();
                    assert!(began.elapsed() < Duration::from_secs(5), "SIGTERM took {:?}", began.elapsed());
                } else {
                    server.kill();
                }
            });
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
    // Nobody was told that the build has begun: until this is durable, a kill may take it back.
    run(&mut connection, "{insert: 'other', documents: [{}], writeConcern: {j: true}}").expect("inserted");
    server.kill();
    builder.join().expect("no panic");
    let server = start(durable_engines()[0], dbpath.path()).expect("it starts");
    let mut connection = connect(server.address());
    let (opid, operation) = shown(&mut connection);
    assert_eq!(operation.as_ref().get("ns").and_then(ValueRef::as_str), Some("test.c"), "{operation:?}");
    assert!(operation.as_ref().get("client").is_none(), "{operation:?}");
    kill(&mut connection, opid);
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let validated = run(&mut connection, "{validate: 'c'}").expect("validated");
        if matches!(validated.as_ref().get("nIndexes"), Some(ValueRef::Int32(1))) {
            break;
        }
        assert!(Instant::now() < end, "the indexes stay: {validated:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    check(&mut connection, "after a build that was stopped");
}

/// The build that `currentOp` shows, once it does.
fn shown(connection: &mut Connection) -> (i32, DocumentBuf) {
    let end = Instant::now() + Duration::from_secs(5);
    let command = shell::parse_document("{currentOp: 1, progress: {$exists: true}}").expect("shell syntax");
    loop {
        assert!(Instant::now() < end, "no build is shown");
        let shown = connection.run_command("admin", command.as_ref()).expect("answered");
        let first = shown.as_ref().get("inprog").and_then(ValueRef::as_array).expect("an array").get(0);
        let Some(operation) = first.and_then(ValueRef::as_document) else { continue };
        let message = operation.get("msg").and_then(ValueRef::as_str).expect("a message");
        assert!(message.starts_with("Index Build: scanning collection"), "{message}");
        let Some(ValueRef::Int32(opid)) = operation.get("opid") else { panic!("{operation:?}") };
        return (opid, operation.to_owned());
    }
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
