//! The only member of a set steps down under load and elects itself again: refused writes leave nothing, retried writes
//! are done once, waiting `hello`s are told at once, cursors go on, and transactions are aborted.

use crate::peer::{Peer, binary};
use bunko_bson::{DocumentBuf, ValueRef, number};
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::{Server, temporary_dbpath};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WRITERS: u32 = 4;
const ROUNDS: i64 = 3;
/// Errors with which a member refuses a write that it was asked for, or that it was at, when it stepped down.
const REFUSALS: [i64; 2] = [10107, 11602];
/// How long the `hello` of a monitor waits; a wait of less than half of that was ended by news.
const AWAIT: Duration = Duration::from_mins(1);

fn whole(reply: &DocumentBuf, name: &str) -> i64 {
    reply.as_ref().get(name).and_then(number::as_i64_exact).unwrap_or_default()
}

fn has_label(reply: &DocumentBuf, label: &str) -> bool {
    let labels = reply.as_ref().get("errorLabels").and_then(ValueRef::as_array);
    labels.is_some_and(|labels| labels.iter().any(|found| found.as_str() == Some(label)))
}

fn is_primary(peer: &mut Peer) -> bool {
    matches!(peer.run("admin", "{hello: 1}").as_ref().get("isWritablePrimary"), Some(ValueRef::Boolean(true)))
}

/// Writes of a client, and inserts that were refused.
#[derive(Default)]
struct Written {
    increments: i64,
    inserted: BTreeSet<i64>,
    refused: BTreeSet<i64>,
}

/// Increments the client's counter by retryable writes, and inserts documents without retries.
fn write_until(address: SocketAddr, writer: u32, is_over: &AtomicBool, refusals: &AtomicU64) -> Written {
    let mut peer = Peer::connect(address);
    let mut written = Written::default();
    let session = format!("lsid: {{id: UUID('00000000-0000-4000-8000-{writer:012}')}}");
    for number in 1_i64.. {
        if is_over.load(Ordering::SeqCst) {
            break;
        }
        let update = format!(
            "{{update: 'counters', updates: [{{q: {{_id: {writer}}}, u: {{$inc: {{n: 1}}}}, upsert: true}}], {session}, \
             txnNumber: NumberLong({number})}}"
        );
        loop {
            let reply = peer.run("test", &update);
            if whole(&reply, "ok") == 1 {
                assert!(reply.as_ref().get("writeErrors").is_none(), "{reply:?}");
                break;
            }
            assert!(REFUSALS.contains(&whole(&reply, "code")), "{reply:?}");
            assert!(has_label(&reply, "RetryableWriteError"), "{reply:?}");
            refusals.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
        }
        written.increments += 1;
        let id = i64::from(writer) * 1_000_000 + number;
        let reply = peer.run("test", &format!("{{insert: 'rows', documents: [{{_id: NumberLong({id})}}]}}"));
        if whole(&reply, "ok") == 1 {
            written.inserted.insert(id);
        } else {
            assert!(REFUSALS.contains(&whole(&reply, "code")), "{reply:?}");
            written.refused.insert(id);
        }
    }
    written
}

/// Steps down and up again while clients write. `address` is the server's.
fn one_round(address: SocketAddr, round: i64, refusals: &AtomicU64) {
    let (mut admin, mut client, mut monitor) = (Peer::connect(address), Peer::connect(address), Peer::connect(address));
    let first = client.run("test", "{find: 'fixed', batchSize: 2}");
    let cursor = first.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
    let cursor = cursor.get("id").and_then(number::as_i64_exact).expect("more than one batch");
    let inside = format!(
        "lsid: {{id: UUID('00000000-0000-4000-8000-{:012}')}}, txnNumber: NumberLong(1), autocommit: false",
        1000 + round
    );
    let begun = client
        .run("test", &format!("{{insert: 'never', documents: [{{_id: {round}}}], {inside}, startTransaction: true}}"));
    assert_eq!(whole(&begun, "ok"), 1, "{begun:?}");
    let known = monitor.run("admin", "{hello: 1}");
    let version = known.as_ref().get("topologyVersion").and_then(ValueRef::as_document).expect("a version").to_owned();
    let told = std::thread::spawn(move || {
        let (began, body) = (Instant::now(), DocumentBuf::new().with("hello", 1).with("topologyVersion", &version));
        monitor.be_patient(2 * AWAIT);
        let reply =
            monitor.run_body(body.with("maxAwaitTimeMS", AWAIT.as_millis() as i64).with("$db", "admin").as_ref());
        assert!(began.elapsed() < AWAIT / 2, "nobody told it");
        reply
    });
    let before = refusals.load(Ordering::SeqCst);
    let down = admin.run("admin", "{replSetStepDown: 600, force: true}");
    assert_eq!(whole(&down, "ok"), 1, "{down:?}");
    assert!(!is_primary(&mut admin));
    let told = told.join().expect("no panic");
    assert!(matches!(told.as_ref().get("isWritablePrimary"), Some(ValueRef::Boolean(false))), "{told:?}");
    wait_until("writes are refused", || refusals.load(Ordering::SeqCst) >= before + u64::from(WRITERS));
    let more = client.run("test", &format!("{{getMore: NumberLong({cursor}), collection: 'fixed'}}"));
    assert_eq!(whole(&more, "ok"), 1, "{more:?}");
    let commit = format!("{{commitTransaction: 1, {inside}}}");
    let refused = client.run("admin", &commit);
    assert_eq!(whole(&refused, "code"), 10107, "{refused:?}");
    assert!(has_label(&refused, "RetryableWriteError"), "{refused:?}");
    let up = admin.run("admin", "{replSetFreeze: 0}");
    assert_eq!(whole(&up, "ok"), 1, "{up:?}");
    assert!(is_primary(&mut admin));
    let aborted = client.run("admin", &commit);
    assert_eq!(whole(&aborted, "code"), 251, "{aborted:?}");
    assert!(has_label(&aborted, "TransientTransactionError"), "{aborted:?}");
}

fn ids(peer: &mut Peer, collection: &str) -> BTreeSet<i64> {
    let reply = peer.run("test", &format!("{{distinct: '{collection}', key: '_id'}}"));
    let values = reply.as_ref().get("values").and_then(ValueRef::as_array).expect("values");
    values.iter().filter_map(number::as_i64_exact).collect()
}

#[test]
fn a_step_down_under_load_loses_nothing_and_does_nothing_twice() {
    let directory = temporary_dbpath();
    let settings = ["--replSet", "rs0", "--replSetHost", "127.0.0.1:1", "--sync-delay", "1", "--cache-size-gb", "0.25"];
    let start = || Server::start(&binary(), directory.path(), &settings).expect("it starts");
    let mut server = start();
    let address = server.address();
    let mut peer = Peer::connect(address);
    peer.run("test", "{insert: 'fixed', documents: [{_id: 1}, {_id: 2}, {_id: 3}, {_id: 4}]}");
    peer.run("test", "{create: 'never'}");
    let (is_over, refusals) = (AtomicBool::new(false), AtomicU64::new(0));
    let written: Vec<Written> = std::thread::scope(|scope| {
        let (is_over, refusals) = (&is_over, &refusals);
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write_until(address, writer, is_over, refusals))).collect();
        let rounds = scope.spawn(move || (0..ROUNDS).for_each(|round| one_round(address, round, refusals)));
        let outcome = rounds.join();
        is_over.store(true, Ordering::SeqCst);
        if outcome.is_err() {
            // Writers wait for a primary.
            Peer::connect(address).run("admin", "{replSetFreeze: 0}");
        }
        let written = writers.into_iter().map(|writer| writer.join().expect("no panic")).collect();
        outcome.expect("no panic");
        written
    });
    let check = |peer: &mut Peer| {
        for (writer, written) in written.iter().enumerate() {
            let found = peer
                .text("test", &format!("{{find: 'counters', filter: {{_id: {writer}, n: {}}}}}", written.increments));
            assert!(found.contains("_id"), "writer {writer} has incremented {} times: {found}", written.increments);
        }
        let (rows, inserted) = (ids(peer, "rows"), written.iter().flat_map(|written| &written.inserted));
        assert!(inserted.clone().all(|id| rows.contains(id)), "an acknowledged insert is lost");
        assert_eq!(rows.len(), inserted.count(), "a refused insert left its document");
        assert!(ids(peer, "never").is_empty(), "an aborted transaction left its document");
    };
    assert!(written.iter().any(|written| !written.refused.is_empty()) || refusals.load(Ordering::SeqCst) > 0);
    check(&mut peer);
    let term = |peer: &mut Peer| whole(&peer.run("admin", "{replSetGetStatus: 1}"), "term");
    assert_eq!(term(&mut peer), 1 + ROUNDS);
    server.kill();
    let mut server = start();
    let mut peer = Peer::connect(server.address());
    assert_eq!(term(&mut peer), 2 + ROUNDS, "the vote and the terms are kept");
    check(&mut peer);
    server.stop();
}

#[test]
fn a_member_elects_itself_when_its_time_is_over() {
    let directory = temporary_dbpath();
    let settings = ["--replSet", "rs0", "--replSetHost", "127.0.0.1:1"];
    let mut server = Server::start(&binary(), directory.path(), &settings).expect("it starts");
    let mut peer = Peer::connect(server.address());
    let down = peer.run("admin", "{replSetStepDown: 1, secondaryCatchUpPeriodSecs: 0, force: true}");
    assert_eq!(whole(&down, "ok"), 1, "{down:?}");
    wait_until("it elects itself", || is_primary(&mut peer));
    let inserted = peer.run("test", "{insert: 't', documents: [{}]}");
    assert_eq!(whole(&inserted, "n"), 1, "{inserted:?}");
    server.stop();
}
