//! The wire protocol as drivers use it, over real sockets: order of replies, requests without a reply, streams,
//! compression, old opcodes.

mod old_opcodes;

use crate::peer::{Peer, Running, allow_open_files, binary, code, command, first_batch, int32_at, message};
use bunko_bson::{DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::shell;
use bunko_wire::{Codec, Compressor, MAX_FRAME_BYTES, Message, MessageFlags};
use std::time::{Duration, Instant};

/// Milliseconds of a wait that no test sees the end of.
const FOR_EVER_MS: i64 = 600_000;

fn text(document: DocumentRef<'_>) -> String {
    shell::print(ValueRef::Document(document))
}

/// A value by its dotted path.
fn at<'a>(document: DocumentRef<'a>, path: &str) -> ValueRef<'a> {
    path.split('.').fold(ValueRef::Document(document), |value, name| {
        let inner = value.as_document().and_then(|document| document.get(name));
        inner.unwrap_or_else(|| panic!("no {name} of {path} in {document:?}"))
    })
}

/// A value by its dotted path, in shell syntax.
fn shown(document: DocumentRef<'_>, path: &str) -> String {
    shell::print(at(document, path))
}

fn int64(document: DocumentRef<'_>, path: &str) -> i64 {
    let ValueRef::Int64(number) = at(document, path) else { panic!("{path} is not an int64 in {document:?}") };
    number
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let running = Running::start();
    let mut peer = running.peer();
    let mut bytes = Vec::new();
    for request in 0..100 {
        let body = if request % 2 == 0 {
            format!("{{insert: 'pipelined', documents: [{{_id: {request}}}]}}")
        } else {
            format!("{{find: 'pipelined', filter: {{_id: {}}}}}", request - 1)
        };
        bytes.extend(message(1000 + request, MessageFlags::NONE, command("test", &body).as_ref()));
    }
    peer.send(&bytes);
    for request in 0..100 {
        let reply = peer.reply_to(1000 + request);
        if request % 2 == 0 {
            assert_eq!(text(reply.as_ref()), "{n: 1, ok: 1.0}");
        } else {
            // Each find sees the insert before it, acknowledged or not.
            assert_eq!(first_batch(&reply), [format!("{{_id: {}}}", request - 1)]);
        }
    }
    running.assert_serves();
}

#[test]
fn pipelined_inserts_share_writes_to_the_log() {
    let running = Running::start();
    let mut peer = running.peer();
    let groups = |peer: &mut Peer| {
        let status = peer.run("admin", "{serverStatus: 1}");
        int64(status.as_ref(), "bunko.log.writtenGroups")
    };
    let before = groups(&mut peer);
    let insert = |id| command("test", &format!("{{insert: 'grouped', documents: [{{_id: {id}}}]}}"));
    peer.send(&(0..100).flat_map(|id| message(id, MessageFlags::NONE, insert(id).as_ref())).collect::<Vec<_>>());
    for id in 0..100 {
        assert_eq!(text(peer.reply_to(id).as_ref()), "{n: 1, ok: 1.0}");
    }
    let written = groups(&mut peer) - before;
    assert!((1..=25).contains(&written), "100 pipelined inserts took {written} writes to the log");
    running.assert_serves();
}

#[test]
fn a_long_command_in_a_pipeline_keeps_its_place() {
    let running = Running::start();
    let mut peer = running.peer();
    let documents: Vec<String> = (0..3000).map(|id| format!("{{_id: {id}, n: {}}}", id % 7)).collect();
    peer.run("test", &format!("{{insert: 'scanned', documents: [{}]}}", documents.join(", ")));
    // Too slow for the thread of the connections: it runs elsewhere while the later commands wait their turn.
    let update = "{update: 'scanned', updates: [{q: {n: 3}, u: {$set: {hit: true}}, multi: true}]}";
    let bodies = ["{ping: 1}", update, "{count: 'scanned', query: {hit: true}}", "{ping: 1}"];
    let frames = bodies.iter().zip(1..).map(|(body, id)| {
        let body = command("test", body);
        message(id, MessageFlags::NONE, body.as_ref())
    });
    peer.send(&frames.collect::<Vec<_>>().concat());
    let replies: Vec<String> = (1..=4).map(|id| text(peer.reply_to(id).as_ref())).collect();
    let hits = (0..3000).filter(|id| id % 7 == 3).count();
    let updated = format!("{{n: {hits}, nModified: {hits}, ok: 1.0}}");
    assert_eq!(replies, ["{ok: 1.0}", &updated, &format!("{{n: {hits}, ok: 1.0}}"), "{ok: 1.0}"]);
    running.assert_serves();
}

#[test]
fn reads_end_when_their_client_goes_away() {
    let running = Running::start();
    let mut peer = running.peer();
    let documents: Vec<String> = (0..3000).map(|id| format!("{{_id: {id}}}")).collect();
    peer.run("test", &format!("{{insert: 'slow', documents: [{}]}}", documents.join(", ")));
    let finds = |peer: &mut Peer| text(peer.run("admin", "{currentOp: 1}").as_ref()).matches("slow").count();
    assert_eq!(finds(&mut peer), 0);
    let mut leaving = running.peer();
    // This takes minutes.
    let sum = "{$reduce: {input: {$range: [0, 50000]}, initialValue: 0, in: {$add: ['$$value', '$$this']}}}";
    let find = command("test", &format!("{{find: 'slow', filter: {{$expr: {{$lt: [{sum}, 0]}}}}}}"));
    leaving.send(&message(1, MessageFlags::NONE, find.as_ref()));
    wait_until("the find begins", || finds(&mut peer) > 0);
    drop(leaving);
    wait_until("the find ends", || finds(&mut peer) == 0);
    running.assert_serves();
}

#[test]
fn more_to_come_gets_no_reply_and_takes_effect() {
    let running = Running::start();
    let mut peer = running.peer();
    let silent = |id, body: &str| message(id, MessageFlags::MORE_TO_COME, command("test", body).as_ref());
    peer.send(&silent(5, "{insert: 'silent', documents: [{_id: 1}], writeConcern: {w: 0}}"));
    peer.assert_silent(Duration::from_millis(100));
    // Failed and malformed commands get no reply either.
    peer.send(&silent(6, "{insert: 'silent', documents: [{_id: 1}], writeConcern: {w: 0}}"));
    peer.send(&silent(7, "{nosuch: 1}"));
    let without_database = shell::parse_document("{ping: 1}").expect("shell syntax");
    peer.send(&message(8, MessageFlags::MORE_TO_COME, without_database.as_ref()));
    assert_eq!(first_batch(&peer.run("test", "{find: 'silent'}")), ["{_id: 1}"]);
    running.assert_serves();
}

/// `topologyVersion` of a fresh `hello`.
fn topology_version(peer: &mut Peer) -> Value {
    let hello = peer.run("admin", "{hello: 1}");
    at(hello.as_ref(), "topologyVersion").to_value()
}

fn heartbeat(topology_version: &Value, max_await_time_ms: i64) -> DocumentBuf {
    DocumentBuf::new()
        .with("hello", 1)
        .with("topologyVersion", topology_version.as_ref())
        .with("maxAwaitTimeMS", max_await_time_ms)
        .with("$db", "admin")
}

#[test]
fn an_awaited_hello_is_held_back_behind_what_came_before_it() {
    let running = Running::start();
    let mut peer = running.peer();
    let known = topology_version(&mut peer);
    // The insert's reply does not wait for the heartbeat's.
    let mut waiting = running.peer();
    let insert = command("test", "{insert: 'held', documents: [{_id: 1}]}");
    let insert = message(20, MessageFlags::NONE, insert.as_ref());
    let hello = message(21, MessageFlags::NONE, heartbeat(&known, FOR_EVER_MS).as_ref());
    waiting.send(&[insert, hello].concat());
    waiting.reply_to(20);
    // A reply may come late, but not early.
    let begun = Instant::now();
    let hello = message(21, MessageFlags::NONE, heartbeat(&known, 200).as_ref());
    let ping = message(22, MessageFlags::NONE, command("admin", "{ping: 1}").as_ref());
    peer.send(&[hello, ping].concat());
    let reply = peer.reply_to(21);
    assert!(begun.elapsed() >= Duration::from_millis(200), "answered after {:?}", begun.elapsed());
    assert_eq!(shown(reply.as_ref(), "isWritablePrimary"), "true");
    peer.reply_to(22);
    running.assert_serves();
}

#[test]
fn an_exhaust_hello_is_answered_again_and_again() {
    let running = Running::start();
    let mut codec = Codec::new();
    let current = topology_version(&mut running.peer());
    let elder = shell::parse_document("{processId: ObjectId('000000000000000000000001'), counter: NumberLong(0)}");
    let elder = Value::Document(elder.expect("shell syntax"));
    // A client with the current topology waits for its first reply; a client with an older one gets it at once.
    for (known, first_after_ms) in [(current, 60), (elder, 0)] {
        let request = message(30, MessageFlags::EXHAUST_ALLOWED, heartbeat(&known, 60).as_ref());
        let mut compressed = Vec::new();
        codec.compress(&request, Compressor::Snappy, &mut compressed).expect("compresses");
        for request in [request, compressed] {
            let mut peer = running.peer();
            let begun = Instant::now();
            peer.send(&request);
            let mut answered = 30;
            for count in 0..4 {
                let frame = peer.frame();
                let reply = Message::parse(&frame).expect("an OP_MSG, never compressed");
                // A reply may come late, but not early.
                assert!(begun.elapsed() >= Duration::from_millis(first_after_ms + 60 * count), "too early");
                assert_eq!(reply.flags, MessageFlags::MORE_TO_COME);
                assert_eq!(reply.header.response_to, answered, "each reply answers the one before it");
                assert_ne!(reply.header.request_id, answered);
                answered = reply.header.request_id;
                assert_eq!(shown(reply.body, "ok"), "1.0");
            }
        }
    }
    // Without the flag there is one reply.
    let known = topology_version(&mut running.peer());
    let mut peer = running.peer();
    peer.send(&message(31, MessageFlags::NONE, heartbeat(&known, 20).as_ref()));
    peer.reply_to(31);
    peer.assert_silent(Duration::from_millis(100));
    running.assert_serves();
}

#[test]
fn each_heartbeat_meets_the_failpoints_and_then_waits() {
    let dbpath = temporary_dbpath();
    let server = Server::start(&binary(), dbpath.path(), &["--setParameter", "enableTestCommands=1"]);
    let server = server.expect("the server starts");
    let mut other = Peer::connect(server.address());
    let known = topology_version(&mut other);
    let point = |mode: &str| {
        let data = "{failCommands: ['hello'], blockConnection: true, blockTimeMS: 100}";
        format!("{{configureFailPoint: 'failCommand', mode: {mode}, data: {data}}}")
    };
    for flags in [MessageFlags::NONE, MessageFlags::EXHAUST_ALLOWED] {
        other.run("admin", &point("{times: 2}"));
        let mut peer = Peer::connect(server.address());
        let begun = Instant::now();
        peer.send(&message(32, flags, heartbeat(&known, 100).as_ref()));
        peer.frame();
        // The failpoint's time and then the heartbeat's; a busy machine adds some.
        assert!(begun.elapsed() >= Duration::from_millis(200), "answered after {:?}", begun.elapsed());
        if flags == MessageFlags::EXHAUST_ALLOWED {
            peer.frame();
            assert!(begun.elapsed() >= Duration::from_millis(400), "answered after {:?}", begun.elapsed());
            peer.frame();
        }
    }
    // After a client disconnects while its heartbeat waits, no further heartbeat runs. The failpoint only counts here:
    // for one that blocks, a heartbeat may move to a thread of its own, and meet it again.
    let mut peer = Peer::connect(server.address());
    let counts = "{configureFailPoint: 'failCommand', mode: 'alwaysOn', data: {failCommands: ['hello'], \
                  blockConnection: false}}";
    other.run("admin", counts);
    peer.send(&message(32, MessageFlags::EXHAUST_ALLOWED, heartbeat(&known, FOR_EVER_MS).as_ref()));
    wait_until("it has met the failpoint", || int64(other.run("admin", counts).as_ref(), "count") > 0);
    drop(peer);
    let connections = |status: DocumentBuf| shown(status.as_ref(), "connections.current");
    wait_until("it is gone", || connections(other.run("admin", "{serverStatus: 1}")) == "1");
    let met = other.run("admin", "{configureFailPoint: 'failCommand', mode: 'off'}");
    assert_eq!(int64(met.as_ref(), "count"), 0);
    // `localTime` in the reply is the time after the wait.
    let time = |hello: DocumentRef<'_>| match at(hello, "localTime") {
        ValueRef::DateTime(milliseconds) => milliseconds,
        other => panic!("{other:?}"),
    };
    let before = time(other.run("admin", "{hello: 1}").as_ref());
    other.send(&message(33, MessageFlags::NONE, heartbeat(&known, 100).as_ref()));
    assert!(time(other.reply_to(33).as_ref()) >= before + 100);
}

#[test]
fn a_compressed_request_is_answered_in_kind_except_hello() {
    let running = Running::start();
    let mut codec = Codec::new();
    let mut peer = running.peer();
    let hello = peer.run("admin", "{hello: 1, compression: ['zstd', 'lz4', 'snappy', 'zlib']}");
    let agreed = at(hello.as_ref(), "compression").as_array().expect("an array").iter();
    let agreed: Vec<_> = agreed.filter_map(ValueRef::as_str).map(str::to_owned).collect();
    assert_eq!(agreed, ["zstd", "snappy", "zlib"], "the client's order, without what the server lacks");
    let pad = "compressible ".repeat(2000);
    for (compressor, id) in Compressor::ALL.into_iter().zip(0..) {
        let insert = command("test", &format!("{{insert: 'packed', documents: [{{_id: {id}, pad: '{pad}'}}]}}"));
        let find = command("test", &format!("{{find: 'packed', filter: {{_id: {id}}}}}"));
        for (body, words) in [(insert, "n: 1"), (find, &*pad)] {
            // The checksum inside a compressed frame covers the uncompressed frame.
            let plain = message(50, MessageFlags::CHECKSUM_PRESENT, body.as_ref());
            let mut compressed = Vec::new();
            codec.compress(&plain, compressor, &mut compressed).expect("compresses");
            peer.send(&compressed);
            let reply = peer.frame();
            assert_eq!(Codec::compressor_of(&reply), Some(compressor));
            assert!(reply.len() < 5000, "{} bytes are not compressed", reply.len());
            let mut inner = Vec::new();
            codec.decompress(&reply, MAX_FRAME_BYTES, &mut inner).expect("well formed");
            let inner = Message::parse(&inner).expect("an OP_MSG");
            assert_eq!(inner.header.response_to, 50);
            assert!(text(inner.body).contains(words), "{}", compressor.name());
        }
        // These commands may not be compressed: the lengths would reveal their contents.
        for body in ["{hello: 1}", "{isMaster: 1}"] {
            let plain = message(51, MessageFlags::NONE, command("admin", body).as_ref());
            let mut compressed = Vec::new();
            codec.compress(&plain, compressor, &mut compressed).expect("compresses");
            peer.send(&compressed);
            peer.reply_to(51);
        }
    }
    // An uncompressed request gets an uncompressed reply.
    assert_eq!(peer.text("admin", "{ping: 1}"), "{ok: 1.0}");
    running.assert_serves();
}

#[test]
fn requests_with_checksums_are_answered() {
    let running = Running::start();
    let mut peer = running.peer();
    for (id, body) in (60..).zip(["{insert: 'sums', documents: [{_id: 1}]}", "{find: 'sums'}", "{count: 'sums'}"]) {
        peer.send(&message(id, MessageFlags::CHECKSUM_PRESENT, command("test", body).as_ref()));
        let reply = peer.reply_to(id);
        assert_eq!(shown(reply.as_ref(), "ok"), "1.0", "{reply:?}");
    }
    running.assert_serves();
}

#[test]
fn a_slow_reader_of_a_large_reply_holds_up_no_client() {
    let running = Running::start();
    let mut writer = running.peer();
    let pad = "x".repeat(1_000_000);
    for id in 0..20 {
        writer.run("test", &format!("{{insert: 'large', documents: [{{_id: {id}, pad: '{pad}'}}]}}"));
    }
    let mut slow = running.peer();
    let find = command("test", "{find: 'large', batchSize: 1000}");
    slow.send(&message(70, MessageFlags::NONE, find.as_ref()));
    let mut received = slow.some_bytes(1000);
    let length = int32_at(&received, 0) as usize;
    assert!((15_000_000..=17_000_000).contains(&length), "a batch of {length} bytes");
    while received.len() < length {
        received.extend(slow.some_bytes(1 << 20));
        running.assert_serves();
    }
    let reply = Message::parse(&received).expect("whole");
    assert_eq!(reply.header.response_to, 70);
    assert_ne!(int64(reply.body, "cursor.id"), 0, "20 MB do not fit into one batch");
    let batch = at(reply.body, "cursor.firstBatch").as_array().expect("an array");
    assert_eq!(batch.iter().count(), 16);
    running.assert_serves();
}

#[test]
fn cursors_are_closed_by_kill_cursors() {
    let running = Running::start();
    let mut peer = running.peer();
    peer.run("test", "{insert: 'many', documents: [{_id: 1}, {_id: 2}, {_id: 3}, {_id: 4}]}");
    let reply = peer.run("test", "{find: 'many', batchSize: 2}");
    let id = int64(reply.as_ref(), "cursor.id");
    // Any connection may continue the cursor.
    let more = running.peer().run("test", &format!("{{getMore: NumberLong({id}), collection: 'many', batchSize: 1}}"));
    assert_eq!(int64(more.as_ref(), "cursor.id"), id);
    let killed = peer.text("test", &format!("{{killCursors: 'many', cursors: [NumberLong({id}), NumberLong(5)]}}"));
    let expected = format!(
        "{{cursorsKilled: [NumberLong({id})], cursorsNotFound: [NumberLong(5)], cursorsAlive: [], \
         cursorsUnknown: [], ok: 1.0}}"
    );
    assert_eq!(killed, expected);
    let gone = peer.run("test", &format!("{{getMore: NumberLong({id}), collection: 'many'}}"));
    assert_eq!(code(gone.as_ref()), 43);
    running.assert_serves();
}

#[test]
fn idle_connections_cost_little() {
    const CONNECTIONS: usize = 1000;
    const GROWTH_BYTES_MAX: u64 = 60 << 20;
    allow_open_files();
    let running = Running::start();
    let before = running.resident_bytes();
    let mut peers: Vec<Peer> = (0..CONNECTIONS).map(|_| running.peer()).collect();
    for peer in &mut peers {
        peer.run("admin", "{hello: 1, client: {driver: {name: 'idle', version: '1'}, os: {type: 'Linux'}}}");
    }
    let growth = running.resident_bytes().saturating_sub(before);
    assert!(growth < GROWTH_BYTES_MAX, "{CONNECTIONS} idle connections take {growth} bytes");
    println!("{CONNECTIONS} idle connections take {} KiB", growth / 1024);
    running.assert_serves();
    // The connections of other peers end when the server notices the disconnects.
    let current = |peer: &mut Peer| shown(peer.run("admin", "{serverStatus: 1}").as_ref(), "connections.current");
    wait_until("only the others are counted", || current(&mut peers[0]) == CONNECTIONS.to_string());
    drop(peers);
    running.assert_serves();
}
