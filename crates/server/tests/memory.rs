//! Messages and replies of clients that want more memory than the server has: a server in this process, whose memory
//! the tests see and take.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Catalog;
use bunko_command::{Facts, Process, Service, World};
use bunko_engines::EngineOptions;
use bunko_observe::LogLines;
use bunko_operation::{MemoryLimits, Purpose, ServerMemory};
use bunko_server::{AdmissionOptions, ListeningSockets, Server, ServerOptions, Stopped};
use bunko_store::{Clock, LogOptions, Store, StoreOptions};
use bunko_testkit::patience::{PATIENCE, wait_until};
use bunko_wire::{Codec, Compressor, HEADER_BYTES, Message, MessageFlags, needed_bytes, write_message};
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const HOUR: Duration = Duration::from_hours(1);
const MIB: u64 = 1 << 20;

struct Running {
    server: Server,
    service: Arc<Service>,
    memory: Arc<ServerMemory>,
    store: Arc<Store>,
    _directory: tempfile::TempDir,
}

impl Running {
    /// Starts a server with a memory budget of that many bytes.
    fn start(bytes_max: u64) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let engine = bunko_engines::find("lsm").expect("an engine");
        let options = StoreOptions { log: LogOptions::default(), ..StoreOptions::at_rest() };
        let table = bunko_engines::table(engine, &EngineOptions::default());
        let store: Arc<Store> = Store::open(directory.path(), options, table).expect("it opens");
        let numbers = Arc::new(AtomicU64::new(1));
        let uuids = Arc::clone(&numbers);
        let new_uuid = move || u128::from(uuids.fetch_add(1, Ordering::Relaxed)).to_le_bytes();
        let catalog = Catalog::open(Arc::clone(&store), Box::new(new_uuid)).expect("it opens");
        let memory = ServerMemory::new(bytes_max);
        let facts = Facts {
            host: "localhost:27017".into(),
            arguments: Vec::new(),
            parsed_options: DocumentBuf::new(),
            connections_max: 1000,
            journal_commit_interval: HOUR,
            slow_operation: HOUR,
            compressors: Vec::new(),
            memory_limits: MemoryLimits { server: Arc::clone(&memory), ..MemoryLimits::none() },
        };
        let world = World::new(Clock::dated(|| 0), Arc::new(move || numbers.fetch_add(0x9e37_79b9, Ordering::Relaxed)));
        let service = Arc::new(Service::new(catalog, world, facts, Arc::new(LogLines::default()), Process::default()));
        let admission = AdmissionOptions {
            connections_max: 1000,
            by_address_max: None,
            exempt: Vec::new(),
            login_patience: PATIENCE,
        };
        let addresses = ["127.0.0.1:0".parse().expect("an address")];
        let sockets = ListeningSockets::bind(&addresses, None).expect("bound");
        let options = ServerOptions { threads: 2, admission, tls: None, entrance: None };
        let server = Server::start(&service, sockets, options).expect("it starts");
        Self { server, service, memory, store, _directory: directory }
    }

    fn peer(&self) -> Peer {
        Peer::connect(self.server.sockets().addresses()[0])
    }

    /// Another client is served, whatever memory is left.
    fn assert_serves(&self) {
        let mut peer = self.peer();
        assert_eq!(peer.run(&with_database("ping")), Ok(1));
        for number in 0..3 {
            let document = DocumentBuf::new().with("n", number);
            assert_eq!(peer.run(&with_database("insert").with("documents", &array(&[document]))), Ok(1));
        }
        let filter = DocumentBuf::new().with("n", 2);
        assert_eq!(peer.run(&with_database("find").with("filter", &filter)), Ok(1));
        assert_eq!(peer.run(&with_database("currentOp").with("$all", true)), Ok(1));
    }

    fn stop(self) {
        assert_eq!(self.server.stop(), Stopped::InOrder);
        self.store.close().expect("it closes");
    }
}

/// A command on `test.c`, or on `admin`.
fn with_database(name: &str) -> DocumentBuf {
    match name {
        "ping" | "currentOp" => DocumentBuf::new().with(name, 1).with("$db", "admin"),
        _ => DocumentBuf::new().with(name, "c").with("$db", "test"),
    }
}

fn array(documents: &[DocumentBuf]) -> ArrayBuf {
    let mut array = ArrayBuf::new();
    for document in documents {
        array.push(document);
    }
    array
}

/// An insert of one document with this many bytes.
fn insert(bytes: usize) -> Vec<u8> {
    let document = DocumentBuf::new().with("text", "x".repeat(bytes).as_str());
    message(with_database("insert").with("documents", &array(&[document])).as_ref())
}

fn message(body: DocumentRef<'_>) -> Vec<u8> {
    let mut frame = Vec::new();
    let written = write_message(&mut frame, 7, 0, MessageFlags::NONE, |out| out.extend_from_slice(body.as_bytes()));
    written.expect("within the limit");
    frame
}

struct Peer(TcpStream);

impl Peer {
    /// Connects with a small receive buffer, so that unread replies stay with the server.
    fn connect(address: SocketAddr) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_recv_buffer_size(4096).expect("an option");
        socket.connect(&address.into()).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("an option");
        Self(socket.into())
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("the server reads");
    }

    /// The next reply; `None` where the connection was closed.
    fn reply(&mut self) -> Option<DocumentBuf> {
        let mut frame = vec![0; HEADER_BYTES];
        self.0.read_exact(&mut frame).ok()?;
        frame.resize(needed_bytes(&frame).expect("a length within limits"), 0);
        self.0.read_exact(&mut frame[HEADER_BYTES..]).ok()?;
        if Codec::compressor_of(&frame).is_some() {
            let mut inner = Vec::new();
            Codec::new().decompress(&frame, usize::MAX, &mut inner).expect("it is whole");
            frame = inner;
        }
        Some(Message::parse(&frame).expect("well-formed").body.to_owned())
    }

    /// 1 if the reply is ok, else its error code.
    fn outcome(&mut self) -> Result<i32, i32> {
        outcome(&self.reply().expect("a reply"))
    }

    fn run(&mut self, body: &DocumentBuf) -> Result<i32, i32> {
        self.send(&message(body.as_ref()));
        self.outcome()
    }
}

fn outcome(reply: &DocumentBuf) -> Result<i32, i32> {
    match reply.as_ref().get("code") {
        Some(ValueRef::Int32(code)) => Err(code),
        _ => Ok(1),
    }
}

#[test]
fn large_messages_wait_for_room_and_small_ones_do_not() {
    let running = Running::start(32 * MIB);
    let all = running.memory.count(32 * MIB, Purpose::Work);
    let plain = insert(3 << 20);
    let mut wrapped = Vec::new();
    Codec::new().compress(&plain, Compressor::Zstd, &mut wrapped).expect("it compresses");
    assert!(wrapped.len() < 64 * 1024, "a few bytes that become many");
    let mut peers = [running.peer(), running.peer(), running.peer()];
    std::thread::scope(|scope| {
        let [one, other, gone] = &mut peers;
        let sent = [scope.spawn(|| one.send(&plain)), scope.spawn(|| other.send(&wrapped))];
        wait_until("both wait", || running.memory.waiting() == 2);
        running.assert_serves();
        // A client that goes away gives up its place in the queue. All bytes that it sent have arrived.
        gone.send(&plain[..70_000]);
        wait_until("the third waits", || running.memory.waiting() == 3);
        gone.0.shutdown(std::net::Shutdown::Both).expect("connected");
        wait_until("it is gone", || running.memory.waiting() == 2);
        assert_eq!(running.memory.drawn(Purpose::Message), 0);
        drop(all);
        for sent in sent {
            sent.join().expect("it was read");
        }
    });
    assert_eq!((peers[0].outcome(), peers[1].outcome()), (Ok(1), Ok(1)));
    wait_until("all is given back", || running.memory.held() == 0);
    assert_eq!(running.service.memory_counts.waited.load(Ordering::Relaxed), 3);
    running.stop();
}

#[test]
fn a_client_that_stops_amid_a_message_makes_way() {
    // There is room for one message at a time: one of 5 MiB takes three times its size.
    let running = Running::start(40 * MIB);
    let large = insert(5 << 20);
    let mut slow = running.peer();
    slow.send(&large[..400_000]);
    wait_until("it has its place", || running.memory.drawn(Purpose::Message) > 10 * MIB);
    for _ in 0..3 {
        let mut peer = running.peer();
        peer.send(&large);
        assert_eq!(peer.outcome(), Ok(1));
    }
    assert!(running.memory.drawn(Purpose::Message) < MIB, "it holds the bytes that have come");
    slow.send(&large[400_000..]);
    assert_eq!(slow.outcome(), Ok(1), "it was not forgotten");
    wait_until("all is given back", || running.memory.held() == 0);
    // Many clients that announce large messages, and send only their beginnings, hold no memory.
    let mut announcers: Vec<_> = (0..50).map(|_| running.peer()).collect();
    for peer in &mut announcers {
        peer.send(&large[..1000]);
    }
    let mut peer = running.peer();
    peer.send(&large);
    assert_eq!(peer.outcome(), Ok(1));
    running.stop();
}

#[test]
fn the_server_stops_while_messages_wait() {
    let running = Running::start(32 * MIB);
    let memory = Arc::clone(&running.memory);
    let all = memory.count(32 * MIB, Purpose::Work);
    let mut peer = running.peer();
    peer.send(&insert(3 << 20)[..300_000]);
    wait_until("it waits", || running.memory.waiting() == 1);
    running.stop();
    assert_eq!((memory.waiting(), peer.reply()), (0, None));
    drop(all);
}

#[test]
fn a_scan_goes_on_in_short_batches_where_memory_is_short() {
    let running = Running::start(32 * MIB);
    let mut peer = running.peer();
    for _ in 0..40 {
        peer.send(&insert(100_000));
        assert_eq!(peer.outcome(), Ok(1));
    }
    let all = running.memory.count(32 * MIB, Purpose::Work);
    let (mut batches, mut documents, mut field) = (0, 0, "firstBatch");
    let mut body = with_database("find").with("batchSize", 1000);
    loop {
        peer.send(&message(body.as_ref()));
        let reply = peer.reply().expect("a reply");
        let cursor =
            reply.as_ref().get("cursor").and_then(ValueRef::as_document).unwrap_or_else(|| panic!("{reply:?}"));
        let batch = cursor.get(field).and_then(ValueRef::as_array).expect("a batch").iter().count();
        assert!((1..=3).contains(&batch), "{batch} documents of 100 kB");
        (batches, documents, field) = (batches + 1, documents + batch, "nextBatch");
        match cursor.get("id") {
            Some(ValueRef::Int64(0)) => break,
            Some(ValueRef::Int64(id)) => {
                body = DocumentBuf::new().with("getMore", id).with("collection", "c").with("$db", "test");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(documents, 40, "in {batches} batches");
    // A reply that no other follows waits until it can be whole.
    let only = with_database("find").with("limit", 10).with("singleBatch", true);
    peer.send(&message(only.as_ref()));
    wait_until("it waits", || running.memory.waiting_for(Purpose::Reply) == 1);
    drop(all);
    let reply = peer.reply().expect("a reply");
    let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
    assert_eq!(cursor.get("firstBatch").and_then(ValueRef::as_array).expect("a batch").iter().count(), 10);
    drop(peer);
    running.stop();
}

#[test]
fn unread_replies_hold_a_bounded_part() {
    // Replies may draw 32 MiB.
    let running = Running::start(128 * MIB);
    let mut peer = running.peer();
    for _ in 0..5 {
        peer.send(&insert(3 << 20));
        assert_eq!(peer.outcome(), Ok(1));
    }
    wait_until("all is given back", || running.memory.held() == 0);
    let mut readers: Vec<_> = (0..12).map(|_| running.peer()).collect();
    for reader in &mut readers {
        reader.send(&message(with_database("find").as_ref()));
    }
    let bound = 2 * running.memory.own_limit(Purpose::Reply) + 16 * MIB;
    let held = || {
        let held = running.memory.drawn(Purpose::Reply);
        assert!(held <= bound, "{held} bytes of replies, and the bound is {bound}");
        held
    };
    wait_until("replies are unread", || held() > 20 * MIB);
    running.assert_serves();
    let closed = || running.service.memory_counts.unread.load(Ordering::Relaxed);
    // A client that reads is answered meanwhile, whole or in part.
    let mut reads = running.peer();
    assert_eq!(reads.run(&with_database("find")), Ok(1));
    wait_until("some are closed", || held() > 0 && closed() > 0);
    drop(readers);
    wait_until("all is given back", || running.memory.held() == 0);
    running.stop();
}
