//! Two servers that hold everything in memory and take arbitrary input: one without access control, and one that asks for
//! a login on a connection that has not logged in. The fuzz target `command` uses this file too.

use super::shape::Shape;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Catalog;
use bunko_command::{ClientConnection, Facts, Halt, Peer, Process, Request, RunOn, Service, World};
use bunko_observe::LogLines;
use bunko_operation::MemoryLimits;
use bunko_store::{Clock, EngineKind, EngineTable, Store, StoreOptions};
use bunko_wire::{Codec, Message, OpCode, split_frame};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Commands that may run before a login, as in docs/reference/privileges.md.
#[rustfmt::skip]
const BEFORE_LOGIN: &[&str] = &[
    "authenticate", "buildInfo", "buildinfo", "connectionStatus", "getnonce", "hello", "isMaster", "ismaster", "logout",
    "ping", "saslContinue", "saslStart",
];
/// Commands that block every client, as they should, and commands that fail only here.
const LEFT_OUT: &[&str] = &["fsync", "fsyncUnlock", "setUserWriteBlockMode", "shutdown", "configureFailPoint"];
/// Number of inputs after which the servers are replaced, so that data left by some inputs does not slow down the next.
const INPUTS_MAX: u32 = 500;
const FRAME_BYTES_MAX: usize = 1 << 20;

pub struct Servers {
    /// Makes the only engine, which keeps its data in memory.
    engine: fn() -> EngineKind,
    pair: Option<Pair>,
}

struct Pair {
    open: Service,
    guarded: Service,
    inputs: u32,
}

impl Servers {
    pub fn new(engine: fn() -> EngineKind) -> Self {
        Self { engine, pair: None }
    }

    /// Sends an input to one of the servers, which its first byte chooses.
    ///
    /// # Panics
    /// If a reply is malformed, or if a command has run that needs a login.
    pub fn feed(&mut self, input: &[u8]) {
        let Some((kind, input)) = input.split_first() else { return };
        let is_old = self.pair.as_ref().is_some_and(|pair| pair.inputs >= INPUTS_MAX);
        if is_old {
            self.pair = None;
        }
        let pair = self.pair.get_or_insert_with(|| Pair::start(self.engine));
        pair.inputs += 1;
        let is_guarded = kind & 1 == 1;
        let service = if is_guarded { &pair.guarded } else { &pair.open };
        let mut connection = ClientConnection::new(1, Peer::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 50_000))));
        if kind & 2 == 0 {
            let mut shape = Shape::new(input);
            while let Some((database, body)) = shape.command() {
                run(service, &mut connection, database, body.as_ref(), None, is_guarded);
            }
        } else {
            run_frames(service, &mut connection, input, is_guarded);
        }
    }
}

fn run_frames(service: &Service, connection: &mut ClientConnection, mut input: &[u8], is_guarded: bool) {
    let (mut codec, mut plain) = (Codec::new(), Vec::new());
    while let Ok(Some((header, _, consumed))) = split_frame(input, FRAME_BYTES_MAX) {
        let (mut frame, rest) = input.split_at(consumed);
        input = rest;
        if header.op_code == OpCode::Compressed {
            if codec.decompress(frame, FRAME_BYTES_MAX, &mut plain).is_err() {
                return;
            }
            frame = &plain;
        }
        let Ok(message) = Message::parse(frame) else { continue };
        let database = message.body.get("$db").and_then(ValueRef::as_str).unwrap_or("test");
        run(service, connection, database, message.body, Some(&message), is_guarded);
    }
}

fn run(
    service: &Service,
    connection: &mut ClientConnection,
    database: &str,
    body: DocumentRef<'_>,
    message: Option<&Message<'_>>,
    is_guarded: bool,
) {
    let name = body.first().map(|first| first.name).unwrap_or_default();
    if LEFT_OUT.contains(&name) {
        return;
    }
    let mut reply = Vec::new();
    let mut run_on = RunOn::SharedThread;
    loop {
        match service.run(connection, Request::new(database, body, message), run_on, &mut reply) {
            Ok(_) => break,
            Err(Halt::TooLong) => run_on = RunOn::OwnThread,
            // The command waits for another client's action, and there is no other client.
            Err(Halt::Awaits(_) | Halt::ClosesConnection) => return,
            Err(Halt::Failed(failure)) => panic!("failures are replies: {failure}"),
        }
    }
    let reply = DocumentBuf::parse(reply).expect("the reply is well formed");
    let is_ok = matches!(reply.as_ref().get("ok"), Some(ValueRef::Double(1.0) | ValueRef::Int32(1)));
    assert!(!(is_guarded && is_ok) || BEFORE_LOGIN.contains(&name), "{name} ran before a login: {body:?}");
    assert!(!is_guarded || service.authority.asks_for_login(connection), "somebody is logged in");
}

impl Pair {
    fn start(engine: fn() -> EngineKind) -> Self {
        let guarded = service(engine());
        guarded.make_root_user("root", "secret").expect("the first user");
        guarded.authority.access.enforce();
        Self { open: service(engine()), guarded, inputs: 0 }
    }
}

fn service(own: EngineKind) -> Service {
    let store = Store::open(Path::new("/nowhere"), StoreOptions::at_rest(), EngineTable { own, others: Vec::new() });
    let counter = Arc::new(AtomicU64::new(1));
    let random = move || counter.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let of_uuids = random.clone();
    let new_uuid = Box::new(move || {
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&of_uuids().to_le_bytes());
        uuid
    });
    let catalog = Catalog::open(store.expect("a store in memory"), new_uuid).expect("an empty catalog");
    let facts = Facts {
        host: "localhost:27017".into(),
        arguments: Vec::new(),
        parsed_options: DocumentBuf::new(),
        connections_max: 1000,
        memory_limits: MemoryLimits::none(),
        journal_commit_interval: Duration::from_millis(100),
        slow_operation: Duration::from_secs(100),
        compressors: Vec::new(),
    };
    let world = World::new(Clock::dated(|| 1_767_225_600_000), Arc::new(random));
    Service::new(catalog, world, facts, Arc::new(LogLines::default()), Process::default())
}
