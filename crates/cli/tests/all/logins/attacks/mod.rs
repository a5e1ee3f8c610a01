//! Attacks before a login: connections that have not logged in hold little memory, end soon, and do not keep other
//! clients from the server.
//!
//! `BUNKO_ATTACKERS` sets the number of connections for each of the five kinds of attack; the default is 100, because
//! more would take the processors from tests that run beside this one. `.ci/run` runs these tests alone with 10,000.

use super::rights::{Guarded, open};
use super::{binary, run};
use crate::peer::{Peer, allow_open_files, code, command, frame, header, message};
use bunko_bson::{DocumentBuf, ValueRef, base64, number};
use bunko_client::{Connection, Uri, percent_encoded};
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_wire::{Codec, Compressor, MessageFlags};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum memory of all connections together before a login, as docs/explanation/security.md states it.
const HELD_BYTES_MAX: u64 = 64 << 20;
/// Maximum memory of one connection beyond that: its task, its names, a login that has begun.
const CONNECTION_BYTES_MAX: u64 = 24 << 10;
/// Largest message before a login.
const MESSAGE_BYTES_MAX: i32 = 16 << 10;
const OP_MSG: i32 = 2013;
const OP_COMPRESSED: i32 = 2012;

fn attackers() -> usize {
    allow_open_files();
    std::env::var("BUNKO_ATTACKERS").map_or(100, |count| count.parse().expect("a number"))
}

fn resident_bytes(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a VmRSS line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

fn open_connections(connection: &mut Connection) -> usize {
    let status = run(connection, "admin", "{serverStatus: 1}");
    let connections = status.as_ref().get("connections").and_then(ValueRef::as_document).expect("connections");
    connections.get("current").and_then(number::as_i64_exact).expect("a number") as usize
}

/// The first message of a login that is never completed.
fn first_message(user: &str) -> Vec<u8> {
    let payload = base64::encode(format!("n,,n={user},r=0123456789").as_bytes());
    let body = format!("{{saslStart: 1, mechanism: 'SCRAM-SHA-256', payload: '{payload}'}}");
    message(1, MessageFlags::NONE, command("admin", &body).as_ref())
}

/// A long series of hellos. The attacker does not read the replies.
fn hellos() -> Vec<u8> {
    let hello = message(1, MessageFlags::NONE, command("admin", "{hello: 1}").as_ref());
    hello.iter().copied().cycle().take(hello.len() * 200).collect()
}

/// A frame that is small, and large once it is decompressed.
fn bomb(compressor: Compressor) -> Vec<u8> {
    let body = DocumentBuf::new().with("ping", "0".repeat(1 << 20).as_str()).with("$db", "admin");
    let mut bomb = Vec::new();
    let whole = message(1, MessageFlags::NONE, body.as_ref());
    Codec::new().compress(&whole, compressor, &mut bomb).expect("compressed");
    bomb
}

#[test]
fn attackers_hold_little_and_keep_no_client_out() {
    let attackers = attackers();
    let mut guarded = Guarded::start();
    let mut bystander = Bystander::start(guarded.user("bystander", "['readWriteAnyDatabase']"));
    let before = resident_bytes(&guarded.server);
    let mut held = Vec::new();
    let long = [header(MESSAGE_BYTES_MAX, OP_MSG), vec![0; MESSAGE_BYTES_MAX as usize - 17]].concat();
    for number in 0..attackers {
        // Attackers that send nothing, part of a header, a frame without its end, the start of a login, or hellos
        // without reading.
        for begun in [vec![], vec![16], long.clone(), first_message(&format!("u{number}")), hellos()] {
            let mut attacker = Peer::connect(guarded.server.address());
            attacker.send(&begun);
            held.push(attacker);
        }
    }
    wait_until("all are connected", || open_connections(&mut guarded.root) >= held.len());
    let grown = resident_bytes(&guarded.server).saturating_sub(before);
    let bound = HELD_BYTES_MAX + CONNECTION_BYTES_MAX * held.len() as u64;
    assert!(grown <= bound, "{} connections hold {grown} bytes, and may hold {bound}", held.len());
    // An administrator can still log in.
    run(&mut open(&guarded.server, "root:secret@", ""), "admin", "{listDatabases: 1}");
    let count = bystander.stop();
    println!("{} connections hold {grown} bytes; beside them, a bystander made {count} inserts", held.len());
    assert!(count > 0, "the bystander was not served");
}

/// A logged-in client that works on during the attack.
struct Bystander {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<usize>>,
}

impl Bystander {
    fn start(mut connection: Connection) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let hears = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut count = 0;
            while !hears.load(Ordering::Relaxed) {
                run(&mut connection, "test", &format!("{{insert: 'c', documents: [{{_id: {count}}}]}}"));
                count += 1;
            }
            count
        });
        Self { is_over, thread: Some(thread) }
    }

    /// The number of commands.
    fn stop(&mut self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it runs");
        thread.join().expect("the bystander was served")
    }
}

/// A server without a free file descriptor goes on with the connections that it has.
#[test]
fn a_server_without_a_file_left_goes_on() {
    let (dbpath, sockets) = (temporary_dbpath(), temporary_dbpath());
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -n 96 && exec \"$@\"", "sh"]).arg(binary());
    command.args(["serve", "--auth", "--port", "0", "--unix-socket-prefix"]).arg(sockets.path());
    command.arg("--dbpath").arg(dbpath.path());
    let server = Server::spawn(command).expect("started");
    run(&mut open(&server, "", ""), "admin", super::rights::ROOT);
    let mut root = open(&server, "root:secret@", "");
    let mut attackers: Vec<_> = (0..200).map(|_| Peer::connect(server.address())).collect();
    for attacker in &mut attackers {
        attacker.send(&[16]);
    }
    for number in 0..10 {
        run(&mut root, "test", &format!("{{insert: 'c{number}', documents: [{{_id: 1}}]}}"));
    }
    let socket = sockets.path().join(format!("mongodb-{}.sock", server.address().port()));
    let host = percent_encoded(socket.as_os_str().as_encoded_bytes());
    let uri = format!("mongodb://root:secret@{host}/");
    let mut administrator = Connection::connect(&uri.parse::<Uri>().expect("valid")).expect("let in");
    run(&mut administrator, "admin", "{listDatabases: 1}");
    drop(attackers);
    wait_until("a new connection is served", || is_served(&server));
}

#[test]
fn a_large_message_before_a_login_closes_the_connection_at_once() {
    let mut guarded = Guarded::start();
    let claimed = |op_code: i32, claimed: i32| {
        let content = [OP_MSG.to_le_bytes(), claimed.to_le_bytes()].concat();
        frame(op_code, &[&content[..], &[2], &[7; 64]].concat())
    };
    let attacks = [
        ("a length above the limit", header(MESSAGE_BYTES_MAX + 1, OP_MSG)),
        ("the largest length", header(48_000_000, OP_MSG)),
        ("a lying length", header(i32::MAX, OP_MSG)),
        ("a negative length", header(-5, OP_MSG)),
        ("a bomb of zlib", bomb(Compressor::Zlib)),
        ("a bomb of zstd", bomb(Compressor::Zstd)),
        ("a lying uncompressed size", claimed(OP_COMPRESSED, i32::MAX)),
        ("a negative uncompressed size", claimed(OP_COMPRESSED, -1)),
    ];
    for (what, bytes) in &attacks {
        assert!(bytes.len() <= MESSAGE_BYTES_MAX as usize, "{what} has {} bytes", bytes.len());
        let mut attacker = Peer::connect(guarded.server.address());
        attacker.send(bytes);
        attacker.assert_closed(what);
        // Sent in two parts, a message is read by other code. It must be refused there, too.
        let mut attacker = Peer::connect(guarded.server.address());
        attacker.send(&bytes[..3]);
        attacker.send(&bytes[3..]);
        attacker.assert_closed(what);
    }
    // A user who has logged in may send large messages.
    let mut user = guarded.user("user", "['readWriteAnyDatabase']");
    let large = "x".repeat(1 << 20);
    run(&mut user, "test", &format!("{{insert: 'c', documents: [{{_id: 1, large: '{large}'}}]}}"));
    guarded.server.logged("beforeLogin");
}

#[test]
fn clients_without_a_login_end_their_messages_in_time() {
    let dbpath = temporary_dbpath();
    let server = Server::start(&binary(), dbpath.path(), &["--auth", "--login-timeout-ms", "2000"]).expect("started");
    let mut attackers = Vec::new();
    for begun in [vec![], vec![16], header(100, OP_MSG), first_message("u")] {
        let mut attacker = Peer::connect(server.address());
        attacker.send(&begun);
        attackers.push((attacker, begun));
    }
    // Drivers monitor a server by connections that never log in.
    let mut monitor = Peer::connect(server.address());
    monitor.run("admin", "{hello: 1}");
    for (attacker, begun) in &mut attackers {
        if *begun == first_message("u") {
            attacker.reply_to(1);
        }
        attacker.assert_closed(&format!("{} bytes", begun.len()));
    }
    monitor.run("admin", "{hello: 1}");
    server.logged("took too long");
}

#[test]
fn too_many_connections_leave_room_for_an_administrator() {
    let dbpath = temporary_dbpath();
    let sockets = temporary_dbpath();
    let directory = sockets.path().to_str().expect("text");
    let arguments = ["--auth", "--max-connections", "4", "--unix-socket-prefix", directory];
    let dbpath = dbpath.path().to_str().expect("text").to_owned();
    let server = Server::run(&binary(), &[&["--dbpath", &dbpath, "--port", "0"][..], &arguments].concat());
    let server = server.expect("started");
    let mut served: Vec<_> = (0..4).map(|_| Peer::connect(server.address())).collect();
    for peer in &mut served {
        peer.run("admin", "{ping: 1}");
    }
    Peer::connect(server.address()).assert_closed("one too many");
    let socket = sockets.path().join(format!("mongodb-{}.sock", server.address().port()));
    let uri = format!("mongodb://{}/", percent_encoded(socket.as_os_str().as_encoded_bytes()));
    let mut administrator = Connection::connect(&uri.parse::<Uri>().expect("valid")).expect("let in");
    run(&mut administrator, "admin", "{ping: 1}");
    server.logged("there are too many open connections");
}

#[test]
fn one_address_has_so_many_connections() {
    let dbpath = temporary_dbpath();
    let options = ["--max-connections-per-address", "2"];
    let server = Server::start(&binary(), dbpath.path(), &options).expect("started");
    let mut served = [Peer::connect(server.address()), Peer::connect(server.address())];
    for peer in &mut served {
        peer.run("admin", "{ping: 1}");
    }
    Peer::connect(server.address()).assert_closed("one too many");
    let [left, mut stays] = served;
    drop(left);
    // The place of `left` is free once the server has noticed that it is gone.
    wait_until("a new connection is served", || is_served(&server));
    stays.run("admin", "{ping: 1}");
}

/// Whether a new connection gets a reply.
fn is_served(server: &Server) -> bool {
    let mut peer = Peer::connect(server.address());
    peer.send(&message(1, MessageFlags::NONE, command("admin", "{ping: 1}").as_ref()));
    peer.reply_or_end(1).is_some()
}

#[test]
fn connections_come_as_fast_as_they_may() {
    let dbpath = temporary_dbpath();
    let server = Server::start(&binary(), dbpath.path(), &[]).expect("started");
    let mut administrator = Peer::connect(server.address());
    let limit = "{setParameter: 1, ingressConnectionEstablishmentRatePerSec: 1, \
                 ingressConnectionEstablishmentBurstCapacitySecs: 1, \
                 ingressConnectionEstablishmentRateLimiterEnabled: true}";
    administrator.run("admin", limit);
    wait_until("a connection is refused", || !is_served(&server));
    let shown = administrator.text("admin", "{serverStatus: 1}");
    assert!(shown.contains("establishmentRateLimit: {rejected: NumberLong("), "{shown}");
    // Connections that may wait in the queue are served.
    let wider = "{setParameter: 1, ingressConnectionEstablishmentMaxQueueDepth: 100, \
                 ingressConnectionEstablishmentRatePerSec: 100}";
    administrator.run("admin", wider);
    assert!(is_served(&server) && is_served(&server));
    // Connections from an exempt address are never refused; once it is exempt no longer, some are refused again.
    let exempt = |ranges: &str| {
        format!(
            "{{setParameter: 1, ingressConnectionEstablishmentRateLimiterBypass: {{ranges: [{ranges}]}}, \
             ingressConnectionEstablishmentMaxQueueDepth: 0, ingressConnectionEstablishmentRatePerSec: 1}}"
        )
    };
    administrator.run("admin", &exempt("'10.0.0.0/8', '127.0.0.0/8'"));
    assert!((0..50).all(|_| is_served(&server)));
    let shown = administrator.text("admin", "{getParameter: 1, ingressConnectionEstablishmentRateLimiterBypass: 1}");
    assert!(shown.contains(r#"Bypass: {ranges: ["10.0.0.0/8", "127.0.0.0/8"]}"#), "{shown}");
    administrator.run("admin", &exempt("'10.0.0.0/8'"));
    assert!((0..50).any(|_| !is_served(&server)));
    for wrong in [
        "RateLimiterBypass: 1",
        "RateLimiterBypass: {ranges: 'x'}",
        "RateLimiterBypass: {ranges: ['127.0.0.1/33']}",
        "RateLimiterBypass: {ranges: [1]}",
        "RateLimiterBypass: {other: []}",
        "RatePerSec: 0",
        "RatePerSec: 'x'",
        "MaxQueueDepth: -1",
        "BurstCapacitySecs: 0",
    ] {
        let reply = administrator.run("admin", &format!("{{setParameter: 1, ingressConnectionEstablishment{wrong}}}"));
        assert_eq!(code(reply.as_ref()), 2, "{wrong}");
    }
}

#[test]
fn passwords_are_guessed_slowly() {
    let mut guarded = Guarded::start();
    run(&mut guarded.root, "admin", "{setParameter: 1, authFailedDelayMs: 50}");
    let mut guesser = Peer::connect(guarded.server.address());
    let began = Instant::now();
    for guess in 0..4 {
        let reply = guesser.run("admin", "{saslStart: 1, mechanism: 'SCRAM-SHA-256', payload: 'bm90IGl0'}");
        assert_eq!(code(reply.as_ref()), 18);
        // Each guess waits for the delay that was set; it may take longer.
        assert!(began.elapsed() >= Duration::from_millis(50) * (guess + 1));
    }
    run(&mut open(&guarded.server, "root:secret@", ""), "admin", "{ping: 1}");
}

/// Neither the reply nor its latency tells an unknown user from a wrong password.
#[test]
fn a_user_who_is_not_there_takes_as_long_as_a_wrong_password() {
    const ATTEMPTS: usize = 200;
    let mut guarded = Guarded::start();
    drop(guarded.user("there", "[]"));
    let mut guesser = Peer::connect(guarded.server.address());
    let mut took = [Vec::new(), Vec::new()];
    for _ in 0..ATTEMPTS {
        for (times, user) in took.iter_mut().zip(["there", "gone"]) {
            let began = Instant::now();
            let first = base64::encode(format!("n,,n={user},r=0123456789").as_bytes());
            let start = format!("{{saslStart: 1, mechanism: 'SCRAM-SHA-256', payload: '{first}'}}");
            let challenge = guesser.run("admin", &start);
            let payload = challenge.as_ref().get("payload").and_then(ValueRef::as_str).expect("a payload");
            let challenge = String::from_utf8(base64::decode(payload).expect("base64")).expect("text");
            let nonce = challenge.split(',').next().expect("a nonce");
            let last = base64::encode(format!("c=biws,{nonce},p={}", base64::encode(&[7; 32])).as_bytes());
            let proof = format!("{{saslContinue: 1, conversationId: 1, payload: '{last}'}}");
            assert_eq!(code(guesser.run("admin", &proof).as_ref()), 18);
            times.push(began.elapsed());
        }
    }
    let [there, gone] = took.map(|mut times| {
        times.sort_unstable();
        times[ATTEMPTS / 2]
    });
    println!("a wrong password takes {there:?}, a user who is not there {gone:?}");
    // The median of many, as other tests share the processors. Hashing a password once more would take a hundred times
    // as long.
    assert!(there < gone * 3 && gone < there * 3, "{there:?} {gone:?}");
}
