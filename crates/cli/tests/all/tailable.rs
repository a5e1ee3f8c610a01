//! Cursors that follow a capped collection: a waiting cursor holds no thread, and is woken by inserts.

use crate::peer::{Peer, Running, code, command, message};
use bunko_bson::ValueRef;
use bunko_testkit::patience::wait_until;
use bunko_wire::MessageFlags;
use std::fs;
use std::time::{Duration, Instant};

/// Far more cursors than the server has threads.
const WAITING: usize = 1_000;
/// Maximum number of threads of a server: for its cores, for background work, and spare threads that it may start while
/// all are held.
const THREADS_MAX: usize = 100;
/// Wait of cursors that are expected to be woken, in milliseconds.
const LONG_MS: u64 = 600_000;

fn with_capped() -> Running {
    let running = Running::start();
    let mut peer = running.peer();
    assert_eq!(peer.text("test", "{create: 'log', capped: true, size: 1000000, max: 100}"), "{ok: 1.0}");
    assert_eq!(peer.text("test", "{insert: 'log', documents: [{_id: 0}]}"), "{n: 1, ok: 1.0}");
    running
}

/// Opens a cursor at the end of the collection.
fn follow(peer: &mut Peer) -> i64 {
    let reply = peer.run("test", "{find: 'log', tailable: true, awaitData: true}");
    let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
    match cursor.get("id") {
        Some(ValueRef::Int64(id)) if id != 0 => id,
        other => panic!("a cursor that stays open, and not {other:?}"),
    }
}

/// Sends a getMore without waiting for the reply.
fn ask(peer: &mut Peer, cursor: i64, wait_ms: u64) {
    let text = format!("{{getMore: NumberLong('{cursor}'), collection: 'log', maxTimeMS: {wait_ms}}}");
    peer.send(&message(1, MessageFlags::NONE, command("test", &text).as_ref()));
}

/// A connection that waits for documents, and its cursor.
fn waiting(running: &Running) -> (Peer, i64) {
    let mut peer = running.peer();
    let cursor = follow(&mut peer);
    ask(&mut peer, cursor, LONG_MS);
    (peer, cursor)
}

/// Ids of the operations that `currentOp` lists as getMore.
fn get_mores(running: &Running) -> Vec<i32> {
    let reply = running.peer().run("admin", "{currentOp: 1}");
    let operations = reply.as_ref().get("inprog").and_then(ValueRef::as_array).expect("operations");
    let of_cursors = |operation: ValueRef<'_>| {
        let operation = operation.as_document()?;
        let is_one = operation.get("op").and_then(ValueRef::as_str) == Some("getmore");
        let ValueRef::Int32(opid) = operation.get("opid")? else { return None };
        is_one.then_some(opid)
    };
    operations.iter().filter_map(of_cursors).collect()
}

fn threads(running: &Running) -> usize {
    fs::read_dir(format!("/proc/{}/task", running.server.pid())).expect("the process").count()
}

#[test]
fn a_thousand_waiting_cursors_hold_no_thread_and_are_all_woken() {
    let running = with_capped();
    let mut peers: Vec<_> = (0..WAITING).map(|_| waiting(&running).0).collect();
    wait_until("all wait", || get_mores(&running).len() == WAITING);
    let threads = threads(&running);
    assert!(threads < THREADS_MAX, "{threads} threads");
    assert_eq!(running.peer().text("test", "{insert: 'log', documents: [{_id: 1}]}"), "{n: 1, ok: 1.0}");
    for peer in &mut peers {
        let reply = peer.reply_to(1);
        let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a batch");
        assert_eq!(cursor.get("nextBatch").and_then(ValueRef::as_array).map(|batch| batch.iter().count()), Some(1));
    }
    wait_until("no operation is left", || get_mores(&running).is_empty());
}

#[test]
fn a_wait_ends_with_its_time_and_the_cursor_goes_on() {
    let running = with_capped();
    let mut peer = running.peer();
    let cursor = follow(&mut peer);
    let began = Instant::now();
    ask(&mut peer, cursor, 300);
    assert_eq!(
        bunko_testkit::shell::print(ValueRef::Document(peer.reply_to(1).as_ref())),
        format!("{{cursor: {{nextBatch: [], id: NumberLong({cursor}), ns: \"test.log\"}}, ok: 1.0}}")
    );
    // A busy machine makes the reply late, but never early.
    assert!(began.elapsed() >= Duration::from_millis(300));
    // A later command on the connection is answered in its turn.
    ask(&mut peer, cursor, 100);
    peer.send(&message(2, MessageFlags::NONE, command("admin", "{ping: 1}").as_ref()));
    assert_eq!(code(peer.reply_to(1).as_ref()), 0);
    assert_eq!(code(peer.reply_to(2).as_ref()), 0);
}

#[test]
fn whatever_kills_a_wait_is_heard_at_once() {
    let running = with_capped();
    let admin = |text: &str| running.peer().run("admin", text);
    let answer = |peer: &mut Peer| code(peer.reply_to(1).as_ref());

    let (mut peer, cursor) = waiting(&running);
    wait_until("it waits", || get_mores(&running).len() == 1);
    let mut other = running.peer();
    ask(&mut other, cursor, 0);
    assert_eq!(answer(&mut other), 12051, "CursorInUse");
    admin(&format!("{{killOp: 1, op: {}}}", get_mores(&running)[0]));
    assert_eq!(answer(&mut peer), 11601, "Interrupted");

    wait_until("the operation is gone", || get_mores(&running).is_empty());
    let (mut peer, cursor) = waiting(&running);
    wait_until("it waits", || get_mores(&running).len() == 1);
    running.peer().run("test", &format!("{{killCursors: 'log', cursors: [NumberLong('{cursor}')]}}"));
    assert_eq!(answer(&mut peer), 237, "CursorKilled");

    wait_until("the operation is gone", || get_mores(&running).is_empty());
    let (mut renamed, _) = waiting(&running);
    wait_until("it waits", || get_mores(&running).len() == 1);
    admin("{renameCollection: 'test.log', to: 'test.other'}");
    assert_eq!(answer(&mut renamed), 175, "QueryPlanKilled");
    admin("{renameCollection: 'test.other', to: 'test.log'}");

    wait_until("the operation is gone", || get_mores(&running).is_empty());
    let (mut dropped, _) = waiting(&running);
    wait_until("it waits", || get_mores(&running).len() == 1);
    running.peer().run("test", "{drop: 'log'}");
    assert_eq!(answer(&mut dropped), 175, "QueryPlanKilled");
}

#[test]
fn a_client_that_goes_away_leaves_nothing() {
    let running = with_capped();
    let open = || {
        let status = running.peer().run("admin", "{serverStatus: 1}");
        let metrics = status.as_ref().get("metrics").and_then(ValueRef::as_document).expect("metrics");
        let cursors = metrics.get("cursor").and_then(ValueRef::as_document).expect("cursors");
        let open = cursors.get("open").and_then(ValueRef::as_document).expect("open ones");
        open.get("total").and_then(bunko_bson::number::as_i64_exact)
    };
    let (peer, _) = waiting(&running);
    wait_until("it waits", || get_mores(&running).len() == 1);
    assert_eq!(open(), Some(1));
    drop(peer);
    wait_until("its operation ends, and its cursor", || get_mores(&running).is_empty() && open() == Some(0));
}

#[test]
fn a_server_that_stops_does_not_wait_for_waiting_cursors() {
    let mut running = with_capped();
    let (mut peer, _) = waiting(&running);
    wait_until("it waits", || get_mores(&running).len() == 1);
    // A server that waited for the cursor would need longer than this allows.
    running.server.stop();
    let answer = peer.reply_or_end(1).map(|reply| code(reply.as_ref()));
    assert!(matches!(answer, None | Some(11600)), "{answer:?}");
}
