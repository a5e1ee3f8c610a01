//! Consumers of change streams that are killed and resume at random, on a server that is killed and restarted, rebuild
//! all collections from events: byte for byte, through transactions, drops and renames.
//!
//! `tests/planted/run` plants an event before its commit and shows that this test finds it.

mod changer;
mod follower;

use crate::caller::{Address, is_ok};
use crate::oracle::durable_engines;
use crate::peer::{Peer, binary};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::{Server, temporary_dbpath};
use changer::{Changer, Changes, cursor_id, timestamp};
use follower::{Copy, Documents, Follower, Progress, Scope, Seen};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

const BROKEN: &str = "a promise is broken";
const CHANGERS: u64 = 3;
const ROUNDS: i64 = 4;
/// Commands of all changers in each round, after which the server is killed or stopped.
const COMMANDS: u64 = 500;

const SCOPES: [Scope; 4] = [
    Scope { database: "admin", collection: None, marked: "two.a" },
    Scope { database: "one", collection: None, marked: "one.a" },
    Scope { database: "two", collection: None, marked: "two.a" },
    Scope { database: "one", collection: Some("solo"), marked: "one.solo" },
];

fn start(engine: &str, dbpath: &Path) -> Server {
    let settings = [
        "--storage-engine",
        engine,
        "--sync-delay",
        "1",
        "--cache-size-gb",
        "0.25",
        "--replSet",
        "rs0",
        "--replSetHost",
        "127.0.0.1:1",
    ];
    Server::start(&binary(), dbpath, &settings).unwrap_or_else(|error| panic!("{BROKEN}: {error}"))
}

/// The server's documents in a scope.
fn dump(peer: &mut Peer, scope: &Scope) -> Copy {
    let mut copy = Copy::default();
    for database in ["one", "two"].into_iter().filter(|name| scope.database == "admin" || scope.database == *name) {
        for listed in batches(peer, database, "{listCollections: 1, nameOnly: true}") {
            let name = listed.as_ref().get("name").and_then(ValueRef::as_str).expect("a name");
            if !name.starts_with("system.") && scope.collection.is_none_or(|only| only == name) {
                let documents = batches(peer, database, &format!("{{find: '{name}'}}")).into_iter().map(|document| {
                    let id = document.as_ref().get("_id").expect("an _id");
                    (DocumentBuf::new().with("_id", id).into_bytes(), document)
                });
                copy.0.insert(format!("{database}.{name}"), documents.collect::<Documents>());
            }
        }
    }
    copy
}

/// All documents of a command that returns a cursor.
fn batches(peer: &mut Peer, database: &str, text: &str) -> Vec<DocumentBuf> {
    let mut documents = Vec::new();
    let mut reply = peer.run(database, text);
    loop {
        let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
        let batch = cursor.get("firstBatch").or(cursor.get("nextBatch")).and_then(ValueRef::as_array);
        let batch = batch.unwrap_or(ArrayRef::EMPTY);
        documents.extend(batch.iter().filter_map(ValueRef::as_document).map(DocumentRef::to_owned));
        let (id, name) = (cursor_id(cursor), cursor.get("ns").and_then(ValueRef::as_str).expect("a name").to_owned());
        if id == 0 {
            return documents;
        }
        let collection = name.split_once('.').expect("a database").1;
        reply = peer.run(database, &format!("{{getMore: NumberLong({id}), collection: '{collection}'}}"));
    }
}

/// Writes a mark after all changes, and waits until every follower has seen it; then each copy must equal the server's
/// contents.
fn compare(
    peer: &mut Peer,
    mark: i64,
    followers: &[(Scope, Arc<Progress>, std::thread::JoinHandle<()>)],
    context: &str,
) {
    // The last mark is the one that followers of all databases wait for.
    for name in ["one.solo", "one.a", "two.a"] {
        let (database, collection) = name.split_once('.').expect("a database");
        let update = format!("{{q: {{_id: 'mark'}}, u: {{_id: 'mark', mark: {mark}}}, upsert: true}}");
        let reply = peer.run(database, &format!("{{update: '{collection}', updates: [{update}]}}"));
        assert!(is_ok(&reply), "{reply:?}");
    }
    for (_, progress, _) in followers {
        progress.mark.store(mark, Ordering::Relaxed);
    }
    for (scope, progress, thread) in followers {
        let name = format!("{context}: {}.{}", scope.database, scope.collection.unwrap_or("*"));
        wait_until(&format!("{BROKEN}: {name}: the events reach mark {mark}"), || {
            assert!(!thread.is_finished(), "{BROKEN}: {name}: the follower has failed");
            progress.copy.lock().expect("not poisoned").0 == mark
        });
        let copy = &progress.copy.lock().expect("not poisoned").1;
        if let Some(difference) = copy.difference(&dump(peer, scope)) {
            panic!("{BROKEN}: {name}: {difference}");
        }
    }
}

fn rebuild(engine: &str, seed: u64) {
    let dbpath = temporary_dbpath();
    let mut server = start(engine, dbpath.path());
    let address: Address = Arc::new(Mutex::new(server.address()));
    let from = timestamp(&Peer::connect(server.address()).run("admin", "{ping: 1}"), "operationTime");
    let followers = SCOPES.map(|scope| {
        let (progress, thread) = Follower::start(scope, &address, from, seed + scope.marked.len() as u64);
        (scope, progress, thread)
    });
    let changes = Arc::new(Changes::default());
    let mut changers: Vec<_> = (0..CHANGERS).map(|number| Changer::new(number, &address, seed, &changes)).collect();
    for round in 1..=ROUNDS {
        changes.is_over.store(false, Ordering::Relaxed);
        let enough = changes.done.load(Ordering::Relaxed) + COMMANDS;
        let work = |mut changer: Changer| {
            std::thread::spawn(move || {
                changer.work();
                changer
            })
        };
        let working: Vec<_> = changers.drain(..).map(work).collect();
        wait_until("the changers do their work", || {
            assert!(working.iter().all(|thread| !thread.is_finished()), "a changer has failed");
            changes.done.load(Ordering::Relaxed) >= enough
        });
        // In every other round the server ends while changes are in progress, by a kill or in order.
        let ends_within = round % 2 == 1;
        if ends_within {
            if round % 4 == 1 { server.kill() } else { server.stop() }
        }
        changes.is_over.store(true, Ordering::Relaxed);
        changers.extend(working.into_iter().map(|thread| thread.join().expect("no changer fails")));
        if ends_within {
            server = start(engine, dbpath.path());
            *address.lock().expect("not poisoned") = server.address();
        }
        let context = format!("{engine}, seed {seed}, round {round}");
        compare(&mut Peer::connect(server.address()), round, &followers, &context);
    }
    let mut all = Seen::default();
    for (scope, progress, thread) in followers {
        progress.is_over.store(true, Ordering::Relaxed);
        thread.join().expect("no follower fails");
        let seen = *progress.seen.lock().expect("not poisoned");
        let deaths = progress.deaths.load(Ordering::Relaxed);
        println!("{engine}: {}.{}: {seen:?}, killed {deaths} times", scope.database, scope.collection.unwrap_or("*"));
        if scope.database == "admin" {
            all = seen;
            assert!(deaths > 1, "only {deaths} deaths");
        }
    }
    let (committed, aborted) = (changes.committed.load(Ordering::Relaxed), changes.aborted.load(Ordering::Relaxed));
    println!("{engine}, seed {seed}: {committed} transactions committed, {aborted} aborted");
    assert!(committed > 10 && aborted > 5, "too few transactions to judge by: {committed} and {aborted}");
    let Seen { events, of_transactions, updates, ambiguous, drops, renames, .. } = all;
    assert!(events > 100 && of_transactions > 10 && updates > 25, "too few events to judge by: {all:?}");
    assert!(ambiguous > 0 && drops > 0 && renames > 0, "not all has been tried: {all:?}");
}

/// `BUNKO_REBUILD_SEED` sets the seed of the changes.
#[test]
fn consumers_that_are_killed_rebuild_all_from_events() {
    let seed = std::env::var("BUNKO_REBUILD_SEED").map_or(21, |text| text.parse().expect("a number"));
    for engine in durable_engines() {
        rebuild(engine, seed);
    }
}
