//! Measures how soon change streams return inserted documents, and what they cost the writer: many streams on one
//! collection, or none, and one writer at a given rate.
//!
//! ```text
//! bunko serve --replSet rs0 --port 27017
//! cargo run --release -p bunko-bench --example streams -- --port 27017 --streams 100 --rate 20000
//! ```
//! One thread reads all streams, another writes; with a rate of 0 as fast as replies arrive. The latency is the time
//! from before the insert of a document is sent to the end of the batch with its event. It is shown for a part of all
//! events, and for the first event of each batch, which has waited longest. The program also shows the writer's reply
//! times and, if the server is on this machine, its processor time for each document.
#![forbid(unsafe_code)]

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_host::{ProcessReading, listener};
use bunko_wire::{HEADER_BYTES, MAX_FRAME_BYTES, Message, MessageFlags, needed_bytes, split_frame, write_message};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DATABASE: &str = "streams";
const COLLECTION: &str = "watched";
const SCRATCH_BYTES: usize = 1 << 20;
/// The field with the time, as encoded in an event.
const SENT: &[u8] = b"\x12sent\0";

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Options {
    port: u16,
    streams: usize,
    /// Documents a second; 0 for as many as possible.
    rate: u64,
    /// Documents in one insert.
    at_once: u64,
    seconds: u64,
    /// Length of the warm-up, which is part of `seconds` and is not measured.
    warming_seconds: u64,
}

fn parse_options() -> Outcome<Options> {
    let mut options =
        Options { port: 27_017, streams: 100, rate: 20_000, at_once: 20, seconds: 10, warming_seconds: 2 };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} has no value"))?;
        match name.as_str() {
            "--port" => options.port = value.parse()?,
            "--streams" => options.streams = value.parse()?,
            "--rate" => options.rate = value.parse()?,
            "--at-once" => options.at_once = value.parse()?,
            "--seconds" => options.seconds = value.parse()?,
            "--warming-seconds" => options.warming_seconds = value.parse()?,
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    Ok(options)
}

fn connect(port: u16) -> io::Result<TcpStream> {
    let socket = TcpStream::connect(("127.0.0.1", port))?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

fn request(body: DocumentBuf) -> Outcome<Vec<u8>> {
    let body = body.with("$db", DATABASE);
    let mut frame = Vec::new();
    write_message(&mut frame, 1, 0, MessageFlags::NONE, |out| out.extend_from_slice(body.as_ref().as_bytes()))?;
    Ok(frame)
}

/// Runs a command, which must succeed, and returns its reply.
fn run(socket: &mut TcpStream, body: DocumentBuf) -> Outcome<DocumentBuf> {
    socket.write_all(&request(body)?)?;
    let mut frame = vec![0; HEADER_BYTES];
    socket.read_exact(&mut frame)?;
    frame.resize(needed_bytes(&frame).ok_or("a reply without a length")?, 0);
    socket.read_exact(&mut frame[HEADER_BYTES..])?;
    let reply = Message::parse(&frame)?.body.to_owned();
    if is_ok(reply.as_ref()) { Ok(reply) } else { Err(format!("{reply:?}").into()) }
}

fn is_ok(reply: DocumentRef<'_>) -> bool {
    matches!(reply.get("ok"), Some(ValueRef::Double(1.0))) && reply.get("writeErrors").is_none()
}

fn insert(documents: &ArrayBuf) -> DocumentBuf {
    let concern = DocumentBuf::new().with("w", 1);
    DocumentBuf::new().with("insert", COLLECTION).with("documents", documents).with("writeConcern", &concern)
}

/// The writer's results after the warm-up.
struct Written {
    documents: u64,
    seconds: f64,
    replies_ns: Vec<i64>,
    /// The server's processor time.
    processor: Option<Duration>,
}

/// Inserts documents at the rate until `is_over`.
fn write(options: &Options, begun: Instant, is_over: &AtomicBool) -> Outcome<Written> {
    let mut socket = connect(options.port)?;
    let text = "x".repeat(100);
    let (mut done, mut replies_ns, mut warm) = (0, Vec::new(), None);
    let server = listener(options.port);
    let reading = || server.and_then(ProcessReading::of);
    while !is_over.load(Ordering::Relaxed) {
        if options.rate > 0 {
            let due = Duration::from_secs_f64(done as f64 / options.rate as f64);
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
        }
        if warm.is_none() && begun.elapsed().as_secs() >= options.warming_seconds {
            warm = Some((done, begun.elapsed(), reading()));
        }
        let sent = begun.elapsed().as_nanos() as i64;
        let document = |n: u64| DocumentBuf::new().with("n", n as i64).with("sent", sent).with("text", text.as_str());
        let documents: Vec<_> = (done..done + options.at_once).map(document).collect();
        let documents: ArrayBuf = documents.iter().collect();
        run(&mut socket, insert(&documents))?;
        done += options.at_once;
        if warm.is_some() {
            replies_ns.push(begun.elapsed().as_nanos() as i64 - sent);
        }
    }
    let (before, since, processor) = warm.ok_or("it was over before it was warm")?;
    let processor = processor.zip(reading()).map(|(before, after)| after.since(&before).cpu);
    replies_ns.sort_unstable();
    Ok(Written {
        documents: done - before,
        seconds: begun.elapsed().saturating_sub(since).as_secs_f64(),
        replies_ns,
        processor,
    })
}

/// A change stream.
struct Stream {
    socket: TcpStream,
    /// Received part of the next reply.
    partial: Vec<u8>,
    more: Vec<u8>,
}

impl Stream {
    fn open(port: u16) -> Outcome<Self> {
        let mut socket = connect(port)?;
        let stage = DocumentBuf::new().with("$changeStream", &DocumentBuf::new());
        let pipeline: ArrayBuf = [&stage].into_iter().collect();
        let command = DocumentBuf::new().with("aggregate", COLLECTION).with("pipeline", &pipeline);
        let reply = run(&mut socket, command.with("cursor", &DocumentBuf::new()))?;
        let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).and_then(|cursor| cursor.get("id"));
        let Some(ValueRef::Int64(id)) = cursor else { return Err("no cursor".into()) };
        let more = DocumentBuf::new().with("getMore", id).with("collection", COLLECTION).with("maxTimeMS", 1000);
        let mut stream = Self { socket, partial: Vec::new(), more: request(more)? };
        stream.socket.write_all(&stream.more)?;
        stream.socket.set_nonblocking(true)?;
        Ok(stream)
    }

    /// Reads from the socket, and asks for more once a whole batch has arrived.
    fn take(&mut self, scratch: &mut [u8], seen: &mut Seen, begun: Instant) -> Outcome<()> {
        let received = match self.socket.read(scratch) {
            Ok(0) => return Err("the server closed the connection".into()),
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let now = begun.elapsed();
        seen.bytes += received as u64;
        let is_whole = self.partial.is_empty() && split_frame(&scratch[..received], MAX_FRAME_BYTES)?.is_some();
        if !is_whole {
            self.partial.extend_from_slice(&scratch[..received]);
            if split_frame(&self.partial, MAX_FRAME_BYTES)?.is_none() {
                return Ok(());
            }
        }
        let frame = if is_whole { &scratch[..received] } else { &self.partial[..] };
        let (mut rest, mut is_first) = (frame, true);
        while let Some(place) = rest.windows(SENT.len()).position(|bytes| bytes == SENT) {
            rest = &rest[place + SENT.len()..];
            let Some(sent) = rest.first_chunk().copied().map(i64::from_le_bytes) else { break };
            seen.note(now, sent, is_first);
            is_first = false;
            // Examining every event would take a processor of its own.
            if !seen.batches.is_multiple_of(BATCHES_SKIPPED) {
                break;
            }
        }
        if is_first && !is_ok(Message::parse(frame)?.body) {
            return Err("a stream failed".into());
        }
        seen.batches += 1;
        self.partial.clear();
        self.socket.write_all(&self.more)?;
        Ok(())
    }
}

/// Results of all streams.
#[derive(Default)]
struct Seen {
    batches: u64,
    bytes: u64,
    warm: Duration,
    /// Latencies of the first event of each batch.
    first_ns: Vec<i64>,
    /// Latencies of all events, in a part of the batches.
    all_ns: Vec<i64>,
}

/// All events are examined in every batch whose number is a multiple of this one, else only the first event.
const BATCHES_SKIPPED: u64 = 16;

impl Seen {
    fn note(&mut self, now: Duration, sent: i64, is_first: bool) {
        if now < self.warm {
            return;
        }
        let waited = now.as_nanos() as i64 - sent;
        if is_first {
            self.first_ns.push(waited);
        }
        if self.batches.is_multiple_of(BATCHES_SKIPPED) {
            self.all_ns.push(waited);
        }
    }
}

fn read(options: &Options, streams: &mut [Stream], begun: Instant) -> Outcome<Seen> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, stream) in streams.iter().enumerate() {
        epoll::add(&epoll, &stream.socket, EventData::new_u64(number as u64), EventFlags::IN)?;
    }
    let (mut scratch, mut events) = (vec![0; SCRATCH_BYTES], Vec::with_capacity(256));
    let (warm, end) = (Duration::from_secs(options.warming_seconds), Duration::from_secs(options.seconds));
    let mut seen = Seen { warm, ..Seen::default() };
    while begun.elapsed() < end {
        let timeout = rustix::time::Timespec { tv_sec: 1, tv_nsec: 0 };
        epoll::wait(&epoll, spare_capacity(&mut events), Some(&timeout))?;
        for event in events.drain(..) {
            streams[event.data.u64() as usize].take(&mut scratch, &mut seen, begun)?;
        }
    }
    seen.first_ns.sort_unstable();
    seen.all_ns.sort_unstable();
    Ok(seen)
}

/// The quantile `part` of sorted times, in milliseconds.
fn at(sorted_ns: &[i64], part: f64) -> f64 {
    let place = (sorted_ns.len() as f64 * part) as usize;
    sorted_ns.get(place.min(sorted_ns.len().saturating_sub(1))).map_or(f64::NAN, |ns| *ns as f64 / 1e6)
}

fn main() -> Outcome<()> {
    let options = parse_options()?;
    // Creates the collection that the streams follow.
    let first: ArrayBuf = [&DocumentBuf::new().with("n", -1)].into_iter().collect();
    run(&mut connect(options.port)?, insert(&first))?;
    let mut streams = (0..options.streams).map(|_| Stream::open(options.port)).collect::<Outcome<Vec<_>>>()?;
    let (begun, is_over) = (Instant::now(), AtomicBool::new(false));
    let (written, seen) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&options, begun, &is_over).map_err(|error| error.to_string()));
        let seen = read(&options, &mut streams, begun);
        is_over.store(true, Ordering::Relaxed);
        (writer.join().expect("no panic"), seen)
    });
    let (written, seen, seconds) = (written?, seen?, begun.elapsed().as_secs_f64());
    println!(
        "{} streams; {:.0} documents inserted a second, {} at a time; {:.0} batches and {:.0} MB a second",
        options.streams,
        written.documents as f64 / written.seconds,
        options.at_once,
        seen.batches as f64 / seconds,
        seen.bytes as f64 / seconds / 1e6
    );
    println!(
        "replies to the writer come after {:.3} ms at the median, {:.3} ms at p99; {:.2} us of the server's time a document",
        at(&written.replies_ns, 0.5),
        at(&written.replies_ns, 0.99),
        written.processor.map_or(f64::NAN, |time| time.as_secs_f64() * 1e6 / written.documents as f64)
    );
    for (which, sorted_ns) in [("an event", &seen.all_ns), ("the first event of a batch", &seen.first_ns)] {
        println!(
            "{which} comes after {:.1} ms at the median, {:.1} ms at p99, {:.1} ms at most",
            at(sorted_ns, 0.5),
            at(sorted_ns, 0.99),
            at(sorted_ns, 1.0)
        );
    }
    Ok(())
}
