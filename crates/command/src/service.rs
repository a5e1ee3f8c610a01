//! What all connections share.

use crate::access_control::{AccessControl, DATABASE};
use crate::audit::Audit;
use crate::authorization::cursors::may_close;
use crate::authorization::{Asker, localhost_exception};
use crate::auto_compaction::AutoCompaction;
use crate::change_stream::Tails;
use crate::cluster_parameters::{self, CHANGE_STREAM_OPTIONS, DEFAULT_MAX_TIME};
use crate::connection::{ClientConnection, Peer};
use crate::connection_rate::ConnectionPace;
use crate::counters::Counters;
use crate::cursor_store::CursorStore;
use crate::dispatch::{Request, RunOn};
use crate::fail_points::FailPoints;
use crate::memory_counts::MemoryCounts;
use crate::operations::Operations;
use crate::parameters::Parameters;
use crate::profiler::Profiler;
use crate::query_settings::AllQuerySettings;
use crate::replica_set::{DefaultConcerns, ReplicaSet};
use crate::sessions::{SESSION_TIMEOUT, SessionId, SessionTable};
use crate::stored_settings;
use crate::time_series::OpenBuckets;
use crate::time_to_live::TimeToLive;
use crate::transactions::Transactions;
use crate::user_write_block::UserWriteBlock;
use crate::write_lock::WriteLock;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ObjectId, Timestamp, ValueRef};
use bunko_catalog::Catalog;
use bunko_catalog::stored_document::Stamps;
use bunko_errors::{ErrorCode, Failure};
use bunko_operation::{MemoryLimits, OperationContext};
use bunko_oplog::EntryCount;
use bunko_wire::Compressor;
use parking_lot::Mutex;
use std::cell::LazyCell;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The world below the server: time and chance.
pub struct World {
    /// Milliseconds since 1970.
    pub clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Unpredictable bytes, for cursor ids, nonces and UUIDs.
    pub random: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// The five bytes that this process puts into object ids.
    pub process: [u8; 5],
    /// What random numbers of expressions follow from.
    pub(crate) seed: u64,
    object_ids: AtomicU32,
    /// Seconds and increment of the last timestamp given.
    last_timestamp: AtomicU64,
}

impl World {
    /// A world with that clock and that randomness.
    pub fn new(clock: Arc<dyn Fn() -> u64 + Send + Sync>, random: Arc<dyn Fn() -> u64 + Send + Sync>) -> Self {
        let seed = random();
        let mut process = [0; 5];
        process.copy_from_slice(&seed.to_le_bytes()[..5]);
        Self {
            clock,
            seed,
            object_ids: AtomicU32::new(random() as u32),
            random,
            process,
            last_timestamp: AtomicU64::new(0),
        }
    }

    /// Milliseconds since 1970, as BSON dates have them.
    pub fn now_ms(&self) -> i64 {
        (self.clock)() as i64
    }
}

impl Stamps for World {
    fn object_id(&self) -> ObjectId {
        let seconds = ((self.clock)() / 1000) as u32;
        ObjectId::from_parts(seconds, self.process, self.object_ids.fetch_add(1, Ordering::Relaxed))
    }

    fn timestamp(&self) -> Timestamp {
        let now = ((self.clock)() / 1000) << 32;
        let next = self
            .last_timestamp
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some((last + 1).max(now + 1)))
            .map_or(now + 1, |last| (last + 1).max(now + 1));
        Timestamp { seconds: (next >> 32) as u32, increment: next as u32 }
    }
}

/// What the process knows about itself and its machine.
#[derive(Clone, Debug)]
pub struct Facts {
    /// `host:port` as clients should name this server.
    pub host: String,
    /// The command line.
    pub arguments: Vec<String>,
    /// What flags and the configuration file say, as `getCmdLineOpts` shows it under `parsed`.
    pub parsed_options: DocumentBuf,
    /// Most connections at once.
    pub connections_max: u32,
    /// What operations may hold of the memory.
    pub memory_limits: MemoryLimits,
    /// How often the journal is synced.
    pub journal_commit_interval: Duration,
    /// Operations that take that long are logged, until `profile` says otherwise.
    pub slow_operation: Duration,
    /// How messages may be compressed.
    pub compressors: Vec<Compressor>,
}

/// The last lines of the server's log, for `getLog`.
#[derive(Debug, Default)]
pub struct LogLines {
    lines: Mutex<VecDeque<String>>,
    total: AtomicU64,
    startup_warnings: Mutex<Vec<String>>,
    is_redacted: AtomicBool,
}

impl LogLines {
    /// Most lines that are kept.
    const LINES_MAX: usize = 1024;
    /// Most warnings of the start that are kept.
    const STARTUP_WARNINGS_MAX: usize = 64;

    /// Whether lines show no values of clients (`security.redactClientLogData`).
    pub fn is_redacted(&self) -> bool {
        self.is_redacted.load(Ordering::Relaxed)
    }

    /// Says so for lines that are written from now on.
    pub fn set_redacted(&self, is_redacted: bool) {
        self.is_redacted.store(is_redacted, Ordering::Relaxed);
    }

    /// Keeps one line.
    pub fn push(&self, line: String) {
        self.total.fetch_add(1, Ordering::Relaxed);
        let mut lines = self.lines.lock();
        if lines.len() == Self::LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Keeps a warning of the start.
    pub fn push_startup_warning(&self, line: String) {
        let mut warnings = self.startup_warnings.lock();
        if warnings.len() < Self::STARTUP_WARNINGS_MAX {
            warnings.push(line);
        }
    }

    /// The warnings of the start.
    pub fn startup_warnings(&self) -> Vec<String> {
        self.startup_warnings.lock().clone()
    }

    /// The lines kept, and how many there were.
    pub fn snapshot(&self) -> (Vec<String>, u64) {
        (self.lines.lock().iter().cloned().collect(), self.total.load(Ordering::Relaxed))
    }
}

/// What commands ask of the process that they run in.
pub struct Process {
    /// Ends it in order (`shutdown`).
    pub shut_down: Box<dyn Fn() + Send + Sync>,
    /// Goes on in a new log file (`logRotate`), or says why not.
    pub rotate_log: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Goes on with the certificates that are on disk now (`rotateCertificates`), or says why not.
    pub rotate_certificates: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Which connections are encrypted, as `net.tls.mode` says it.
    pub tls_mode: String,
    /// The certificate that the server shows, where it speaks TLS.
    pub certificate: Box<dyn Fn() -> Option<OwnCertificate> + Send + Sync>,
    /// Whether a name or an address is this machine's. It may be looked up, which takes its time.
    pub is_this_machine: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

/// What `serverStatus` tells of the server's certificate.
pub struct OwnCertificate {
    /// Whom it names.
    pub subject: String,
    /// Until when it is valid, in milliseconds since 1970.
    pub not_after_ms: i64,
}

impl Default for Process {
    /// One that has neither log nor certificate, and does not end.
    fn default() -> Self {
        Self {
            shut_down: Box::new(|| ()),
            rotate_log: Box::new(|| Ok(())),
            rotate_certificates: Box::new(|| Ok(())),
            tls_mode: "disabled".to_owned(),
            certificate: Box::new(|| None),
            is_this_machine: Box::new(|host| host == "localhost"),
        }
    }
}

/// Everything that commands use.
pub struct Service {
    /// Databases, collections, indexes.
    pub catalog: Arc<Catalog>,
    /// Users, roles, logins.
    pub(crate) access: AccessControl,
    /// Who did what.
    pub(crate) audit: Audit,
    /// Open cursors.
    pub cursors: CursorStore,
    /// What change streams read together.
    pub(crate) stream_tails: Tails,
    /// Which buckets of time series take the next measurements.
    pub(crate) open_buckets: OpenBuckets,
    /// The sessions of clients.
    pub(crate) sessions: Arc<SessionTable>,
    /// The transactions that are open.
    pub(crate) transactions: Transactions,
    /// What is running, for `currentOp` and `killOp`.
    pub operations: Operations,
    /// Which operations are noted.
    pub(crate) profiler: Profiler,
    /// The thread of `autoCompact`.
    pub(crate) auto_compaction: AutoCompaction,
    /// Trouble on request.
    pub(crate) fail_points: FailPoints,
    /// What holds writes back while files are copied.
    pub write_lock: WriteLock,
    /// Whether users may write.
    pub(crate) user_write_block: UserWriteBlock,
    /// What an operator set for shapes of commands.
    pub(crate) query_settings: AllQuerySettings,
    /// What `getParameter` and `setParameter` see.
    pub parameters: Parameters,
    /// How fast connections are taken.
    pub pace: ConnectionPace,
    /// What `serverStatus` and `top` count.
    pub counters: Arc<Counters>,
    /// Effects of the shortage of memory.
    pub memory_counts: MemoryCounts,
    /// Counter of the oplog's entries.
    pub entry_count: Arc<EntryCount>,
    /// The thread that deletes what is expired.
    pub time_to_live: TimeToLive,
    /// Time and chance.
    pub world: World,
    /// The process and its machine.
    pub facts: Arc<Facts>,
    /// The last lines of the log.
    pub log_lines: Arc<LogLines>,
    /// When the service began.
    pub started: Instant,
    /// The same by the wall clock, in milliseconds since 1970.
    pub started_at_ms: i64,
    /// The process around it.
    pub process: Process,
    /// The set that it is the only member of, where it is in one.
    pub(crate) replica_set: Option<ReplicaSet>,
    /// The concerns of commands that name none, where it is in one.
    pub(crate) default_concerns: DefaultConcerns,
}

impl Service {
    /// A service over an open catalog.
    pub fn new(catalog: Arc<Catalog>, world: World, facts: Facts, log_lines: Arc<LogLines>, process: Process) -> Self {
        let parameters = Parameters::new(facts.journal_commit_interval);
        for name in [CHANGE_STREAM_OPTIONS, DEFAULT_MAX_TIME] {
            let kept =
                stored_settings::find(&catalog, cluster_parameters::DATABASE, cluster_parameters::COLLECTION, name);
            // Where it cannot be read there is no limit, and the first command that reads it says why.
            if let Ok(Some(kept)) = kept {
                cluster_parameters::apply(&parameters, name, kept.as_ref());
            }
        }
        let started = Instant::now();
        Self {
            access: AccessControl::default(),
            audit: Audit::default(),
            cursors: CursorStore::default(),
            sessions: Arc::new(SessionTable::new(started, catalog.take_write_histories())),
            stream_tails: Tails::default(),
            open_buckets: OpenBuckets::default(),
            transactions: Transactions::default(),
            operations: Operations::default(),
            profiler: Profiler::new(facts.slow_operation),
            auto_compaction: AutoCompaction::default(),
            fail_points: FailPoints::default(),
            write_lock: WriteLock::default(),
            user_write_block: UserWriteBlock::kept(&catalog),
            query_settings: AllQuerySettings::kept(&catalog),
            parameters,
            pace: ConnectionPace::default(),
            memory_counts: MemoryCounts::default(),
            counters: Arc::default(),
            entry_count: Arc::default(),
            time_to_live: TimeToLive::default(),
            started,
            started_at_ms: world.now_ms(),
            catalog,
            world,
            facts: Arc::new(facts),
            log_lines,
            process,
            replica_set: None,
            default_concerns: DefaultConcerns::default(),
        }
    }

    /// Takes commands that are for tests of clients alone, such as `configureFailPoint`.
    pub fn enable_test_commands(&mut self) {
        self.fail_points.allow();
    }

    /// Interrupts all commands, those that come later too, and the server's own work: it ends.
    pub fn interrupt_all(&self) {
        self.operations.interrupt_all();
        // The last checkpoint could not be made otherwise.
        self.write_lock.release();
        self.auto_compaction.stop_and_wait();
    }

    /// An operation of the server's own, which ends with it.
    pub fn own_operation(&self) -> Arc<OperationContext> {
        OperationContext::new(self.operations.interruption_of_own(), MemoryLimits::none())
    }

    /// Closes cursors that nobody asked for in a long time, and ends sessions that nobody used. Call it every few seconds.
    pub fn close_idle_cursors(&self) {
        let now = Instant::now();
        self.cursors.purge(now, self.parameters.cursor_timeout());
        self.end_idle_sessions(now, SESSION_TIMEOUT);
    }

    /// Ends sessions that nobody used for that long, with the cursors that they left, whatever the cursors' own timeout.
    fn end_idle_sessions(&self, now: Instant, timeout: Duration) {
        let busy: LazyCell<HashSet<SessionId>, _> = LazyCell::new(|| self.operations.sessions_at_work());
        let ended = self.sessions.expire(now, timeout, &|session| busy.contains(&session));
        if !ended.is_empty() {
            let ids: HashSet<SessionId> = ended.iter().map(|(session, _)| *session).collect();
            self.cursors.end_sessions(|session| ids.contains(&session));
            if let Err(failure) = self.catalog.forget_write_histories(ended) {
                tracing::warn!(target: "CONTROL", error = %failure, "What ended sessions left stays until the next start");
            }
        }
    }

    /// Asks commands for privileges from now on.
    pub fn enforce_access(&self) {
        self.access.enforce();
    }

    /// Makes a user of `admin` with the role `root`, before anybody can be asked who may.
    /// # Errors
    /// As `createUser`.
    pub fn make_root_user(&self, name: &str, password: &str) -> Result<(), Failure> {
        let roles: ArrayBuf = ["root"].into_iter().collect();
        let body = DocumentBuf::new().with("createUser", name).with("pwd", password).with("roles", &roles);
        let mut connection = ClientConnection::new(0, Peer::Unix);
        let request = Request::new(DATABASE, body.as_ref(), None);
        let mut reply = Vec::new();
        if self.run(&mut connection, request, RunOn::OwnThread, &mut reply).is_err() {
            return Err(Failure::new(ErrorCode::OPERATION_FAILED, "it would have to wait"));
        }
        let reply = DocumentRef::trusted(&reply);
        match reply.get("errmsg").and_then(ValueRef::as_str) {
            None => Ok(()),
            Some(message) => Err(Failure::new(ErrorCode::OPERATION_FAILED, message)),
        }
    }

    /// Whether a connection must log in before it may do anything, and has not.
    pub fn asks_for_login(&self, connection: &ClientConnection) -> bool {
        self.access.is_enforced() && connection.user.is_none()
    }

    /// Whether a login is needed to do anything, and there is nobody yet who could log in.
    pub fn waits_for_first_user(&self) -> bool {
        self.access.is_enforced() && localhost_exception::is_open(self)
    }

    /// Closes a cursor whatever it reads, as OP_KILL_CURSORS does, unless it is another user's.
    pub fn close_cursor(&self, connection: &mut ClientConnection, id: i64) {
        if self.access.is_enforced() {
            // Who cannot be read anew is logged out.
            let _ = connection.renew_user(self);
            let asker = Asker::of(self, connection);
            if !may_close(self, asker.as_ref(), id) {
                return;
            }
        }
        self.cursors.kill(id, None);
    }
}
