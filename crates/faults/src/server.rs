//! A server without sockets, which can be killed.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Catalog;
use bunko_command::{Acknowledgement, ClientConnection, Facts, Peer, Process, Request, RunOn, Service, World};
use bunko_engines::{EngineOptions, Entry};
use bunko_observe::LogLines;
use bunko_operation::{MemoryLimits, OperationContext};
use bunko_store::{Clock, LogOptions, Lsn, StorageError, Store, StoreOptions};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

const NOW_MS: u64 = 1_767_225_600_000;
const HOUR: Duration = Duration::from_hours(1);

/// Options with caches too small to hide the files below them.
const OPTIONS: EngineOptions =
    EngineOptions { cache_bytes: 1 << 20, compression: bunko_engines::Compression::None, memory_limit_bytes: 1 << 30 };

/// An open data directory and the service that runs commands on it.
pub struct Server {
    service: Service,
    store: Arc<Store>,
    told: Arc<Told>,
}

/// Messages outside replies: failures of the log, of background work and of index builds.
#[derive(Default)]
struct Told {
    messages: Mutex<Vec<String>>,
    log_has_failed: AtomicBool,
}

/// Outcome of a command as its client sees it.
#[derive(Debug)]
pub enum Outcome {
    /// The command was acknowledged with this reply.
    Acknowledged(DocumentBuf),
    /// The command failed with this message.
    Refused(String),
    /// The server ended before it replied. The command may or may not have been carried out.
    Unknown,
}

impl Server {
    /// Opens a data directory.
    ///
    /// # Errors
    /// The message, if the directory cannot be opened.
    pub fn open(directory: &Path, engine: &Entry) -> Result<Self, String> {
        let told = Arc::new(Told::default());
        let (on_failure, on_background) = (Arc::clone(&told), Arc::clone(&told));
        let options = StoreOptions {
            log: LogOptions {
                commit_interval: HOUR,
                on_failure: Arc::new(move |error| {
                    on_failure.log_has_failed.store(true, Ordering::SeqCst);
                    on_failure.say(format!("the log failed: {error}"));
                }),
                ..LogOptions::default()
            },
            clock: Clock::dated(|| NOW_MS),
            on_background_error: Arc::new(move |what, error| on_background.say(format!("{what}: {error}"))),
            ..StoreOptions::at_rest()
        };
        let table = bunko_engines::table(engine, &OPTIONS);
        let store = Store::open(directory, options, table).map_err(|error| error.to_string())?;
        let uuids = AtomicU64::new(1);
        let new_uuid = move || u128::from(uuids.fetch_add(1, Ordering::Relaxed)).to_le_bytes();
        let catalog = Catalog::open(Arc::clone(&store), Box::new(new_uuid)).map_err(|failure| failure.to_string())?;
        // A real server resumes index builds while it serves its first connections.
        for build in catalog.resume_builds(&*OperationContext::unlimited()) {
            told.say(build.failure.to_string());
        }
        let random = AtomicU64::new(1);
        let random = Arc::new(move || random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed));
        let facts = Facts {
            host: "localhost:27017".into(),
            arguments: Vec::new(),
            parsed_options: DocumentBuf::new(),
            connections_max: 1,
            journal_commit_interval: HOUR,
            slow_operation: HOUR,
            compressors: Vec::new(),
            memory_limits: MemoryLimits::none(),
        };
        let world = World::new(store.clock().clone(), random);
        let service = Service::new(catalog, world, facts, Arc::new(LogLines::default()), Process::default());
        Ok(Self { service, store, told })
    }

    /// Runs a command on a connection of its own, and waits until its write is as durable as its write concern asks.
    ///
    /// # Panics
    /// If a reply is malformed.
    pub fn run(&self, database: &str, body: DocumentRef<'_>) -> Outcome {
        let Some(reply) = self.reply(database, body) else { return Outcome::Unknown };
        match failure_of(reply.as_ref()) {
            Some(message) => Outcome::Refused(message),
            None => Outcome::Acknowledged(reply),
        }
    }

    /// The reply to a command, once its write is as durable as its write concern asks; `None` if the log failed first.
    ///
    /// # Panics
    /// If a reply is malformed.
    pub fn reply(&self, database: &str, body: DocumentRef<'_>) -> Option<DocumentBuf> {
        let request = Request::new(database, body, None);
        let mut reply = Vec::new();
        let mut connection = ClientConnection::new(1, Peer::Unix);
        let answer = self.service.run(&mut connection, request, RunOn::OwnThread, &mut reply);
        let answer = answer.expect("a command may take long here");
        let holds = self.wait(answer.acknowledgement);
        if holds.is_err() || self.log_has_failed() {
            return None;
        }
        Some(DocumentBuf::parse(reply).expect("a well-formed reply"))
    }

    fn wait(&self, acknowledgement: Acknowledgement) -> Result<(), StorageError> {
        match acknowledgement {
            Acknowledgement::None => Ok(()),
            Acknowledgement::Written(lsn) => self.store.write(lsn),
            Acknowledgement::Durable(lsn) => self.wait_until_durable(lsn),
        }
    }

    fn wait_until_durable(&self, lsn: Lsn) -> Result<(), StorageError> {
        let (sender, receiver) = mpsc::channel();
        self.store.on_durable(lsn, Box::new(move |outcome| drop(sender.send(outcome))));
        receiver.recv().unwrap_or(Err(StorageError::LogFailed))
    }

    /// The store that the commands run on.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Whether the log has failed. A real server ends itself then.
    pub fn log_has_failed(&self) -> bool {
        self.told.log_has_failed.load(Ordering::SeqCst)
    }

    /// Takes the messages that were noted since the last call.
    pub fn messages(&self) -> Vec<String> {
        std::mem::take(&mut self.told.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Number of tables in the LSM trees; `None` for an engine without trees.
    pub fn tables(&self) -> Option<i64> {
        let status = self.store.engine_status();
        let (_, lsm) = status.iter().find(|(name, _)| *name == "lsm")?;
        match lsm.as_ref().get("trees")?.as_document()?.get("tables")? {
            ValueRef::Int64(tables) => Some(tables),
            _ => None,
        }
    }

    /// Closes the server as SIGTERM does and releases all its files. Also returns the number of tables after the close.
    ///
    /// # Errors
    /// The message, if the store does not close cleanly.
    pub fn close_counting(self) -> (Result<(), String>, Option<i64>) {
        let outcome = self.store.close().map_err(|error| error.to_string());
        let tables = self.tables();
        (outcome, tables)
    }

    /// Closes the server as SIGTERM does.
    ///
    /// # Errors
    /// The message, if the store does not close cleanly.
    pub fn close(self) -> Result<(), String> {
        self.store.close().map_err(|error| error.to_string())
    }
}

impl Told {
    fn say(&self, message: String) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }
}

/// The error message of a reply: its `errmsg`, or the message of its first write error; `None` if the command
/// succeeded.
fn failure_of(reply: DocumentRef<'_>) -> Option<String> {
    let text = |value: ValueRef<'_>| value.as_str().map(str::to_owned);
    if let Some(message) = reply.get("errmsg") {
        return text(message);
    }
    let errors = reply.get("writeErrors").and_then(ValueRef::as_array);
    errors.and_then(|errors| errors.iter().next()?.as_document()?.get("errmsg").and_then(text))
}
