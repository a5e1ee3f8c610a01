//! The log line of a slow operation.

use crate::entry::Entry;
use crate::profile_entry::attributes;
use bunko_bson::{ValueRef, extended_json};

/// Writes the line, with the facts of the profiler.
pub fn log(entry: &Entry<'_>) {
    let attributes = attributes(entry);
    let attributes = extended_json::to_relaxed(ValueRef::Document(attributes.as_ref()));
    let context = format!("conn{}", entry.sender.connection);
    // The target of a log line must be a constant.
    match entry.component {
        "WRITE" => {
            tracing::info!(target: "WRITE", id = 51803, ctx = context, attributes, "Slow query");
        }
        _ => tracing::info!(target: "COMMAND", id = 51803, ctx = context, attributes, "Slow query"),
    }
}
