//! A server without sockets: commands against a real store on any engine.

use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_catalog::Catalog;
use bunko_command::{
    Acknowledgement, Answer, ClientConnection, Facts, Halt, MemberHost, Peer, Process, Request, RunOn, Service, World,
};
use bunko_engines::{EngineOptions, Entry};
use bunko_observe::LogLines;
use bunko_operation::MemoryLimits;
use bunko_store::{Clock, LogOptions, Store, StoreOptions};
use bunko_testkit::random::Random;
use bunko_wire::Compressor;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// 2026-01-01T00:00:00Z, the time on every server's clock.
pub const NOW_MS: u64 = 1_767_225_600_000;

pub struct Server {
    pub service: Service,
    connections: BTreeMap<i32, ClientConnection>,
    was_shut_down: Arc<AtomicBool>,
    // Dropped last, because the store writes into it until it is dropped.
    _directory: tempfile::TempDir,
}

/// Pseudo-random numbers that are equal in every run: a sequence from its number `first` on, counted from 1.
fn repeatable_random(first: usize) -> impl Fn() -> u64 + Send + Sync {
    let mut random = Random(0);
    for _ in 1..first {
        random.number();
    }
    let random = Mutex::new(random);
    move || random.lock().number()
}

impl Server {
    pub fn start(engine: &Entry, options: &EngineOptions) -> Self {
        Self::start_with_log(engine, options, LogOptions::default())
    }

    pub fn start_with_log(engine: &Entry, options: &EngineOptions, log: LogOptions) -> Self {
        Self::start_within(engine, options, log, MemoryLimits::none())
    }

    /// A server whose operations have these memory limits.
    pub fn start_within(engine: &Entry, options: &EngineOptions, log: LogOptions, limits: MemoryLimits) -> Self {
        let store = StoreOptions { log, clock: Clock::dated(|| NOW_MS), ..StoreOptions::at_rest() };
        Self::start_over(store, engine, options, limits)
    }

    /// A server over a store with these options, whose clock is the server's.
    pub fn start_over(store: StoreOptions, engine: &Entry, options: &EngineOptions, limits: MemoryLimits) -> Self {
        let clock = store.clock.clone();
        let directory = tempfile::tempdir().expect("temporary directory");
        let uuids = repeatable_random(1000);
        let new_uuid = Box::new(move || {
            let mut uuid = [0; 16];
            uuid[..8].copy_from_slice(&uuids().to_le_bytes());
            uuid[8..].copy_from_slice(&uuids().to_le_bytes());
            uuid
        });
        let store = Store::open(directory.path(), store, bunko_engines::table(engine, options)).expect("a new store");
        let catalog = Catalog::open(store, new_uuid).expect("an empty catalog opens");
        let facts = Facts {
            host: "localhost:27017".into(),
            arguments: vec!["bunko".to_owned(), "serve".to_owned()],
            parsed_options: DocumentBuf::new().with("net", &DocumentBuf::new().with("port", 27017)),
            connections_max: 1000,
            memory_limits: limits,
            journal_commit_interval: Duration::from_millis(100),
            slow_operation: Duration::from_millis(100),
            compressors: Compressor::ALL.to_vec(),
        };
        let was_shut_down = Arc::new(AtomicBool::new(false));
        let shut_down = Arc::clone(&was_shut_down);
        let service = Service::new(
            catalog,
            World::new(clock, Arc::new(repeatable_random(1))),
            facts,
            Arc::new(LogLines::default()),
            Process { shut_down: Box::new(move || shut_down.store(true, Ordering::Relaxed)), ..Process::default() },
        );
        Self { service, connections: BTreeMap::new(), was_shut_down, _directory: directory }
    }

    /// A server that is a replica set of one member.
    pub fn start_as_member(engine: &Entry, options: &EngineOptions, log: LogOptions) -> Self {
        Self::start_with_log(engine, options, log).into_member()
    }

    /// The server as a replica set of one member.
    pub fn into_member(mut self) -> Self {
        self.service.join_replica_set("rs0", &MemberHost::Given("localhost:27017".into()), None).expect("a new set");
        self
    }

    /// A replica set of one member with test commands enabled.
    pub fn start_for_tests(engine: &Entry, options: &EngineOptions, log: LogOptions) -> Self {
        let mut server = Self::start_as_member(engine, options, log);
        server.service.enable_test_commands();
        server
    }

    /// Whether `shutdown` has run since the last call.
    pub fn was_shut_down(&self) -> bool {
        self.was_shut_down.swap(false, Ordering::Relaxed)
    }

    pub fn connection(&mut self, number: i32) -> &mut ClientConnection {
        connected(&mut self.connections, number)
    }

    /// Runs a command once, on a thread where it may be long: on a busy machine, a command may be held up for longer
    /// than other threads allow. Returns its reply, if it gives one.
    pub fn attempt(
        &mut self,
        connection: i32,
        database: &str,
        body: DocumentRef<'_>,
    ) -> Result<(Answer, DocumentBuf), Halt> {
        let connection = connected(&mut self.connections, connection);
        let request = Request::new(database, body, None);
        let mut reply = Vec::new();
        let answer = self.service.run(connection, request, RunOn::OwnThread, &mut reply)?;
        Ok((answer, DocumentBuf::parse(reply).expect("the reply is well formed")))
    }

    pub fn run(&mut self, connection: i32, database: &str, body: DocumentRef<'_>) -> DocumentBuf {
        let connection = connected(&mut self.connections, connection);
        let request = Request::new(database, body, None);
        let mut reply = Vec::new();
        // As in the server: a command that halts as too long runs again on a thread of its own.
        let mut run_on = RunOn::SharedThread;
        let answer = loop {
            match self.service.run(connection, request, run_on, &mut reply) {
                Ok(answer) => break answer,
                Err(Halt::TooLong) => run_on = RunOn::OwnThread,
                // No other command runs meanwhile.
                Err(Halt::Awaits(wait)) => std::thread::sleep(wait.until.saturating_duration_since(Instant::now())),
                Err(Halt::ClosesConnection) => return DocumentBuf::new(),
                Err(Halt::Failed(failure)) => panic!("failures are replies: {failure}"),
            }
        };
        if let Acknowledgement::Written(lsn) | Acknowledgement::Durable(lsn) = answer.acknowledgement {
            self.service.catalog.store().write(lsn).expect("the log takes it");
        }
        DocumentBuf::parse(reply).expect("the reply is well formed")
    }
}

fn connected(connections: &mut BTreeMap<i32, ClientConnection>, number: i32) -> &mut ClientConnection {
    connections.entry(number).or_insert_with(|| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 50_000 + number as u16));
        ClientConnection::new(number, Peer::Tcp(address))
    })
}
