//! Open transactions, as `currentOp` and `$currentOp` describe them.

use super::open::Entry;
use crate::service::Service;
use bunko_bson::{DocumentBuf, datetime};

/// Describes a transaction in an idle session.
pub(crate) fn describe_idle(service: &Service, entry: &Entry) -> DocumentBuf {
    let id = entry.session.id.to_document();
    DocumentBuf::new()
        .with("type", "idleSession")
        .with("host", &service.facts.host)
        .with("desc", "inactive transaction")
        .with("client", entry.client.to_string().as_str())
        .with("connectionId", entry.connection)
        .with("lsid", &id)
        .with("transaction", &describe_running(service, entry))
        .with("waitingForLock", false)
        .with("active", false)
}

/// Describes a transaction beside the command that works with it.
pub(crate) fn describe_running(service: &Service, entry: &Entry) -> DocumentBuf {
    let mut parameters = DocumentBuf::new().with("txnNumber", entry.number).with("autocommit", false);
    if let Some(read_concern) = &entry.read_concern {
        parameters.append("readConcern", read_concern);
    }
    let open_for = entry.began.elapsed();
    let text = |time_ms: i64| datetime::format_iso8601_ms(time_ms).replace('Z', "+00:00");
    let began_ms = service.world.now_ms() - open_for.as_millis() as i64;
    let expiry_ms = began_ms + service.parameters.transaction_lifetime().as_millis() as i64;
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
