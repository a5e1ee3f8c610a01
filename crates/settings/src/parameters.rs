//! The values of parameters, where the code that depends on them reads them.

use crate::log_verbosity::LogVerbosity;
use crate::query_statistics::QueryStatisticsLimits;
use bunko_bson::{DocumentRef, ValueRef, number};
use bunko_operation::{DiskUse, Gatherer, STAGE_BYTES_MAX, StageLimits, WORKERS_MAX};
use bunko_query::CollectionScans;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// How long a cursor may wait for its `getMore`.
/// Source: MongoDB manual, parameter `cursorTimeoutMillis`.
const CURSOR_TIMEOUT: Duration = Duration::from_mins(10);

/// How long a transaction may be open, in seconds.
/// Source: MongoDB manual, parameter `transactionLifetimeLimitSeconds`.
const TRANSACTION_LIFETIME_S: i64 = 60;

/// Seconds between passes of the thread that deletes expired documents.
/// Source: MongoDB manual, parameter `ttlMonitorSleepSecs`.
const EXPIRY_SLEEP_S: i64 = 60;

/// How far the commit point may be behind, in seconds.
/// Source: MongoDB manual, parameter `flowControlTargetLagSeconds`.
const TARGET_LAG_S: u32 = 10;

/// The values of the server's parameters.
#[derive(Debug)]
pub struct Parameters {
    pub(crate) cursor_timeout_ms: AtomicI64,
    /// Maximum size of deleted data that is kept only because cursors may still read it, in MB; 0 if engines decide.
    pub(crate) kept_for_cursors_max_mb: AtomicI64,
    pub(crate) journal_commit_interval_ms: i32,
    pub(crate) is_quiet: AtomicBool,
    /// Whether writers are slowed down while the commit point is far behind.
    pub(crate) controls_flow: AtomicBool,
    /// How far the commit point may be behind, in seconds.
    pub(crate) target_lag_s: AtomicU32,
    /// Whether queries with conditions may not read all documents.
    pub(crate) refuses_scans: AtomicBool,
    /// The cluster parameter `defaultMaxTimeMS`; 0 for no limit.
    default_read_time_ms: AtomicI64,
    pub(crate) descriptor: Mutex<String>,
    transaction_lifetime_s: AtomicI64,
    /// Age in seconds up to which change streams show the document before a change; 0 for no limit. It comes from the
    /// cluster parameter `changeStreamOptions`, and streams hold it.
    image_expiry_s: Arc<AtomicI64>,
    /// Maximum number of bytes that a stage may gather in memory, by [`Gatherer`].
    pub(crate) stage_bytes_max: [AtomicU64; Gatherer::ALL.len()],
    pub(crate) allows_disk_use: AtomicBool,
    /// Maximum number of threads that work for one operation at once.
    pub(crate) workers_max: AtomicU32,
    /// Whether expired documents are deleted, and the seconds between passes.
    pub(crate) deletes_expired: AtomicBool,
    pub(crate) expiry_sleep_s: AtomicI64,
    /// The limits on the queries that are counted for `$queryStats`.
    pub query_statistics: QueryStatisticsLimits,
    /// Log verbosity by component.
    pub verbosity: LogVerbosity,
}

impl Parameters {
    /// The defaults, with the choices of the server's start.
    pub fn new(journal_commit_interval: Duration) -> Self {
        Self {
            cursor_timeout_ms: AtomicI64::new(CURSOR_TIMEOUT.as_millis() as i64),
            kept_for_cursors_max_mb: AtomicI64::new(0),
            journal_commit_interval_ms: journal_commit_interval.as_millis() as i32,
            is_quiet: AtomicBool::new(false),
            controls_flow: AtomicBool::new(true),
            target_lag_s: AtomicU32::new(TARGET_LAG_S),
            refuses_scans: AtomicBool::new(false),
            default_read_time_ms: AtomicI64::new(0),
            descriptor: Mutex::default(),
            transaction_lifetime_s: AtomicI64::new(TRANSACTION_LIFETIME_S),
            image_expiry_s: Arc::default(),
            stage_bytes_max: std::array::from_fn(|_| AtomicU64::new(STAGE_BYTES_MAX)),
            allows_disk_use: AtomicBool::new(true),
            workers_max: AtomicU32::new(WORKERS_MAX),
            deletes_expired: AtomicBool::new(true),
            expiry_sleep_s: AtomicI64::new(EXPIRY_SLEEP_S),
            query_statistics: QueryStatisticsLimits::default(),
            verbosity: LogVerbosity::default(),
        }
    }

    /// How long a cursor may wait for its `getMore`.
    pub fn cursor_timeout(&self) -> Duration {
        Duration::from_millis(self.cursor_timeout_ms.load(Ordering::Relaxed).unsigned_abs())
    }

    /// Maximum number of bytes of deleted data that are kept only for cursors; `None` if engines decide.
    pub fn kept_for_cursors_max(&self) -> Option<u64> {
        let megabytes = self.kept_for_cursors_max_mb.load(Ordering::Relaxed);
        u64::try_from(megabytes).ok().filter(|megabytes| *megabytes > 0).map(|megabytes| megabytes << 20)
    }

    /// How far the commit point may be behind before writers are slowed down, in milliseconds; `None` if they never are.
    pub fn target_lag_ms(&self) -> Option<u64> {
        let is_on = self.controls_flow.load(Ordering::Relaxed);
        is_on.then(|| u64::from(self.target_lag_s.load(Ordering::Relaxed)) * 1000)
    }

    /// How long a transaction may be open.
    pub fn transaction_lifetime(&self) -> Duration {
        Duration::from_secs(self.transaction_lifetime_s.load(Ordering::Relaxed).unsigned_abs())
    }

    /// Sets how long a transaction may be open, in seconds.
    pub fn set_transaction_lifetime(&self, seconds: u32) {
        self.transaction_lifetime_s.store(seconds.into(), Ordering::Relaxed);
    }

    /// Time limit of reads without `maxTimeMS`; `None` for no limit.
    pub fn default_read_time(&self) -> Option<Duration> {
        let milliseconds = self.default_read_time_ms.load(Ordering::Relaxed);
        u64::try_from(milliseconds).ok().filter(|limit| *limit > 0).map(Duration::from_millis)
    }

    /// Sets the time limit of reads without `maxTimeMS` from the cluster parameter `defaultMaxTimeMS`.
    pub fn set_default_read_time(&self, parameter: DocumentRef<'_>) {
        let milliseconds = parameter.get("readOperations").and_then(number::clamp_to_i64).unwrap_or(0);
        self.default_read_time_ms.store(milliseconds, Ordering::Relaxed);
    }

    /// Sets the age of documents before a change from the cluster parameter `changeStreamOptions`.
    pub fn set_image_expiry(&self, parameter: DocumentRef<'_>) {
        let images = parameter.get("preAndPostImages").and_then(ValueRef::as_document);
        let seconds = images.and_then(|images| images.get("expireAfterSeconds")).and_then(number::as_i64_exact);
        self.image_expiry_s.store(seconds.unwrap_or(0), Ordering::Relaxed);
    }

    /// Age in seconds up to which change streams show the document before a change; 0 for no limit.
    pub fn image_expiry(&self) -> Arc<AtomicI64> {
        Arc::clone(&self.image_expiry_s)
    }

    /// Maximum number of bytes that a stage may gather in memory.
    pub fn stage_bytes_max(&self, gatherer: Gatherer) -> u64 {
        self.stage_bytes_max[gatherer as usize].load(Ordering::Relaxed)
    }

    /// Puts the current limits of stages into the limits of an operation that begins.
    pub fn limit_stages(&self, limits: &mut StageLimits) {
        for gatherer in Gatherer::ALL {
            limits.set_bytes_max(gatherer, self.stage_bytes_max(gatherer));
        }
        let is_allowed = self.allows_disk_use.load(Ordering::Relaxed);
        limits.disk_use = if is_allowed { DiskUse::Allowed } else { DiskUse::Refused };
        limits.workers_max = self.workers_max.load(Ordering::Relaxed);
    }

    /// Whether queries with conditions may read all documents.
    pub fn collection_scans(&self) -> CollectionScans {
        if self.refuses_scans.load(Ordering::Relaxed) { CollectionScans::Refused } else { CollectionScans::Allowed }
    }

    /// Whether expired documents are deleted (`ttlMonitorEnabled`).
    pub fn deletes_expired(&self) -> bool {
        self.deletes_expired.load(Ordering::Relaxed)
    }

    /// Time between passes of the thread that deletes expired documents (`ttlMonitorSleepSecs`).
    pub fn expiry_sleep(&self) -> Duration {
        Duration::from_secs(self.expiry_sleep_s.load(Ordering::Relaxed).unsigned_abs())
    }

    /// Whether the log leaves out connections that are opened and closed.
    pub fn is_quiet(&self) -> bool {
        self.is_quiet.load(Ordering::Relaxed)
    }

    /// The text about the automation service that `hello` shows, if it is set.
    pub fn automation_service_descriptor(&self) -> Option<String> {
        let descriptor = self.descriptor.lock();
        (!descriptor.is_empty()).then(|| descriptor.clone())
    }
}
