//! The member of a set: a secondary makes no writes of its own, and reads of committed data stop at the commit point.

use crate::server::{NOW_MS, Server};
use bunko_bson::{DocumentBuf, ValueRef, number};
use bunko_command::delete_expired;
use bunko_engines::{ENGINES, EngineOptions, Entry};
use bunko_operation::MemoryLimits;
use bunko_store::{Clock, LogOptions, Store, StoreOptions, Survival};
use bunko_testkit::shell;
use std::sync::Arc;
use std::time::Duration;

const SESSION: &str = "lsid: {id: UUID('00112233-4455-6677-8899-aabbccddeeff')}, txnNumber: NumberLong(1)";

fn run(server: &mut Server, database: &str, command: &str) -> DocumentBuf {
    server.run(1, database, shell::parse_document(command).expect("shell syntax").as_ref())
}

fn succeed(server: &mut Server, database: &str, command: &str) -> DocumentBuf {
    let reply = run(server, database, command);
    assert_eq!(reply.as_ref().get("ok").and_then(number::as_f64), Some(1.0), "{command}: {reply:?}");
    assert!(reply.as_ref().get("writeErrors").is_none(), "{command}: {reply:?}");
    reply
}

/// The `_id`s in the batch of a reply, or the operation types of a change stream.
fn batch(reply: &DocumentBuf, field: &str) -> Vec<String> {
    let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
    let batch = cursor.get("firstBatch").or(cursor.get("nextBatch")).and_then(ValueRef::as_array).expect("a batch");
    let value =
        |document: ValueRef<'_>| shell::print(document.as_document().and_then(|found| found.get(field)).expect(field));
    batch.iter().map(value).collect()
}

/// A member with engine `entry`, and its store.
fn member(entry: &Entry, clock: &Clock) -> (Server, Arc<Store>) {
    let log = LogOptions { history_bytes_max: Some(1 << 30), ..LogOptions::default() };
    let store = StoreOptions { log, clock: clock.clone(), ..StoreOptions::at_rest() };
    let server = Server::start_over(store, entry, &EngineOptions::default(), MemoryLimits::none()).into_member();
    let store = Arc::clone(server.service.catalog.store());
    (server, store)
}

fn durable() -> impl Iterator<Item = &'static Entry> {
    ENGINES.iter().filter(|entry| (entry.kind)(&EngineOptions::default()).survival == Survival::Durable)
}

/// The work that the server does beside its commands.
fn look_after(server: &Server) {
    server.service.abort_expired_transactions();
    server.service.close_idle_cursors();
    server.service.close_cursors_that_keep_too_much();
    server.service.elect_when_due();
    delete_expired(&server.service, &server.service.own_operation(), &|_, _, failure| panic!("{failure}"));
}

#[test]
fn a_secondary_writes_nothing_uninvited() {
    let clock = Clock::standing(NOW_MS);
    let (mut server, store) = member(&ENGINES[0], &clock);
    succeed(&mut server, "test", "{createIndexes: 't', indexes: [{key: {at: 1}, name: 'at', expireAfterSeconds: 1}]}");
    let insert = format!("{{insert: 't', documents: [{{_id: 1, at: ISODate('2020-01-01T00:00:00Z')}}], {SESSION}}}");
    succeed(&mut server, "test", &insert);
    succeed(&mut server, "test", "{profile: 2}");
    let end = store.last_position();
    succeed(&mut server, "admin", "{replSetStepDown: 7200, force: true}");
    // The session's history would be forgotten after half an hour, and a minute more.
    for _ in 0..2 {
        clock.advance(Duration::from_mins(40));
        look_after(&server);
    }
    let found = succeed(&mut server, "test", "{find: 't', $readPreference: {mode: 'nearest'}}");
    assert_eq!(batch(&found, "_id"), ["1"], "a promise is broken");
    store.checkpoint().expect("checkpoint");
    assert_eq!(store.last_position(), end, "a promise is broken");
    clock.advance(Duration::from_hours(2));
    look_after(&server);
    assert_eq!(store.last_position().term, 2, "it has elected itself");
    look_after(&server);
    assert_eq!(batch(&succeed(&mut server, "test", "{find: 't'}"), "_id"), [""; 0], "the document has expired");
}

#[test]
fn errors_of_a_secondary_tell_its_topology() {
    let (mut server, _) = member(&ENGINES[0], &Clock::standing(NOW_MS));
    let version = |reply: &DocumentBuf| reply.as_ref().get("topologyVersion").map(shell::print);
    let before = version(&succeed(&mut server, "admin", "{hello: 1}"));
    succeed(&mut server, "admin", "{replSetStepDown: 60, force: true}");
    let refused = run(&mut server, "test", "{insert: 't', documents: [{_id: 1}]}");
    let after = version(&succeed(&mut server, "admin", "{hello: 1}"));
    assert!(after.is_some() && after != before, "{before:?}, {after:?}");
    assert_eq!(version(&refused), after);
}

#[test]
fn reads_of_what_is_committed_stop_at_the_commit_point() {
    for entry in durable() {
        let (mut server, store) = member(entry, &Clock::dated(|| NOW_MS));
        succeed(&mut server, "test", "{insert: 't', documents: [{_id: 1, n: 1}, {_id: 2, n: 1}, {_id: 3, n: 1}]}");
        let opened = succeed(&mut server, "test", "{aggregate: 't', pipeline: [{$changeStream: {}}], cursor: {}}");
        let cursor = opened.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
        let more = format!(
            "{{getMore: NumberLong({}), collection: 't', maxTimeMS: 1}}",
            cursor.get("id").and_then(number::as_i64_exact).expect("an id")
        );
        store.hold_committed();
        let held = shell::print(succeed(&mut server, "admin", "{hello: 1}").as_ref().get("lastWrite").expect("there"));
        succeed(&mut server, "test", "{update: 't', updates: [{q: {_id: 1}, u: {$set: {n: 2}}}]}");
        succeed(&mut server, "test", "{delete: 't', deletes: [{q: {_id: 2}, limit: 1}]}");
        succeed(&mut server, "test", "{insert: 't', documents: [{_id: 4, n: 1}]}");
        store.sync_history().expect("synced");
        let read = |server: &mut Server, level: &str| {
            let all = format!("{{find: 't', sort: {{_id: 1}}, readConcern: {{level: '{level}'}}}}");
            let one = format!("{{find: 't', filter: {{_id: 1}}, readConcern: {{level: '{level}'}}}}");
            (batch(&succeed(server, "test", &all), "_id"), batch(&succeed(server, "test", &one), "n"))
        };
        let (older, newer) = ((vec!["1", "2", "3"], vec!["1"]), (vec!["1", "3", "4"], vec!["2"]));
        let owned = |(all, one): &(Vec<&str>, Vec<&str>)| {
            let owned = |list: &[&str]| list.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
            (owned(all), owned(one))
        };
        assert_eq!(read(&mut server, "local"), owned(&newer), "{}", entry.name);
        assert_eq!(read(&mut server, "majority"), owned(&older), "a promise is broken: {}", entry.name);
        assert_eq!(read(&mut server, "linearizable"), owned(&older), "{}", entry.name);
        assert_eq!(batch(&run(&mut server, "test", &more), "operationType"), [""; 0], "{}", entry.name);
        let status = succeed(&mut server, "admin", "{replSetGetStatus: 1}");
        let optimes = status.as_ref().get("optimes").and_then(ValueRef::as_document).expect("there");
        let shown = |name: &str| shell::print(optimes.get(name).expect(name));
        assert!(held.contains(&shown("lastCommittedOpTime")), "{held}, {}", shown("lastCommittedOpTime"));
        assert_ne!(shown("lastCommittedOpTime"), shown("appliedOpTime"));
        store.set_committed(store.visible_end());
        assert_eq!(read(&mut server, "majority"), owned(&newer), "{}", entry.name);
        let told = batch(&run(&mut server, "test", &more), "operationType");
        assert_eq!(told, ["\"update\"", "\"delete\"", "\"insert\""], "{}", entry.name);
    }
}
