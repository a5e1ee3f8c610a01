//! Server parameters, for `getParameter` and `setParameter`. A parameter that can be set has its effect. Other
//! parameters show the server's value, or MongoDB's where nothing in this server depends on it.

mod at_startup;
mod known;
mod limits;

pub use at_startup::parameters_of_startup;
pub use known::is_known as is_known_parameter;
pub use limits::TRANSACTION_MEMORY_BYTES;

use crate::audit_parameter;
use crate::connection_rate;
use crate::feature_compatibility;
use crate::log_verbosity::LogVerbosity;
use crate::service::Service;
use bunko_access::Mechanism;
use bunko_authority::shown_text;
use bunko_bson::{DocumentBuf, DocumentRef, MAX_DEPTH_ACCEPTED, Value, ValueRef, number};
use bunko_errors::{Failure, Result};
use bunko_operation::{DiskUse, Gatherer, STAGE_BYTES_MAX, StageLimits, WORKERS_MAX};
use bunko_query::CollectionScans;
use bunko_request::fields::truth;
use bunko_session::cursors::CURSOR_TIMEOUT;
use bunko_session::sessions::{SESSION_TIMEOUT_MINUTES, SESSIONS_MAX};
use limits::{
    ACTIVE_BUILDS, BUILD_MEMORY, LOCK_REQUEST, OPERATION_WORKERS, SEARCH_MEMORY, SNAPSHOT_WINDOW, TRANSACTION_MEMORY,
    VECTOR_MEMORY, write_active_builds, write_build_memory, write_kept_for_cursors_max, write_lock_request,
    write_search_memory, write_snapshot_window, write_stage_limit, write_transaction_lifetime,
    write_transaction_memory, write_vector_memory, write_workers_max,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Fewest iterations of SCRAM, as MongoDB has it.
/// Source: MongoDB manual, parameter `scramIterationCount`.
const ITERATIONS_MIN: i64 = 5_000;
/// Most of them: a login must not take a client longer than some seconds.
const ITERATIONS_MAX: i64 = 10_000_000;
/// Parameter for the delay before a failed login is refused, and its largest value in milliseconds.
/// Source: MongoDB manual, parameter `authFailedDelayMs`.
const LOGIN_DELAY: &str = "authFailedDelayMs";
const LOGIN_DELAY_MS_MAX: u64 = 5_000;
/// Most bytes of `automationServiceDescriptor`.
/// Source: MongoDB manual, "Server Parameters".
const DESCRIPTOR_BYTES_MAX: usize = 64;

/// How long a transaction may be open, in seconds.
/// Source: MongoDB manual, parameter `transactionLifetimeLimitSeconds`.
const TRANSACTION_LIFETIME_S: i64 = 60;

/// The server's parameters.
#[derive(Debug)]
pub struct Parameters {
    cursor_timeout_ms: AtomicI64,
    /// Most deleted data that is kept only because cursors may still read it, in MB; 0 if engines decide.
    kept_for_cursors_max_mb: AtomicI64,
    journal_commit_interval_ms: i32,
    is_quiet: AtomicBool,
    /// Whether queries with conditions may not read all documents.
    refuses_scans: AtomicBool,
    /// The cluster parameter `defaultMaxTimeMS`; 0 for no limit.
    default_read_time_ms: AtomicI64,
    descriptor: Mutex<String>,
    transaction_lifetime_s: AtomicI64,
    /// Age in seconds up to which change streams show the document before a change; 0 for no limit. It comes from the
    /// cluster parameter `changeStreamOptions`, and streams hold it.
    pub(crate) image_expiry_s: Arc<AtomicI64>,
    /// Most bytes that a stage may gather in memory, by [`Gatherer`].
    stage_bytes_max: [AtomicU64; Gatherer::ALL.len()],
    allows_disk_use: AtomicBool,
    /// Most threads that work for one operation at once.
    workers_max: AtomicU32,
    pub(crate) verbosity: LogVerbosity,
}

impl Parameters {
    /// The defaults, with what was decided when the server started.
    pub fn new(journal_commit_interval: Duration) -> Self {
        Self {
            cursor_timeout_ms: AtomicI64::new(CURSOR_TIMEOUT.as_millis() as i64),
            kept_for_cursors_max_mb: AtomicI64::new(0),
            journal_commit_interval_ms: journal_commit_interval.as_millis() as i32,
            is_quiet: AtomicBool::new(false),
            refuses_scans: AtomicBool::new(false),
            default_read_time_ms: AtomicI64::new(0),
            descriptor: Mutex::default(),
            transaction_lifetime_s: AtomicI64::new(TRANSACTION_LIFETIME_S),
            image_expiry_s: Arc::default(),
            stage_bytes_max: std::array::from_fn(|_| AtomicU64::new(STAGE_BYTES_MAX)),
            allows_disk_use: AtomicBool::new(true),
            workers_max: AtomicU32::new(WORKERS_MAX),
            verbosity: LogVerbosity::default(),
        }
    }

    /// How long a cursor may wait for its `getMore`.
    pub fn cursor_timeout(&self) -> Duration {
        Duration::from_millis(self.cursor_timeout_ms.load(Ordering::Relaxed).unsigned_abs())
    }

    /// Most bytes of deleted data that are kept only for cursors, if the parameter is set.
    pub(crate) fn kept_for_cursors_max(&self) -> Option<u64> {
        let megabytes = self.kept_for_cursors_max_mb.load(Ordering::Relaxed);
        u64::try_from(megabytes).ok().filter(|megabytes| *megabytes > 0).map(|megabytes| megabytes << 20)
    }

    /// How long a transaction may be open.
    pub(crate) fn transaction_lifetime(&self) -> Duration {
        Duration::from_secs(self.transaction_lifetime_s.load(Ordering::Relaxed).unsigned_abs())
    }

    /// Sets how long a transaction may be open, in seconds.
    pub fn set_transaction_lifetime(&self, seconds: u32) {
        self.transaction_lifetime_s.store(seconds.into(), Ordering::Relaxed);
    }

    /// Time limit of reads without `maxTimeMS`.
    pub(crate) fn default_read_time(&self) -> Option<Duration> {
        let milliseconds = self.default_read_time_ms.load(Ordering::Relaxed);
        u64::try_from(milliseconds).ok().filter(|limit| *limit > 0).map(Duration::from_millis)
    }

    /// Sets that limit from the cluster parameter `defaultMaxTimeMS`.
    pub(crate) fn set_default_read_time(&self, parameter: DocumentRef<'_>) {
        let milliseconds = parameter.get("readOperations").and_then(number::clamp_to_i64).unwrap_or(0);
        self.default_read_time_ms.store(milliseconds, Ordering::Relaxed);
    }

    /// Sets the age of documents before a change from the cluster parameter `changeStreamOptions`.
    pub(crate) fn set_image_expiry(&self, parameter: DocumentRef<'_>) {
        let images = parameter.get("preAndPostImages").and_then(ValueRef::as_document);
        let seconds = images.and_then(|images| images.get("expireAfterSeconds")).and_then(number::as_i64_exact);
        self.image_expiry_s.store(seconds.unwrap_or(0), Ordering::Relaxed);
    }

    /// Most bytes that a stage may gather in memory.
    pub(crate) fn stage_bytes_max(&self, gatherer: Gatherer) -> u64 {
        self.stage_bytes_max[gatherer as usize].load(Ordering::Relaxed)
    }

    /// Puts the current limits of stages into the limits of an operation that begins.
    pub(crate) fn limit_stages(&self, limits: &mut StageLimits) {
        for gatherer in Gatherer::ALL {
            limits.set_bytes_max(gatherer, self.stage_bytes_max(gatherer));
        }
        let is_allowed = self.allows_disk_use.load(Ordering::Relaxed);
        limits.disk_use = if is_allowed { DiskUse::Allowed } else { DiskUse::Refused };
        limits.workers_max = self.workers_max.load(Ordering::Relaxed);
    }

    /// Whether queries with conditions may read all documents.
    pub(crate) fn collection_scans(&self) -> CollectionScans {
        if self.refuses_scans.load(Ordering::Relaxed) { CollectionScans::Refused } else { CollectionScans::Allowed }
    }

    /// Whether the log leaves out connections that are opened and closed.
    pub fn is_quiet(&self) -> bool {
        self.is_quiet.load(Ordering::Relaxed)
    }

    /// The text about the automation service that `hello` shows, if it is set.
    pub(crate) fn automation_service_descriptor(&self) -> Option<String> {
        let descriptor = self.descriptor.lock();
        (!descriptor.is_empty()).then(|| descriptor.clone())
    }
}

/// One parameter.
pub(crate) struct Parameter {
    pub name: &'static str,
    pub read: fn(&Service) -> Result<Value>,
    /// Says whether it can be set now, and does.
    pub write: Option<fn(&Service, ValueRef<'_>) -> Result<()>>,
    /// Whether `MongoDB` sets it when it starts.
    pub at_startup: bool,
    /// Sets what can be set when the server starts, and no more after that.
    pub begin: Option<fn(&Service, ValueRef<'_>) -> Result<()>>,
}

impl Parameter {
    /// Makes a parameter whose value is the same whatever is set.
    const fn fixed(name: &'static str, read: fn(&Service) -> Result<Value>) -> Self {
        Self { name, read, write: None, at_startup: false, begin: None }
    }

    /// Makes a parameter that is decided when the server starts.
    const fn startup(name: &'static str, read: fn(&Service) -> Result<Value>) -> Self {
        Self { name, read, write: None, at_startup: true, begin: None }
    }

    /// Makes a parameter that can be set only when the server starts.
    const fn set_at_startup(
        name: &'static str,
        read: fn(&Service) -> Result<Value>,
        begin: fn(&Service, ValueRef<'_>) -> Result<()>,
    ) -> Self {
        Self { name, read, write: None, at_startup: true, begin: Some(begin) }
    }

    /// Makes a parameter that can be set at any time.
    pub(crate) const fn settable(
        name: &'static str,
        read: fn(&Service) -> Result<Value>,
        write: fn(&Service, ValueRef<'_>) -> Result<()>,
    ) -> Self {
        Self { name, read, write: Some(write), at_startup: true, begin: None }
    }
}

/// A parameter that limits what a kind of stage may gather in memory.
macro_rules! stage_limit {
    ($name:literal, $gatherer:expr) => {
        Parameter::settable(
            $name,
            |service| Ok(Value::Int64(service.parameters.stage_bytes_max($gatherer) as i64)),
            |service, value| write_stage_limit(service, $name, $gatherer, value),
        )
    };
}

/// How often a mechanism hashes the passwords that are set from then on.
macro_rules! scram_iterations {
    ($name:literal, $mechanism:expr) => {
        Parameter::settable(
            $name,
            |service| Ok(Value::Int32(service.authority.access.iterations($mechanism).load(Ordering::Relaxed))),
            |service, value| write_iterations(service, $name, $mechanism, value),
        )
    };
}

/// All parameters, by name.
pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter::startup("KeysRotationIntervalSec", |_| Ok(Value::Int32(7_776_000))),
    Parameter::startup("ShardingTaskExecutorPoolReplicaSetMatching", |_| text("automatic")),
    Parameter::settable(
        "allowDiskUseByDefault",
        |service| Ok(Value::Boolean(service.parameters.allows_disk_use.load(Ordering::Relaxed))),
        |service, value| {
            service.parameters.allows_disk_use.store(truth(value), Ordering::Relaxed);
            Ok(())
        },
    ),
    audit_parameter::SUCCESSES,
    Parameter::settable(
        LOGIN_DELAY,
        |service| Ok(Value::Int32(service.authority.access.failure_delay().as_millis() as i32)),
        write_login_delay,
    ),
    Parameter::fixed("authSchemaVersion", |_| Ok(Value::Int32(5))),
    at_startup::MECHANISMS,
    Parameter::settable("automationServiceDescriptor", read_descriptor, write_descriptor),
    Parameter::settable("cursorTimeoutMillis", read_cursor_timeout, write_cursor_timeout),
    Parameter::settable(
        "diagnosticDataCollectionEnabled",
        |_| Ok(Value::Boolean(false)),
        |_, value| {
            let is_asked_for = truth(value);
            if is_asked_for { Err(Failure::not_supported_yet("diagnosticDataCollectionEnabled: true")) } else { Ok(()) }
        },
    ),
    at_startup::LOCALHOST_BYPASS,
    Parameter::startup("enableTestCommands", |service| Ok(Value::Boolean(service.fail_points.are_allowed()))),
    Parameter::fixed("featureCompatibilityVersion", |service| {
        Ok(Value::Document(DocumentBuf::new().with("version", feature_compatibility::version(&service.catalog)?)))
    }),
    Parameter::settable(
        "idleCursorKeepMaxMB",
        |service| Ok(Value::Int64(service.parameters.kept_for_cursors_max_mb.load(Ordering::Relaxed))),
        write_kept_for_cursors_max,
    ),
    connection_rate::BURST_CAPACITY,
    connection_rate::MAX_QUEUE_DEPTH,
    connection_rate::LIMITER_BYPASS,
    connection_rate::LIMITER_ENABLED,
    connection_rate::RATE_PER_SECOND,
    stage_limit!("internalDocumentSourceBucketAutoMaxMemoryBytes", Gatherer::BucketAuto),
    stage_limit!("internalDocumentSourceDensifyMaxMemoryBytes", Gatherer::Densify),
    stage_limit!("internalDocumentSourceGraphLookupMaxMemoryBytes", Gatherer::GraphLookup),
    stage_limit!("internalDocumentSourceGroupMaxMemoryBytes", Gatherer::Group),
    stage_limit!("internalDocumentSourceLookupCacheSizeBytes", Gatherer::Lookup),
    stage_limit!("internalDocumentSourceSetWindowFieldsMaxMemoryBytes", Gatherer::Window),
    stage_limit!("internalQueryFacetBufferSizeBytes", Gatherer::Facet),
    stage_limit!("internalQueryMaxBlockingSortMemoryUsageBytes", Gatherer::Sort),
    Parameter::startup("journalCommitInterval", |service| {
        Ok(Value::Int32(service.parameters.journal_commit_interval_ms))
    }),
    Parameter::startup("localLogicalSessionTimeoutMinutes", |_| Ok(Value::Int32(SESSION_TIMEOUT_MINUTES))),
    Parameter::settable(
        "logComponentVerbosity",
        |service| Ok(Value::Document(service.parameters.verbosity.read())),
        |service, value| service.parameters.verbosity.write(value),
    ),
    Parameter::settable("logLevel", |service| Ok(Value::Int32(service.parameters.verbosity.level())), write_log_level),
    Parameter::startup("maxBSONDepth", |_| Ok(Value::Int32(MAX_DEPTH_ACCEPTED as i32))),
    Parameter::settable(
        BUILD_MEMORY,
        |service| Ok(Value::Int32((service.catalog.index_builds().bytes_max() >> 20) as i32)),
        write_build_memory,
    ),
    Parameter::settable(
        ACTIVE_BUILDS,
        |service| Ok(Value::Int32(service.catalog.index_builds().active_max() as i32)),
        write_active_builds,
    ),
    Parameter::startup("maxSessions", |_| Ok(Value::Int32(SESSIONS_MAX as i32))),
    Parameter::settable(
        LOCK_REQUEST,
        |service| Ok(Value::Int32(service.catalog.transaction_memory().lock_request_ms_max())),
        write_lock_request,
    ),
    Parameter::settable(
        SNAPSHOT_WINDOW,
        |service| Ok(Value::Int32(service.catalog.past_states().window_s() as i32)),
        write_snapshot_window,
    ),
    Parameter::settable(
        "notablescan",
        |service| Ok(Value::Boolean(service.parameters.collection_scans() == CollectionScans::Refused)),
        |service, value| {
            service.parameters.refuses_scans.store(truth(value), Ordering::Relaxed);
            Ok(())
        },
    ),
    Parameter::settable(
        OPERATION_WORKERS,
        |service| Ok(Value::Int32(service.parameters.workers_max.load(Ordering::Relaxed) as i32)),
        write_workers_max,
    ),
    Parameter::settable(
        "quiet",
        |service| Ok(Value::Boolean(service.parameters.is_quiet())),
        |service, value| {
            service.parameters.is_quiet.store(truth(value), Ordering::Relaxed);
            Ok(())
        },
    ),
    Parameter::settable(
        "redactClientLogData",
        |service| Ok(Value::Boolean(service.log_lines.is_redacted())),
        |service, value| {
            service.log_lines.set_redacted(truth(value));
            Ok(())
        },
    ),
    Parameter::startup("requireApiVersion", |_| Ok(Value::Boolean(false))),
    scram_iterations!("scramIterationCount", Mechanism::ScramSha1),
    scram_iterations!("scramSHA256IterationCount", Mechanism::ScramSha256),
    Parameter::settable(
        SEARCH_MEMORY,
        |service| Ok(Value::Int64(service.catalog.search_memory().bytes_max() as i64)),
        write_search_memory,
    ),
    Parameter::startup("tlsMode", |service| text(&service.process.tls_mode)),
    Parameter::startup("traceExceptions", |_| Ok(Value::Boolean(false))),
    Parameter::settable(
        "transactionLifetimeLimitSeconds",
        |service| Ok(Value::Int32(service.parameters.transaction_lifetime().as_secs() as i32)),
        write_transaction_lifetime,
    ),
    Parameter::settable(
        TRANSACTION_MEMORY,
        |service| Ok(Value::Int64(service.catalog.transaction_memory().one_bytes_max() as i64)),
        write_transaction_memory,
    ),
    Parameter::settable(
        "ttlMonitorEnabled",
        |service| Ok(Value::Boolean(service.time_to_live.is_enabled())),
        |service, value| {
            service.time_to_live.set_enabled(truth(value));
            Ok(())
        },
    ),
    Parameter::settable(
        "ttlMonitorSleepSecs",
        |service| Ok(Value::Int64(service.time_to_live.sleep_seconds())),
        write_ttl_sleep,
    ),
    Parameter::settable(
        VECTOR_MEMORY,
        |service| Ok(Value::Int64(service.catalog.vector_memory().bytes_max() as i64)),
        write_vector_memory,
    ),
];

#[allow(clippy::unnecessary_wraps)]
fn text(text: &str) -> Result<Value> {
    Ok(Value::from(ValueRef::String(text)))
}

/// The refusal of a value.
pub(crate) fn invalid(name: &str, value: ValueRef<'_>, why: &str) -> Failure {
    Failure::bad_value(format!("Invalid value for parameter {name}: {} {why}", shown_text(value)))
}

pub(crate) fn whole_number(name: &str, value: ValueRef<'_>) -> Result<i64> {
    number::as_i64_exact(value).ok_or_else(|| invalid(name, value, "is not a whole number"))
}

#[allow(clippy::unnecessary_wraps)]
fn read_cursor_timeout(service: &Service) -> Result<Value> {
    Ok(Value::Int64(service.parameters.cursor_timeout_ms.load(Ordering::Relaxed)))
}

fn write_cursor_timeout(service: &Service, value: ValueRef<'_>) -> Result<()> {
    let milliseconds = whole_number("cursorTimeoutMillis", value)?;
    if milliseconds <= 0 {
        return Err(invalid("cursorTimeoutMillis", value, "is not greater than 0"));
    }
    service.parameters.cursor_timeout_ms.store(milliseconds, Ordering::Relaxed);
    Ok(())
}

fn write_iterations(service: &Service, name: &str, mechanism: Mechanism, value: ValueRef<'_>) -> Result<()> {
    let count = whole_number(name, value)?;
    if !(ITERATIONS_MIN..=ITERATIONS_MAX).contains(&count) {
        return Err(invalid(name, value, &format!("is not within {ITERATIONS_MIN} to {ITERATIONS_MAX}")));
    }
    service.authority.access.iterations(mechanism).store(count as i32, Ordering::Relaxed);
    Ok(())
}

fn write_login_delay(service: &Service, value: ValueRef<'_>) -> Result<()> {
    let milliseconds = whole_number(LOGIN_DELAY, value)?;
    let milliseconds = u64::try_from(milliseconds).ok().filter(|delay| *delay <= LOGIN_DELAY_MS_MAX);
    let milliseconds =
        milliseconds.ok_or_else(|| invalid(LOGIN_DELAY, value, &format!("is not within 0 to {LOGIN_DELAY_MS_MAX}")))?;
    service.authority.access.set_failure_delay(Duration::from_millis(milliseconds));
    Ok(())
}

fn read_descriptor(service: &Service) -> Result<Value> {
    text(&service.parameters.descriptor.lock())
}

fn write_descriptor(service: &Service, value: ValueRef<'_>) -> Result<()> {
    const NAME: &str = "automationServiceDescriptor";
    let ValueRef::String(descriptor) = value else {
        let kind = value.kind().alias();
        return Err(Failure::type_mismatch(format!(
            "Value for parameter {NAME} must be of type 'string', found {kind}"
        )));
    };
    if descriptor.len() > DESCRIPTOR_BYTES_MAX {
        let message = format!("Value for parameter {NAME} must be no more than {DESCRIPTOR_BYTES_MAX} bytes");
        return Err(Failure::new(bunko_errors::ErrorCode::OVERFLOW, message));
    }
    descriptor.clone_into(&mut service.parameters.descriptor.lock());
    Ok(())
}

fn write_ttl_sleep(service: &Service, value: ValueRef<'_>) -> Result<()> {
    let seconds = whole_number("ttlMonitorSleepSecs", value)?;
    if seconds <= 0 {
        return Err(invalid("ttlMonitorSleepSecs", value, "is not greater than 0"));
    }
    service.time_to_live.set_sleep_seconds(seconds);
    Ok(())
}

fn write_log_level(service: &Service, value: ValueRef<'_>) -> Result<()> {
    let level = match value {
        ValueRef::Boolean(boolean) => i64::from(boolean),
        _ => number::clamp_to_i64(value).ok_or_else(|| invalid("logLevel", value, "is not a number"))?,
    };
    if level < 0 {
        return Err(invalid("logLevel", value, "is less than 0"));
    }
    service.parameters.verbosity.set_level(level.min(5) as i32);
    Ok(())
}

/// A parameter that is what it is.
pub(crate) fn not_settable(name: &str) -> Failure {
    Failure::new(bunko_errors::ErrorCode::ILLEGAL_OPERATION, format!("not allowed to change [{name}] at runtime"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_sorted_and_unique() {
        assert!(PARAMETERS.is_sorted_by(|a, b| a.name < b.name));
    }
}
