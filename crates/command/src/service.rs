//! The state that all connections share.

use crate::auto_compaction::AutoCompaction;
use crate::connection::ClientConnection;
use crate::flow_control::FlowControl;
use crate::time_to_live::TimeToLive;
use bunko_authority::audit::{AuditOptions, Configuration as AuditConfiguration};
use bunko_authority::{Asker, Authority};
use bunko_bson::{DocumentBuf, ObjectId, Timestamp, Writer};
use bunko_catalog::stored_document::Stamps;
use bunko_catalog::{Catalog, InterruptedBuild};
use bunko_change_stream::Tails;
use bunko_errors::Failure;
use bunko_fail_points::FailPoints;
use bunko_members::{Dial, Members};
use bunko_observe::profiler::Profiler;
use bunko_observe::query_statistics::QueryStatistics;
use bunko_observe::{BackupNotes, ClassLatency, Counters, Latency, LogLines, MemoryCounts};
use bunko_operation::{MemoryLimits, OperationContext};
use bunko_oplog::EntryCount;
use bunko_pipelines::operation_description::Activity;
use bunko_replica_set::ReplicaSet;
use bunko_request::deployment::Deployment;
use bunko_series::OpenBuckets;
use bunko_session::cursors::CursorStore;
use bunko_session::operations::Operations;
use bunko_session::sessions::{Kept, SESSION_TIMEOUT, SessionId, SessionTable};
use bunko_session::transactions::{Entry, TransactionContext, Transactions};
use bunko_session::write_lock::WriteLock;
use bunko_settings::cluster_parameters::{self, CHANGE_STREAM_OPTIONS, DEFAULT_MAX_TIME};
use bunko_settings::query_settings::AllQuerySettings;
use bunko_settings::{ConnectionPace, DefaultConcerns, Parameters, UserWriteBlock, find_stored};
use bunko_store::Clock;
use bunko_wire::Compressor;
use parking_lot::Mutex;
use std::cell::LazyCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// The server's sources of time and randomness.
pub struct World {
    /// Dates and elapsed time.
    pub clock: Clock,
    /// Random bits, for cursor ids, nonces and UUIDs.
    pub random: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// The five bytes that this process puts into object ids.
    pub process: [u8; 5],
    /// Seed of the random numbers in expressions.
    pub(crate) seed: u64,
    object_ids: AtomicU32,
    /// Seconds and increment of the last timestamp given.
    last_timestamp: AtomicU64,
}

impl World {
    /// A world with this clock and this source of randomness.
    pub fn new(clock: Clock, random: Arc<dyn Fn() -> u64 + Send + Sync>) -> Self {
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
        self.clock.now_ms() as i64
    }
}

impl Stamps for World {
    fn object_id(&self) -> ObjectId {
        let seconds = (self.clock.now_ms() / 1000) as u32;
        ObjectId::from_parts(seconds, self.process, self.object_ids.fetch_add(1, Ordering::Relaxed))
    }

    fn timestamp(&self) -> Timestamp {
        let now = (self.clock.now_ms() / 1000) << 32;
        let next = self
            .last_timestamp
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some((last + 1).max(now + 1)))
            .map_or(now + 1, |last| (last + 1).max(now + 1));
        Timestamp { seconds: (next >> 32) as u32, increment: next as u32 }
    }
}

/// Facts about the process and its machine.
#[derive(Clone, Debug)]
pub struct Facts {
    /// `host:port` as clients should name this server.
    pub host: Arc<str>,
    /// The command line.
    pub arguments: Vec<String>,
    /// Options from flags and the configuration file, as `getCmdLineOpts` shows them under `parsed`.
    pub parsed_options: DocumentBuf,
    /// Maximum number of connections at once.
    pub connections_max: u32,
    /// Memory limits of operations.
    pub memory_limits: MemoryLimits,
    /// How often the journal is synced.
    pub journal_commit_interval: Duration,
    /// Operations that take at least this long are logged, until `profile` sets another limit.
    pub slow_operation: Duration,
    /// Compression methods that clients may use.
    pub compressors: Vec<Compressor>,
}

/// Hooks through which commands act on the process and ask about it.
pub struct Process {
    /// Shuts the server down in order (`shutdown`).
    pub shut_down: Box<dyn Fn() + Send + Sync>,
    /// Continues the log in a new file (`logRotate`), or returns why it could not.
    pub rotate_log: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Switches to the certificates that are on disk now (`rotateCertificates`), or returns why it could not.
    pub rotate_certificates: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Which connections are encrypted: the value of `net.tls.mode`.
    pub tls_mode: String,
    /// The URL to which spans of slow operations are sent, as it was given; empty if none are.
    pub trace_endpoint: String,
    /// The certificate that the server presents, if it speaks TLS.
    pub certificate: Box<dyn Fn() -> Option<OwnCertificate> + Send + Sync>,
    /// Whether a host name or address is this machine's. It may do a name lookup, which takes time.
    pub is_this_machine: Box<dyn Fn(&str) -> bool + Send + Sync>,
    /// Opens a connection to another member of the set.
    pub dial: Dial,
    /// Shuts the server down in order, and starts it again.
    pub restart: Box<dyn Fn() + Send + Sync>,
}

/// The server's certificate, as `serverStatus` shows it.
pub struct OwnCertificate {
    /// The certificate's subject.
    pub subject: String,
    /// End of its validity, in milliseconds since 1970.
    pub not_after_ms: i64,
}

impl Default for Process {
    /// A process without a log or a certificate, which cannot be shut down.
    fn default() -> Self {
        Self {
            shut_down: Box::new(|| ()),
            rotate_log: Box::new(|| Ok(())),
            rotate_certificates: Box::new(|| Ok(())),
            tls_mode: "disabled".to_owned(),
            trace_endpoint: String::new(),
            certificate: Box::new(|| None),
            is_this_machine: Box::new(|host| host == "localhost"),
            dial: Arc::new(|host: &str| {
                Err(bunko_client::ClientError::unreachable(host, "this process connects to nothing"))
            }),
            restart: Box::new(|| ()),
        }
    }
}

/// Everything that commands use.
pub struct Service {
    /// Databases, collections, indexes.
    pub catalog: Arc<Catalog>,
    /// Users, roles, logins, and the audit log.
    pub authority: Authority,
    /// Open cursors.
    pub cursors: CursorStore,
    /// Tails of the log that change streams share.
    pub(crate) stream_tails: Tails,
    /// The time series buckets that take the next measurements.
    pub(crate) open_buckets: OpenBuckets,
    /// The sessions of clients.
    pub(crate) sessions: Arc<SessionTable>,
    /// The transactions that are open.
    pub(crate) transactions: Transactions,
    /// Durations of ended transactions, from their first command to their end.
    pub(crate) transaction_latencies: Arc<Mutex<ClassLatency>>,
    /// Running operations, for `currentOp` and `killOp`.
    pub operations: Operations,
    /// Decides which operations are recorded or logged.
    pub profiler: Profiler,
    /// The thread of `autoCompact`.
    pub(crate) auto_compaction: AutoCompaction,
    /// Failpoints that tests switch on.
    pub(crate) fail_points: FailPoints,
    /// Holds writes back while files are copied.
    pub write_lock: WriteLock,
    /// Whether users may write.
    pub(crate) user_write_block: UserWriteBlock,
    /// Settings that an operator attached to query shapes.
    pub(crate) query_settings: AllQuerySettings,
    /// Events of backups that `bunko backup` has told of.
    pub(crate) backup_notes: BackupNotes,
    /// Statistics of queries, for `$queryStats`.
    pub(crate) query_statistics: Arc<QueryStatistics>,
    /// Values that `getParameter` and `setParameter` see.
    pub parameters: Parameters,
    /// Limits on the rate of new connections.
    pub pace: ConnectionPace,
    /// Counters for `serverStatus` and `top`.
    pub counters: Arc<Counters>,
    /// Counts of events that a lack of memory caused.
    pub memory_counts: MemoryCounts,
    /// Counter of oplog entries.
    pub entry_count: Arc<EntryCount>,
    /// The thread that deletes expired documents.
    pub time_to_live: TimeToLive,
    /// Sources of time and randomness.
    pub world: World,
    /// The process and its machine.
    pub facts: Arc<Facts>,
    /// The last lines of the log.
    pub log_lines: Arc<LogLines>,
    /// When the service began.
    started: Instant,
    /// Wall-clock time at which the service began, in milliseconds since 1970.
    pub started_at_ms: i64,
    /// The process that the service runs in.
    pub process: Process,
    /// The replica set that this server is a member of; `None` on a standalone server.
    pub(crate) replica_set: Option<Arc<ReplicaSet>>,
    /// The part in a set of several members.
    pub(crate) members: OnceLock<Arc<Members>>,
    /// The service itself, for threads that outlive a command.
    pub(crate) own: OnceLock<Weak<Self>>,
    /// Whether the log has the line that a set of several counts this server among its members: it is written once.
    pub(crate) is_refusal_told: AtomicBool,
    /// Index builds that a stop or a step-down interrupted, until the thread `index-build` takes them.
    pub(crate) builds_to_resume: Mutex<Vec<InterruptedBuild>>,
    /// Slows writers down while the commit point is far behind.
    pub(crate) flow_control: FlowControl,
    /// Read and write concerns of commands that name none.
    pub(crate) default_concerns: DefaultConcerns,
}

impl Service {
    /// A service over an open catalog.
    pub fn new(catalog: Arc<Catalog>, world: World, facts: Facts, log_lines: Arc<LogLines>, process: Process) -> Self {
        let parameters = Parameters::new(facts.journal_commit_interval);
        let started = world.clock.now();
        let transaction_latencies: Arc<Mutex<ClassLatency>> = Arc::default();
        let latencies = Arc::clone(&transaction_latencies);
        let note_duration = move |open_for: Duration| {
            latencies.lock().note(Latency { micros: open_for.as_micros() as u64, operations: 1 });
        };
        let service = Self {
            authority: Authority::new(Arc::clone(&catalog), world.clock.clone(), Arc::clone(&world.random)),
            cursors: CursorStore::default(),
            sessions: Arc::new(SessionTable::new(started, catalog.take_write_histories())),
            stream_tails: Tails::default(),
            open_buckets: OpenBuckets::default(),
            transactions: Transactions::new(world.clock.clone(), Box::new(note_duration)),
            transaction_latencies,
            operations: Operations::new(world.clock.clone()),
            profiler: Profiler::new(facts.slow_operation),
            auto_compaction: AutoCompaction::default(),
            fail_points: FailPoints::new(Arc::clone(&world.random)),
            write_lock: WriteLock::default(),
            user_write_block: UserWriteBlock::kept(&catalog),
            query_settings: AllQuerySettings::kept(&catalog),
            backup_notes: BackupNotes::default(),
            query_statistics: QueryStatistics::new(Arc::clone(&facts.memory_limits.server)),
            parameters,
            pace: ConnectionPace::default(),
            memory_counts: MemoryCounts::default(),
            counters: Arc::default(),
            entry_count: Arc::default(),
            time_to_live: TimeToLive::default(),
            started,
            started_at_ms: world.now_ms(),
            is_refusal_told: AtomicBool::new(false),
            builds_to_resume: Mutex::new(catalog.interrupted_builds()),
            catalog,
            world,
            facts: Arc::new(facts),
            log_lines,
            process,
            replica_set: None,
            members: OnceLock::new(),
            own: OnceLock::new(),
            flow_control: FlowControl::default(),
            default_concerns: DefaultConcerns::default(),
        };
        service.apply_cluster_parameters();
        service
    }

    /// Applies the stored cluster parameters that the server keeps at hand.
    pub(crate) fn apply_cluster_parameters(&self) {
        for name in [CHANGE_STREAM_OPTIONS, DEFAULT_MAX_TIME] {
            let kept = find_stored(&self.catalog, cluster_parameters::DATABASE, cluster_parameters::COLLECTION, name);
            // If the setting cannot be read, there is no limit, and the first command that reads it reports why.
            if let Ok(Some(kept)) = kept {
                cluster_parameters::apply(&self.parameters, name, kept.as_ref());
            }
        }
    }

    /// Time since the service began.
    pub fn uptime(&self) -> Duration {
        self.world.clock.since(self.started)
    }

    /// Accepts commands that only client tests use, such as `configureFailPoint`.
    pub fn enable_test_commands(&mut self) {
        self.fail_points.allow();
    }

    /// Interrupts all commands, later ones too, and the server's own work: the server is shutting down.
    pub fn interrupt_all(&self) {
        self.operations.interrupt_all();
        // The last checkpoint needs the write lock to be open.
        self.write_lock.release();
        self.auto_compaction.stop_and_wait();
    }

    /// An operation for the server's own work, interrupted when the server shuts down.
    pub fn own_operation(&self) -> Arc<OperationContext> {
        OperationContext::new(self.operations.interruption_of_own(), MemoryLimits::none())
    }

    /// The work that the server does now.
    pub(crate) fn activity(&self) -> Activity<'_> {
        Activity {
            catalog: &self.catalog,
            operations: &self.operations,
            transactions: &self.transactions,
            transaction_lifetime: self.parameters.transaction_lifetime(),
            cursors: &self.cursors,
            host: &self.facts.host,
            now: self.world.clock.now(),
            now_ms: self.world.now_ms(),
        }
    }

    /// The state that transactions use and change.
    pub(crate) fn transaction_context(&self) -> TransactionContext<'_> {
        TransactionContext { catalog: &self.catalog, transactions: &self.transactions, cursors: &self.cursors }
    }

    /// Aborts the chosen open transactions. If a command works with one, it is aborted when the command ends.
    pub(crate) fn abort_transactions(&self, is_chosen: impl FnMut(&Entry) -> bool) {
        self.transaction_context().abort(is_chosen);
    }

    /// Aborts transactions that are open for too long, and drops past states that were kept for too long. Call it every
    /// second or so.
    pub fn abort_expired_transactions(&self) {
        self.catalog.past_states().forget_old(self.world.clock.now_ms() / 1000);
        let limit = self.parameters.transaction_lifetime();
        self.transaction_context().abort_expired(self.world.clock.now(), limit, &self.operations);
    }

    /// Closes waiting cursors, oldest snapshots first, until the data that engines retain only for snapshots is within
    /// the limit. Call it every few seconds, on a thread that may block for a moment.
    pub fn close_cursors_that_keep_too_much(&self) {
        self.cursors.close_that_keep_too_much(&self.catalog, self.parameters.kept_for_cursors_max());
    }

    /// Closes cursors and ends sessions that were unused for their timeout. Call it every few seconds.
    pub fn close_idle_cursors(&self) {
        let now = self.world.clock.now();
        self.cursors.purge(now, self.parameters.cursor_timeout());
        self.end_idle_sessions(now, SESSION_TIMEOUT);
    }

    /// Ends sessions that were unused for `timeout`, and closes their cursors whatever the cursors' own timeout is.
    fn end_idle_sessions(&self, now: Instant, timeout: Duration) {
        // The end of a session deletes its write history, and a secondary deletes nothing.
        let kept = if self.may_write() { Kept::AtWork } else { Kept::WithHistory };
        let busy: LazyCell<HashSet<SessionId>, _> = LazyCell::new(|| self.operations.sessions_at_work());
        let ended = self.sessions.expire(now, timeout, kept, &|session| busy.contains(&session));
        if !ended.is_empty() {
            let ids: HashSet<SessionId> = ended.iter().map(|(session, _)| *session).collect();
            self.cursors.end_sessions(|session| ids.contains(&session));
            if let Err(failure) = self.catalog.forget_write_histories(ended) {
                tracing::warn!(target: "CONTROL", id = 144, error = %failure, "Write histories of ended sessions stay until the next start");
            }
        }
    }

    /// Starts the audit log, with the choice of events that clients stored before the server was started.
    /// # Errors
    /// If a filter is malformed.
    pub fn begin_audit(&mut self, options: AuditOptions) -> Result<(), Failure> {
        let kept = match options.configuration {
            AuditConfiguration::AtRunTime => find_stored(
                &self.catalog,
                cluster_parameters::DATABASE,
                cluster_parameters::COLLECTION,
                cluster_parameters::AUDIT_CONFIG,
            )?,
            AuditConfiguration::Fixed(_) => None,
        };
        self.authority.begin_audit(options, kept.as_ref().map(DocumentBuf::as_ref))
    }

    /// Whether the server is a member of a replica set.
    pub(crate) fn deployment(&self) -> Deployment {
        if self.replica_set.is_some() { Deployment::SetMember } else { Deployment::Standalone }
    }

    /// The time in milliseconds since 1970, and the replica set's term; 0 without a set.
    pub(crate) fn time_and_term(&self) -> (u64, i64) {
        let term = self.replica_set.as_ref().map_or(0, |set| set.term());
        (self.world.now_ms() as u64, term)
    }

    /// The value of `$$CLUSTER_TIME`; `None` on a standalone server.
    pub(crate) fn cluster_time(&self) -> Option<Timestamp> {
        self.replica_set.as_ref().map(|set| set.cluster_time.latest())
    }

    /// Appends the times to the reply of a set's member.
    pub(crate) fn write_times(&self, reply: &mut Writer<'_>) {
        if let Some(set) = &self.replica_set {
            set.cluster_time.write(reply);
        }
    }

    /// Closes a cursor as OP_KILL_CURSORS does, whatever it reads, unless it belongs to another user.
    pub fn close_cursor(&self, connection: &mut ClientConnection, id: i64) {
        if self.authority.access.is_enforced() {
            // If reading the user again fails, the connection is logged out.
            let _ = connection.renew_user(&self.authority, &self.transactions);
            let asker = Asker::of(&self.authority, connection);
            let user = asker.as_ref().and_then(Asker::user);
            if user.is_none_or(|user| self.cursors.is_anothers(id, |owner| owner.name == *user)) {
                return;
            }
        }
        self.cursors.kill(id, None);
    }
}
