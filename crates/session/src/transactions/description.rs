//! Open transactions, as `currentOp` and `$currentOp` describe them.

use super::table::Entry;
use bunko_bson::{DocumentBuf, datetime};
use std::time::{Duration, Instant};

/// The server's facts in a description.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// `host:port` of the server.
    pub host: &'a str,
    /// The present moment, to measure elapsed time by.
    pub now: Instant,
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
    /// How long a transaction may be open.
    pub lifetime: Duration,
}

/// Describes a transaction in an idle session.
pub fn describe_idle(surroundings: Surroundings<'_>, entry: &Entry) -> DocumentBuf {
    let id = entry.session.id.to_document();
    DocumentBuf::new()
        .with("type", "idleSession")
        .with("host", surroundings.host)
        .with("desc", "inactive transaction")
        .with("client", entry.client.to_string().as_str())
        .with("connectionId", entry.connection)
        .with("lsid", &id)
        .with("transaction", &describe_running(surroundings, entry))
        .with("waitingForLock", false)
        .with("active", false)
}

/// Describes a transaction beside the command that works with it.
pub fn describe_running(surroundings: Surroundings<'_>, entry: &Entry) -> DocumentBuf {
    let mut parameters = DocumentBuf::new().with("txnNumber", entry.number).with("autocommit", false);
    if let Some(read_concern) = &entry.read_concern {
        parameters.append("readConcern", read_concern);
    }
    let open_for = surroundings.now.saturating_duration_since(entry.began);
    let text = |time_ms: i64| datetime::format_iso8601_ms(time_ms).replace('Z', "+00:00");
    let began_ms = surroundings.now_ms - open_for.as_millis() as i64;
    let expiry_ms = began_ms + surroundings.lifetime.as_millis() as i64;
    let mut described = DocumentBuf::new()
        .with("parameters", &parameters)
        .with("startWallClockTime", &text(began_ms))
        .with("timeOpenMicros", open_for.as_micros() as i64);
    // While a command works with the transaction, the run time of its commands is not available.
    if let Some(active) = entry.session.active_time() {
        let inactive = open_for.saturating_sub(active);
        described
            .append("timeActiveMicros", active.as_micros() as i64)
            .append("timeInactiveMicros", inactive.as_micros() as i64);
    }
    described.with("expiryTime", &text(expiry_ms))
}
