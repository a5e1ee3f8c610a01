//! No command keeps other clients waiting, and none keeps the server from shutting down.

use crate::alone;
use crate::peer::{Peer, Running, code, command, errmsg, message};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_testkit::patience::wait_until;
use bunko_wire::MessageFlags;
use std::fmt::Write;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Longest wait of a bystander, on a machine with other load.
const BYSTANDER: Duration = Duration::from_secs(3);
/// A few milliseconds of work for each document.
const HARD: &str = "{$sum: {$map: {input: {$range: [0, 20000]}, in: {$add: ['$$this', 1]}}}}";
/// Few enough that the server does not expect a long plan.
const DOCUMENTS: usize = 1900;

fn hostile_commands() -> Vec<String> {
    let filter = format!("{{$expr: {{$lt: [{HARD}, 0]}}}}");
    vec![
        format!("{{find: 'many', filter: {filter}}}"),
        format!("{{find: 'many', projection: {{a: {HARD}}}}}"),
        format!("{{count: 'many', query: {filter}}}"),
        format!("{{distinct: 'many', key: 'a', query: {filter}}}"),
        format!("{{aggregate: 'many', cursor: {{}}, pipeline: [{{$match: {filter}}}]}}"),
        format!("{{aggregate: 'many', cursor: {{}}, pipeline: [{{$project: {{a: {HARD}}}}}]}}"),
        format!("{{aggregate: 'many', cursor: {{}}, pipeline: [{{$group: {{_id: {HARD}}}}}]}}"),
        format!("{{delete: 'many', deletes: [{{q: {filter}, limit: 1}}]}}"),
        format!("{{findAndModify: 'many', query: {filter}, remove: true}}"),
        format!("{{explain: {{find: 'many', filter: {filter}}}}}"),
        format!("{{explain: {{count: 'many', query: {filter}}}, verbosity: 'executionStats'}}"),
        format!("{{explain: {{delete: 'many', deletes: [{{q: {filter}, limit: 0}}]}}}}"),
        format!("{{update: 'many', updates: [{{q: {filter}, u: {{$set: {{b: 1}}}}, multi: true}}]}}"),
    ]
}

/// A server with a collection of small documents.
fn with_many() -> Running {
    let running = Running::start();
    let documents: Vec<_> = (0..DOCUMENTS).map(|id| format!("{{_id: {id}, a: 1}}")).collect();
    let insert = format!("{{insert: 'many', documents: [{}]}}", documents.join(", "));
    assert_eq!(running.peer().text("test", &insert), format!("{{n: {DOCUMENTS}, ok: 1.0}}"));
    running
}

/// Sends a command without waiting for its reply.
fn start(running: &Running, text: &str) -> Peer {
    let mut peer = running.peer();
    peer.send(&message(1, MessageFlags::NONE, command("test", text).as_ref()));
    peer
}

/// Pings for a while; returns the longest latency.
fn longest_ping(running: &Running, pings: usize) -> Duration {
    let mut bystander = running.peer();
    let mut longest = Duration::ZERO;
    for _ in 0..pings {
        let asked = Instant::now();
        assert_eq!(bystander.text("admin", "{ping: 1}"), "{ok: 1.0}");
        longest = longest.max(asked.elapsed());
        std::thread::sleep(Duration::from_millis(2));
    }
    longest
}

/// Running operations of the database `test`.
fn running_operations(running: &Running) -> Vec<i32> {
    let reply = running.peer().run("admin", "{currentOp: 1}");
    let operations = reply.as_ref().get("inprog").and_then(ValueRef::as_array).expect("operations");
    let of_test = |operation: &ValueRef<'_>| {
        let operation = operation.as_document()?;
        let is_own = operation.get("ns").and_then(ValueRef::as_str).is_some_and(|name| name.starts_with("test."));
        let ValueRef::Int32(opid) = operation.get("opid")? else { return None };
        is_own.then_some(opid)
    };
    operations.iter().filter_map(|operation| of_test(&operation)).collect()
}

fn kill_all(running: &Running) {
    for opid in running_operations(running) {
        running.peer().run("admin", &format!("{{killOp: 1, op: {opid}}}"));
    }
}

#[test]
fn small_hostile_commands_keep_no_client_waiting() {
    let _alone = alone();
    let running = with_many();
    for text in hostile_commands() {
        let mut hostile = [start(&running, &text), start(&running, &text)];
        let longest = longest_ping(&running, 30);
        assert!(longest < BYSTANDER, "{longest:?} beside {text}");
        wait_until("they run", || running_operations(&running).len() == hostile.len());
        kill_all(&running);
        for hostile in &mut hostile {
            let reply = hostile.reply_to(1);
            assert_eq!(code(reply.as_ref()), 11601, "{text}: {reply:?}");
        }
    }
    running.assert_serves();
}

/// The median and the longest time that a client waits for a ping, an insert and a find, one for each id.
fn waits_of(bystander: &mut Peer, ids: Range<i32>) -> (Duration, Duration) {
    let mut waits: Vec<_> = ids
        .map(|id| {
            let asked = Instant::now();
            assert_eq!(bystander.text("admin", "{ping: 1}"), "{ok: 1.0}");
            let insert = format!("{{insert: 'few', documents: [{{_id: {id}}}]}}");
            assert_eq!(bystander.text("test", &insert), "{n: 1, ok: 1.0}");
            let find = format!("{{find: 'few', filter: {{_id: {id}}}, singleBatch: true}}");
            let found =
                format!("{{cursor: {{firstBatch: [{{_id: {id}}}], id: NumberLong(0), ns: \"test.few\"}}, ok: 1.0}}");
            assert_eq!(bystander.text("test", &find), found);
            asked.elapsed()
        })
        .collect();
    waits.sort_unstable();
    (waits[waits.len() / 2], waits[waits.len() - 1])
}

#[test]
fn hundreds_of_long_commands_leave_the_processors_to_small_ones() {
    let _alone = alone();
    const HOSTILE: usize = 300;
    /// The limit of the median wait, which would be about a hundred milliseconds if all commands had equal priority.
    const MEDIAN: Duration = Duration::from_millis(80);
    let running = with_many();
    let hostile = format!("{{find: 'many', projection: {{a: {HARD}}}}}");
    let hostile: Vec<_> = (0..HOSTILE).map(|_| start(&running, &hostile)).collect();
    wait_until("they run", || running_operations(&running).len() > HOSTILE / 2);
    let mut bystander = running.peer();
    // Another program may take the processors for a while, so a slow round is repeated.
    let rounds = (0..3).map(|round| waits_of(&mut bystander, round * 60..(round + 1) * 60));
    let is_quick = |(median, longest): &(Duration, Duration)| *median < MEDIAN && *longest < BYSTANDER;
    let slow: Vec<_> = rounds.take_while(|waits| !is_quick(waits)).collect();
    assert!(slow.len() < 3, "median and longest wait of each round: {slow:?}");
    drop(hostile);
}

#[test]
fn commands_that_begin_again_are_counted_once() {
    let _alone = alone();
    let running = Running::start();
    let mut peer = running.peer();
    peer.run("test", "{insert: 'one', documents: [{_id: 1, a: 1}]}");
    // Long enough to be moved to a thread of its own.
    let sum = "{$sum: {$map: {input: {$range: [0, 100000]}, in: {$add: ['$$this', 1]}}}}";
    let filter = format!("{{a: 1, $expr: {{$gt: [{sum}, 0]}}}}");
    let count = |peer: &mut Peer, name: &str| {
        let status = peer.run("admin", "{serverStatus: 1}");
        let opcounters = status.as_ref().get("opcounters").and_then(ValueRef::as_document).expect("a section");
        bunko_bson::number::as_i64_exact(opcounters.get(name).expect(name)).expect("a number")
    };
    let before = (count(&mut peer, "update"), count(&mut peer, "delete"));
    let update = format!(
        "{{update: 'one', updates: [{{q: {filter}, u: {{$inc: {{n: 1}}}}}}, {{q: {filter}, u: {{$inc: {{n: 1}}}}}}]}}"
    );
    assert_eq!(peer.text("test", &update), "{n: 2, nModified: 2, ok: 1.0}");
    assert_eq!(
        peer.text("test", &format!("{{delete: 'one', deletes: [{{q: {filter}, limit: 1}}]}}")),
        "{n: 1, ok: 1.0}"
    );
    assert_eq!((count(&mut peer, "update") - before.0, count(&mut peer, "delete") - before.1), (2, 1));
}

#[test]
fn sigterm_ends_what_runs() {
    let _alone = alone();
    let mut running = with_many();
    let mut hostile: Vec<_> = hostile_commands().iter().map(|text| start(&running, text)).collect();
    wait_until("they run", || running_operations(&running).len() == hostile.len());
    // By themselves, they would run for longer than this waits.
    running.server.stop();
    for hostile in &mut hostile {
        assert_eq!(code(hostile.reply_to(1).as_ref()), 11600);
    }
}

#[test]
fn clients_that_wait_for_a_build_keep_no_other_waiting() {
    let _alone = alone();
    let running = Running::start();
    let mut peer = running.peer();
    let values = (0..10_000).fold(String::new(), |mut text, value| {
        let _ = write!(text, "{value}, ");
        text
    });
    for id in 0..40 {
        peer.run("test", &format!("{{insert: 'wide', documents: [{{_id: {id}, a: [{values}]}}]}}"));
    }
    let mut build = start(&running, "{createIndexes: 'wide', indexes: [{key: {a: 1}, name: 'a_1'}]}");
    wait_until("it runs", || running_operations(&running).len() == 1);
    let update = |id| format!("{{update: 'wide', updates: [{{q: {{_id: {id}}}, u: {{$set: {{b: {id}}}}}}}]}}");
    let mut waiting: Vec<_> = (0..8).map(|id| start(&running, &update(id))).collect();
    let longest = longest_ping(&running, 100);
    assert!(longest < BYSTANDER, "{longest:?}");
    for waiting in &mut waiting {
        assert_eq!(code(waiting.reply_to(1).as_ref()), 0);
    }
    assert_eq!(code(build.reply_to(1).as_ref()), 0);
}

/// The id of a cursor.
fn cursor(reply: &DocumentBuf) -> i64 {
    let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document);
    match cursor.and_then(|cursor| cursor.get("id")) {
        Some(ValueRef::Int64(id)) => id,
        other => panic!("{other:?} in {reply:?}"),
    }
}

#[test]
fn a_cursor_has_the_time_that_its_command_had() {
    let _alone = alone();
    let running = with_many();
    let mut peer = running.peer();
    let found = peer.run(
        "test",
        &format!("{{find: 'many', sort: {{_id: 1}}, projection: {{a: {HARD}}}, batchSize: 1, maxTimeMS: 700}}"),
    );
    let id = cursor(&found);
    assert_ne!(id, 0);
    std::thread::sleep(Duration::from_millis(800));
    let asked = Instant::now();
    let reply = peer.run("test", &format!("{{getMore: NumberLong('{id}'), collection: 'many'}}"));
    assert_eq!(code(reply.as_ref()), 50, "{reply:?}");
    // A busy machine only makes this longer.
    assert!(asked.elapsed() > Duration::from_millis(300), "the time between batches counted");
}

#[test]
fn killing_a_busy_cursor_ends_its_work() {
    let _alone = alone();
    let running = with_many();
    let mut peer = running.peer();
    let id = cursor(
        &peer.run("test", &format!("{{find: 'many', sort: {{_id: 1}}, projection: {{a: {HARD}}}, batchSize: 1}}")),
    );
    let mut busy = start(&running, &format!("{{getMore: NumberLong('{id}'), collection: 'many'}}"));
    wait_until("it runs", || running_operations(&running).len() == 1);
    assert!(longest_ping(&running, 20) < BYSTANDER);
    let kill = |peer: &mut Peer, collection: &str, field: &str| {
        let reply = peer.run("test", &format!("{{killCursors: '{collection}', cursors: [NumberLong('{id}')]}}"));
        let ids = reply.as_ref().get(field).and_then(ValueRef::as_array).expect(field);
        ids.count()
    };
    // The collection in the command does not matter.
    assert_eq!(kill(&mut peer, "other", "cursorsKilled"), 1);
    assert_eq!(code(busy.reply_to(1).as_ref()), 237);
}

#[test]
fn a_reply_that_is_no_document_any_more_is_refused() {
    let _alone = alone();
    let running = Running::start();
    let mut peer = running.peer();
    let text = "x".repeat(9 << 20);
    for id in 0..2 {
        let insert = command("test", "{insert: 'large'}");
        let document = DocumentBuf::new().with("_id", id).with("text", text.as_str());
        let documents: bunko_bson::ArrayBuf = std::iter::once(&document).collect();
        let reply = peer.run_body(insert.with("documents", &documents).as_ref());
        assert_eq!(code(reply.as_ref()), 0, "{reply:?}");
    }
    for pipeline in ["{$group: {_id: 1, all: {$push: '$text'}}}", "{$group: {_id: 1, all: {$push: '$$ROOT'}}}"] {
        let reply = peer.run("test", &format!("{{aggregate: 'large', cursor: {{}}, pipeline: [{pipeline}]}}"));
        assert_eq!(code(reply.as_ref()), 10334, "{}", errmsg(reply.as_ref()));
    }
    running.assert_serves();
}

#[test]
fn the_lock_of_fsync_waits_for_writers_only() {
    let _alone = alone();
    let running = with_many();
    let filter = format!("{{$expr: {{$lt: [{HARD}, 0]}}}}");
    for (text, is_writing) in [
        (format!("{{update: 'many', updates: [{{q: {filter}, u: {{$set: {{b: 1}}}}, multi: true}}]}}"), true),
        (format!("{{aggregate: 'many', cursor: {{}}, pipeline: [{{$match: {filter}}}, {{$out: 'out'}}]}}"), true),
        (format!("{{aggregate: 'many', cursor: {{}}, pipeline: [{{$match: {filter}}}]}}"), false),
        (format!("{{find: 'many', filter: {filter}}}"), false),
    ] {
        let mut slow = start(&running, &text);
        wait_until("it runs", || running_operations(&running).len() == 1);
        // The first attempt gives up after a millisecond, without a change, and the operation begins anew on a thread
        // of its own.
        std::thread::sleep(Duration::from_millis(300));
        let mut peer = running.peer();
        let locked = peer.run("admin", "{fsync: 1, lock: true, fsyncLockAcquisitionTimeoutMillis: 100}");
        if is_writing {
            assert_eq!(code(locked.as_ref()), 24, "{text}: {locked:?}");
        } else {
            assert!(peer.text("admin", "{fsyncUnlock: 1}").contains("ok: 1.0"), "{text}: {locked:?}");
        }
        assert_eq!(running_operations(&running).len(), 1, "{text} ended too early to tell");
        kill_all(&running);
        assert_eq!(code(slow.reply_to(1).as_ref()), 11601, "{text}");
    }
}
