//! The load engine with a minimal server: it reads frames and replies `{n: 1, ok: 1}`.

use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_client::frame::{self, FrameWriter, ReplyMode};
use bunko_client::load::{Arrival, Load, LoadError, LoadOptions, Next, Placement, Request, Then, Workload};
use bunko_client::{ClientError, CommandError, Connection, Reply, Uri};
use bunko_wire::{HEADER_BYTES, needed_bytes};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How the server treats its requests.
#[derive(Clone, Copy, PartialEq)]
enum Floor {
    /// Replies as soon as a request is read.
    Prompt,
    /// Replies byte by byte, several requests late and in reverse order.
    Awkward,
    /// Reads and never replies after the handshake.
    Mute,
    /// Closes after the handshake and one request.
    Leaves,
    /// Refuses every command except the handshake.
    Refuses,
}

fn floor(behaviour: Floor) -> Uri {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A client that disconnects ends its thread with an error.
            thread::spawn(move || serve(stream, behaviour));
        }
    });
    format!("mongodb://127.0.0.1:{port}/?connectTimeoutMS=2000").parse().expect("valid")
}

fn serve(mut stream: TcpStream, behaviour: Floor) -> std::io::Result<()> {
    let (mut waiting, mut first) = (Vec::new(), true);
    let ok = DocumentBuf::new().with("n", 1_i32).with("ok", 1.0);
    let refusal = DocumentBuf::new().with("ok", 0.0).with("errmsg", "not here").with("code", 13_i32);
    loop {
        let mut request = vec![0; HEADER_BYTES];
        stream.read_exact(&mut request)?;
        let length = needed_bytes(&request).expect("a sound length");
        request.resize(length, 0);
        stream.read_exact(&mut request[HEADER_BYTES..])?;
        if !frame::expects_reply(&request) {
            continue;
        }
        let refuses = !first && behaviour == Floor::Refuses;
        let mut reply = Vec::new();
        let body = if refuses { &refusal } else { &ok };
        FrameWriter::new(&mut reply, 1, ReplyMode::Expected, body.as_ref()).finish().expect("short");
        reply[8..12].copy_from_slice(&request[4..8]);
        match behaviour {
            _ if first => stream.write_all(&reply)?,
            Floor::Prompt | Floor::Refuses => stream.write_all(&reply)?,
            Floor::Mute => {}
            Floor::Leaves => return Ok(()),
            Floor::Awkward => {
                waiting.push(reply);
                if waiting.len() == 5 {
                    stream.set_nodelay(true)?;
                    for byte in waiting.drain(..).rev().flatten() {
                        stream.write_all(&[byte])?;
                    }
                }
            }
        }
        first = false;
    }
}

/// Sends `left` pings and counts the replies.
struct Pings {
    left: usize,
    mode: ReplyMode,
    pad_bytes: usize,
    replies: usize,
    acknowledged: i64,
    refused: usize,
    latency_max: Duration,
}

impl Pings {
    fn new(left: usize) -> Self {
        Self {
            left,
            mode: ReplyMode::Expected,
            pad_bytes: 10,
            replies: 0,
            acknowledged: 0,
            refused: 0,
            latency_max: Duration::ZERO,
        }
    }
}

impl Workload for Pings {
    fn next_request(&mut self, request_id: i32, due: Instant, out: &mut Vec<u8>) -> Next {
        let Some(left) = self.left.checked_sub(1) else { return Next::Finished };
        self.left = left;
        let pad = "x".repeat(self.pad_bytes);
        let body = DocumentBuf::new().with("ping", 1_i32).with("pad", &pad).with("$db", "admin");
        FrameWriter::new(out, request_id, self.mode, body.as_ref()).finish().expect("short");
        Next::Appended(Request { tag: 0, started_at: due })
    }

    fn on_reply(&mut self, request: Request, reply: Result<Reply<'_>, CommandError>, now: Instant) -> Then {
        self.replies += 1;
        self.latency_max = self.latency_max.max(now - request.started_at);
        match reply {
            Ok(reply) => self.acknowledged += reply.n,
            Err(_) => self.refused += 1,
        }
        Then::Free
    }
}

/// Operations of three pings, one after the other.
struct Triples {
    left: usize,
    done: usize,
}

impl Triples {
    fn append(request_id: i32, out: &mut Vec<u8>) {
        let body = DocumentBuf::new().with("ping", 1_i32).with("$db", "admin");
        FrameWriter::new(out, request_id, ReplyMode::Expected, body.as_ref()).finish().expect("short");
    }
}

impl Workload for Triples {
    fn next_request(&mut self, request_id: i32, due: Instant, out: &mut Vec<u8>) -> Next {
        let Some(left) = self.left.checked_sub(1) else { return Next::Finished };
        self.left = left;
        Self::append(request_id, out);
        Next::Appended(Request { tag: 1, started_at: due })
    }

    fn on_reply(&mut self, request: Request, reply: Result<Reply<'_>, CommandError>, _: Instant) -> Then {
        reply.expect("no refusal");
        if request.tag < 3 {
            return Then::Follow(request);
        }
        self.done += 1;
        Then::Free
    }

    fn follow(&mut self, step: Request, request_id: i32, out: &mut Vec<u8>) -> Request {
        Self::append(request_id, out);
        Request { tag: step.tag + 1, ..step }
    }
}

fn options(connections: usize, in_flight: usize, threads: usize) -> LoadOptions {
    let stall_timeout = Duration::from_secs(5);
    LoadOptions {
        connections,
        in_flight,
        threads,
        placement: Placement::Free,
        arrival: Arrival::Closed,
        duration: None,
        stop: Arc::default(),
        stall_timeout,
    }
}

fn run(floor_behaviour: Floor, options: LoadOptions, total: usize) -> Result<Vec<Pings>, LoadError> {
    let mut load = Load::connect(&floor(floor_behaviour), options)?;
    let threads = load.threads();
    let mut workloads: Vec<_> =
        (0..threads).map(|thread| Pings::new(total / threads + usize::from(thread < total % threads))).collect();
    load.run(&mut workloads)?;
    Ok(workloads)
}

fn counted(workloads: &[Pings]) -> (usize, i64) {
    (workloads.iter().map(|work| work.replies).sum(), workloads.iter().map(|work| work.acknowledged).sum())
}

#[test]
fn every_request_is_answered_and_counted() {
    for (connections, in_flight, threads) in [(1, 1, 1), (1, 100, 1), (10, 10, 1), (10, 10, 3), (2, 1, 8)] {
        let workloads = run(Floor::Prompt, options(connections, in_flight, threads), 2_003).expect("a whole run");
        assert_eq!(counted(&workloads), (2_003, 2_003), "{connections} x {in_flight} on {threads} threads");
    }
}

#[test]
fn torn_and_reordered_replies_find_their_requests() {
    let workloads = run(Floor::Awkward, options(1, 5, 1), 100).expect("a whole run");
    assert_eq!(counted(&workloads), (100, 100));
}

#[test]
fn requests_larger_than_the_socket_buffers_get_through() {
    let mut load = Load::connect(&floor(Floor::Prompt), options(2, 8, 1)).expect("connected");
    let mut workloads = [Pings { pad_bytes: 3_000_000, ..Pings::new(40) }];
    load.run(&mut workloads).expect("a whole run");
    assert_eq!(counted(&workloads), (40, 40));
}

#[test]
fn silent_requests_end_with_a_ping() {
    let mut load = Load::connect(&floor(Floor::Prompt), options(3, 1, 1)).expect("connected");
    let mut workloads = [Pings { mode: ReplyMode::Silent, ..Pings::new(20_000) }];
    load.run(&mut workloads).expect("a whole run");
    assert_eq!((workloads[0].left, workloads[0].replies), (0, 0));
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let shape = LoadOptions { arrival: Arrival::Constant(1_000.0), ..options(4, 2, 2) };
    let mut load = Load::connect(&floor(Floor::Prompt), shape).expect("connected");
    let mut workloads = [Pings::new(150), Pings::new(150)];
    let figures = load.run(&mut workloads).expect("a whole run");
    assert_eq!(counted(&workloads), (300, 300));
    // 300 requests at 1,000/s end at 299 ms; a loaded machine may be late, never early.
    assert!(figures.elapsed >= Duration::from_millis(295), "{figures:?}");
    assert!(figures.generator_cpu < figures.elapsed, "{figures:?}");
}

#[test]
fn operations_that_have_begun_come_to_their_end() {
    for (connections, in_flight) in [(1, 1), (4, 1), (2, 8)] {
        let mut load = Load::connect(&floor(Floor::Prompt), options(connections, in_flight, 1)).expect("connected");
        let mut workloads = [Triples { left: 101, done: 0 }];
        load.run(&mut workloads).expect("a whole run");
        assert_eq!(workloads[0].done, 101, "{connections} x {in_flight}");
    }
    let shape = LoadOptions { duration: Some(Duration::from_millis(100)), ..options(8, 4, 1) };
    let mut load = Load::connect(&floor(Floor::Prompt), shape).expect("connected");
    let mut workloads = [Triples { left: 1_000_000, done: 0 }];
    load.run(&mut workloads).expect("a whole run");
    assert_eq!(workloads[0].done + workloads[0].left, 1_000_000, "cut off by time");
}

#[test]
fn an_open_loops_arrivals_are_operations() {
    let shape = LoadOptions { arrival: Arrival::Constant(100.0), ..options(4, 1, 1) };
    let mut load = Load::connect(&floor(Floor::Prompt), shape).expect("connected");
    let mut workloads = [Triples { left: 40, done: 0 }];
    let figures = load.run(&mut workloads).expect("a whole run");
    assert_eq!(workloads[0].done, 40);
    // If each of the 120 requests were an arrival, they would take 1.2 s, and each operation at least 20 ms.
    assert!(figures.elapsed < Duration::from_millis(800), "{figures:?}");
}

#[test]
fn refusals_reach_the_workload() {
    let workloads = run(Floor::Refuses, options(1, 4, 1), 20).expect("a whole run");
    assert_eq!((workloads[0].replies, workloads[0].refused), (20, 20));
}

#[test]
fn a_server_that_leaves_or_falls_silent_ends_the_run() {
    let failure = run(Floor::Leaves, options(1, 1, 1), 10).err();
    assert!(matches!(failure, Some(LoadError::Client(ClientError::Disconnected { .. }))), "{failure:?}");
    let stalled = LoadOptions { stall_timeout: Duration::from_millis(100), ..options(2, 1, 1) };
    let failure = run(Floor::Mute, stalled, 10).err();
    assert!(matches!(failure, Some(LoadError::Stalled { outstanding: 2, .. })), "{failure:?}");
}

#[test]
fn a_blocking_connection_tells_refusals_from_replies() {
    let mut connection = Connection::connect(&floor(Floor::Refuses)).expect("connected");
    assert_eq!(connection.hello().get("ok").map(|ok| format!("{ok:?}")).as_deref(), Some("Double(1.0)"));
    let error = connection.run_command("admin", DocumentRef::EMPTY).expect_err("refused");
    assert_eq!(error.to_string(), "not here (code 13)");
    let uri: Uri = "mongodb://127.0.0.1:1/?connectTimeoutMS=100".parse().expect("valid");
    let error = Connection::connect(&uri).err().expect("nobody listens").to_string();
    assert!(error.starts_with("no MongoDB server reached at 127.0.0.1:1 within 0.1 s: "), "{error}");
}
