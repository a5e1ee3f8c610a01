//! The log line of an operation that took long.

use crate::invocation::Invocation;
use crate::profile_entry::attributes;
use crate::profiler::Entry;
use bunko_bson::{ValueRef, extended_json};

/// Writes it, with the facts that the profiler has.
pub(crate) fn log(invocation: &Invocation<'_>, entry: &Entry<'_>) {
    let attributes = attributes(invocation, entry);
    let attributes = extended_json::to_relaxed(ValueRef::Document(attributes.as_ref()));
    let context = format!("conn{}", invocation.connection.id);
    // A target is a constant of its line.
    match entry.component {
        "WRITE" => {
            tracing::info!(target: "WRITE", id = 51803, ctx = context, attributes, "Slow query");
        }
        _ => tracing::info!(target: "COMMAND", id = 51803, ctx = context, attributes, "Slow query"),
    }
}
