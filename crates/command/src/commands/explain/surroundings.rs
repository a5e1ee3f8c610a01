//! The fields that each explanation has beside plan and stages.

use super::Subject;
use crate::commands::build_info;
use crate::invocation::Invocation;
use bunko_bson::{MAX_USER_DOCUMENT_BYTES, Value, Writer};
use bunko_operation::Gatherer;
use bunko_settings::query_settings::{ShapeHash, shape_of};

/// Appends the fields that each explanation has: the shape's hash, the command, the server, and its limits.
pub(super) fn write_surroundings(invocation: &Invocation<'_>, reply: &mut Writer<'_>, subject: &Subject<'_>) {
    let body = subject.body;
    if subject.command.takes_query_settings() {
        let shape = shape_of(subject.command, invocation.request.database, body);
        reply.append("queryShapeHash", ShapeHash::of(&shape).to_string().as_str());
    }
    // Leaves room for the fields that follow `command`.
    if reply.len_bytes() + body.len_bytes() <= MAX_USER_DOCUMENT_BYTES - (64 << 10) {
        reply.begin_document("command").extend(body);
        if body.get("$db").is_none() {
            reply.append("$db", invocation.request.database);
        }
        reply.end();
    } else {
        reply.append("warning", "'command' has been omitted due to BSON size limit");
    }
    let address = &*invocation.service.facts.host;
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    let limit = |gatherer| {
        let bytes_max = invocation.service.parameters.stage_bytes_max(gatherer);
        i32::try_from(bytes_max).map_or(Value::Int64(bytes_max as i64), Value::Int32)
    };
    reply
        .begin_document("serverInfo")
        .append("host", host)
        .append("port", port.parse().unwrap_or(0_i32))
        .append("version", build_info::COMPATIBLE_VERSION)
        .append("gitVersion", "bunko")
        .end()
        .begin_document("serverParameters")
        .append("internalQueryMaxBlockingSortMemoryUsageBytes", limit(Gatherer::Sort).as_ref())
        .append("internalDocumentSourceGroupMaxMemoryBytes", limit(Gatherer::Group).as_ref())
        .append("internalQueryFrameworkControl", "forceClassicEngine")
        .end();
}
