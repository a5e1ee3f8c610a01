//! The cluster time, which clients pass from member to member.
//!
//! Cluster time is the time of the log: `operationTime` is the time of the newest write that readers see. A client may
//! send a later time, known from another cluster or from a different history of this data. The log then continues from
//! that time, so that times only grow.
//! Source: MongoDB drivers' specification, "Causal Consistency".

use bunko_bson::{BinarySubtype, Timestamp, ValueRef, Writer};
use bunko_catalog::Catalog;
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far a client's time may be ahead of the clock, in seconds.
/// Source: MongoDB manual, parameter `maxAcceptableLogicalClockDriftSecs`.
const DRIFT_SECONDS_MAX: u32 = 365 * 24 * 60 * 60;

/// The times of the log, and the latest time that a client has sent.
pub struct ClusterTime {
    catalog: Arc<Catalog>,
    told: AtomicU64,
}

fn packed(time: Timestamp) -> u64 {
    u64::from(time.seconds) << 32 | u64::from(time.increment)
}

impl ClusterTime {
    pub(crate) fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog, told: AtomicU64::new(0) }
    }

    /// The time of the newest write that readers see.
    pub fn operation_time(&self) -> Timestamp {
        self.catalog.store().newest_time()
    }

    /// The latest time that this member knows: the value of `$$CLUSTER_TIME`.
    pub fn latest(&self) -> Timestamp {
        self.latest_from(self.operation_time())
    }

    fn latest_from(&self, operation_time: Timestamp) -> Timestamp {
        let latest = self.told.load(Ordering::Acquire).max(packed(operation_time));
        Timestamp { seconds: (latest >> 32) as u32, increment: latest as u32 }
    }

    /// Takes over the time that a client sends. `now_ms` is the server's clock, in milliseconds since 1970.
    /// # Errors
    /// `ClusterTimeFailsRateLimiter` if it is too far ahead of the clock.
    pub fn hear(&self, told: Timestamp, now_ms: i64) -> Result<()> {
        if packed(told) <= packed(self.latest()) {
            return Ok(());
        }
        let now_seconds = (now_ms / 1000) as u32;
        if told.seconds > now_seconds.saturating_add(DRIFT_SECONDS_MAX) {
            let message = format!(
                "New cluster time, {}, is too far from this node's wall clock time, {now_seconds}.",
                told.seconds
            );
            return Err(Failure::new(ErrorCode::CLUSTER_TIME_FAILS_RATE_LIMITER, message));
        }
        self.catalog.store().advance_time(told);
        self.told.fetch_max(packed(told), Ordering::AcqRel);
        Ok(())
    }

    /// Makes sure that everything up to a time can be read, and that no later write gets a time before it. `name` is the
    /// field that asks for it.
    /// # Errors
    /// `InvalidOptions` for a time later than any that is known; errors of writing to the log.
    pub fn wait_for(&self, name: &str, after: Timestamp) -> Result<()> {
        if packed(after) <= packed(self.operation_time()) {
            return Ok(());
        }
        let known = self.latest();
        // The effects of the newest record have later times than its beginning.
        if packed(after) <= packed(self.catalog.store().newest_time_max()) {
            return Ok(());
        }
        if packed(after) > packed(known) {
            let text = |time: Timestamp| format!("{{ ts: Timestamp({}, {}) }}", time.seconds, time.increment);
            let message = format!(
                "readConcern {name} value must not be greater than the current clusterTime. Requested \
                 clusterTime: {}; current clusterTime: {}",
                text(after),
                text(known)
            );
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        // Writes to the log come only from this server, so it has everything up to that time.
        self.catalog.pass_time()
    }

    /// Appends the times to a member's reply.
    pub fn write(&self, reply: &mut Writer<'_>) {
        let operation_time = self.operation_time();
        let hash = ValueRef::Binary { subtype: BinarySubtype::GENERIC, bytes: &[0; 20] };
        let latest = self.latest_from(operation_time);
        reply.begin_document("$clusterTime").append("clusterTime", latest);
        // The signature of a server without keys.
        reply.begin_document("signature").append("hash", hash).append("keyId", 0_i64).end();
        reply.end().append("operationTime", operation_time);
    }
}
