//! The log line of an operation that took long.

use crate::invocation::Invocation;
use bunko_bson::{ValueRef, extended_json};
use bunko_errors::ErrorCode;
use std::time::Duration;

/// Writes it. Of a large command the fields that are small are shown, as by `currentOp`; `commandBytes` says how large
/// it was.
pub(crate) fn log(invocation: &Invocation<'_>, elapsed: Duration, failure: Option<ErrorCode>) {
    let connection = &*invocation.connection;
    let (database, collection) = invocation.namespace_noted().unwrap_or((invocation.request.database, "$cmd".into()));
    let kept = invocation.command_kept();
    let command = extended_json::to_relaxed(ValueRef::Document(kept.as_ref()));
    let bytes = invocation.request.body.len_bytes();
    let application = connection.application();
    let examined = invocation.examined();
    tracing::info!(
        target: "COMMAND", id = 51803, ctx = format!("conn{}", connection.id), remote = %connection.peer,
        "type" = "command", ns = format!("{database}.{collection}"), appName = application, command,
        commandBytes = (bytes > kept.as_ref().len_bytes()).then_some(bytes as u64),
        keysExamined = examined.map(|examined| examined.keys), docsExamined = examined.map(|examined| examined.documents),
        errCode = failure.map(|code| code.0), errName = failure.map(|code| code.name().as_str().to_owned()),
        durationMillis = elapsed.as_millis() as u64, "Slow query"
    );
}
