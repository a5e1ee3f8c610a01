//! `serverStatus`: the server's counters and state, in sections.

use super::build_info::COMPATIBLE_VERSION;
use super::db_stats::file_system;
use super::hello::write_members;
use super::repl_set_get_status;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::service::Service;
use bunko_access::Action;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer, number};
use bunko_observe::TlsVersion;
use bunko_observe::counters::Tally;
use bunko_observe::machine;
use bunko_replica_set::{MemberState, ReplicaSet};
use bunko_request::counted_as::OperationClass;
use bunko_request::facts::{ANY_FIELDS, CommandFacts, Queueing};
use bunko_request::fields::truth;
use bunko_request::generic_fields::is_generic;
use bunko_session::Halt;
use bunko_settings::user_write_block::Reason;
use bunko_store::LatencyCounts;
use bunko_traces::SpanCounts;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

const MEBIBYTE: u64 = 1 << 20;
const MS_PER_HOUR: f64 = 3_600_000.0;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "serverStatus", fields: ANY_FIELDS, queueing: Queueing::AtOnce, ..CommandFacts::PLAIN },
    privileges: Privileges::OnCluster(Action::ServerStatus),
    run,
    ..Command::PLAIN
};

/// One section of the reply.
struct Section {
    name: &'static str,
    /// Writes the section. The document has the section's options, and usually no fields.
    write: fn(&Service, &Tally, DocumentRef<'_>, &mut Writer<'_>),
}

const SECTIONS: &[Section] = &[
    Section { name: "asserts", write: write_asserts },
    Section { name: "backgroundFlushing", write: write_flushes },
    Section { name: "bunko", write: write_bunko },
    Section { name: "catalogStats", write: write_catalog },
    Section { name: "connections", write: write_connections },
    Section { name: "extra_info", write: write_extra_info },
    Section { name: "flowControl", write: |service, _, _, out| service.write_flow_control(out) },
    Section { name: "globalLock", write: write_global_lock },
    Section { name: "mem", write: write_memory },
    Section { name: "metrics", write: write_metrics },
    Section { name: "network", write: write_network },
    Section { name: "opLatencies", write: write_latencies },
    Section { name: "opcounters", write: write_operation_counters },
    Section { name: "security", write: write_security },
    Section { name: "storageEngine", write: write_storage_engine },
    Section { name: "transportSecurity", write: write_transport_security },
    Section { name: "transactions", write: write_transactions },
];

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    write(invocation.service, invocation.request.body, reply);
    Ok(())
}

impl Service {
    /// The reply of `serverStatus` with the histograms of durations, for the server's own monitor.
    pub fn status(&self) -> DocumentBuf {
        let body = DocumentBuf::new()
            .with(COMMAND.facts.name, 1)
            .with("opLatencies", &DocumentBuf::new().with("histograms", true));
        let mut bytes = Vec::new();
        let mut reply = Writer::new(&mut bytes);
        write(self, body.as_ref(), &mut reply);
        reply.end();
        DocumentRef::trusted(&bytes).to_owned()
    }
}

/// Appends the reply to the command `body`.
pub(super) fn write(service: &Service, body: DocumentRef<'_>, reply: &mut Writer<'_>) {
    let uptime = service.uptime();
    reply
        .append("host", &*service.facts.host)
        .append("version", COMPATIBLE_VERSION)
        // Clients distinguish a server from a router by this name.
        .append("process", "mongod")
        .append("pid", i64::from(std::process::id()))
        .append("uptime", uptime.as_secs() as f64)
        .append("uptimeMillis", uptime.as_millis() as i64)
        .append("uptimeEstimate", uptime.as_secs() as i64)
        .append("localTime", ValueRef::DateTime(service.world.now_ms()));
    let totals = service.counters.totals();
    if let Some(set) = &service.replica_set
        && is_wanted(body, "repl")
    {
        write_replica_set(service, set, reply);
    }
    if service.catalog.store().keeps_history() && is_wanted(body, "oplogTruncation") {
        let hours = service.catalog.store().history_retention_ms() as f64 / MS_PER_HOUR;
        reply.begin_document("oplogTruncation").append("oplogMinRetentionHours", hours).end();
    }
    if body.get("mirroredReads").is_some() && is_wanted(body, "mirroredReads") {
        // The set has no other member, so no read is ever mirrored.
        reply.begin_document("mirroredReads").append("seen", 0_i64).append("sent", 0_i64).end();
    }
    for section in SECTIONS.iter().filter(|section| is_wanted(body, section.name)) {
        reply.begin_document(section.name);
        let asked = body.get(section.name).and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
        (section.write)(service, &totals, asked, reply);
        reply.end();
    }
    // Each open engine adds a section under its own name, as MongoDB's WiredTiger does.
    for (name, status) in service.catalog.store().engine_status() {
        if is_wanted(body, name) {
            reply.append(name, &status);
        }
    }
}

fn write_replica_set(service: &Service, set: &ReplicaSet, reply: &mut Writer<'_>) {
    let member = set.member();
    reply.begin_document("repl");
    write_members(set, None, reply);
    reply
        .append("setName", set.name())
        .append("setVersion", member.version() as i32)
        // mongostat reads the old name.
        .append("ismaster", set.is_primary())
        .append("isWritablePrimary", set.is_primary())
        .append("secondary", set.state() == MemberState::Secondary);
    if let Some(primary) = set.primary() {
        reply.append("primary", primary.as_str());
    }
    if member.own().is_some_and(|own| own.arbiter) {
        reply.append("arbiterOnly", true);
    }
    reply.append("me", &*member.host);
    if set.is_primary() {
        reply.append("electionId", set.election_id());
    }
    reply.append("rbid", 1);
    let blocked = service.user_write_block.reason();
    // 1 if users may write. Source: MongoDB manual 8.2, "serverStatus", `repl.userWriteBlockMode`.
    reply
        .append("userWriteBlockMode", if blocked.is_some() { 2 } else { 1 })
        .append("userWriteBlockReason", blocked.map_or(0, Reason::number))
        .end();
}

/// Whether the command wants a section: all are on unless switched off by name, or all together by `none: 1`. Unknown
/// names are accepted, as in MongoDB: another version may have such a section.
fn is_wanted(body: DocumentRef<'_>, section: &str) -> bool {
    let switch = |name: &str| body.iter().skip(1).find(|element| element.name == name && !is_generic(name));
    let is_on = |value: ValueRef<'_>| match value {
        ValueRef::Boolean(boolean) => boolean,
        value => number::as_f64(value).is_none_or(|number| number != 0.0),
    };
    match switch(section) {
        Some(element) => is_on(element.value),
        None => !switch("none").is_some_and(|element| is_on(element.value)),
    }
}

fn write_asserts(_: &Service, totals: &Tally, _: DocumentRef<'_>, out: &mut Writer<'_>) {
    let user = i32::try_from(totals.user_asserts).unwrap_or(i32::MAX);
    out.append("regular", 0).append("warning", 0).append("msg", 0).append("user", user).append("rollovers", 0);
}

/// Counts the collections of each kind.
fn write_catalog(service: &Service, _: &Tally, _: DocumentRef<'_>, out: &mut Writer<'_>) {
    let databases = service.catalog.databases();
    let collections: Vec<_> = databases.iter().flat_map(|name| service.catalog.collections(name)).collect();
    let with = |option: &str| {
        collections.iter().filter(|collection| (*collection.options()).as_ref().get(option).is_some_and(truth)).count()
            as i32
    };
    let are_internal = |name: &&String| matches!(name.as_str(), "admin" | "config" | "local");
    let internal: usize =
        databases.iter().filter(are_internal).map(|name| service.catalog.collections(name).len()).sum();
    let views: usize = databases.iter().map(|name| service.catalog.views(name).map_or(0, |views| views.len())).sum();
    out.append("collections", (collections.len() - internal) as i32)
        .append("capped", with("capped"))
        .append("clustered", with("clusteredIndex"))
        .append("timeseries", with("timeseries"))
        .append("views", views as i32)
        .append("internalCollections", internal as i32)
        .append("internalViews", 0);
}

/// Checkpoints, under the name that mongostat reads from a server without WiredTiger.
fn write_flushes(service: &Service, _: &Tally, _: DocumentRef<'_>, out: &mut Writer<'_>) {
    let statistics = service.catalog.store().statistics();
    out.append("flushes", statistics.checkpoints as i64).append("last_ms", statistics.last_checkpoint_ms as i64);
}

/// The section that only Bunko has: the log, checkpoints, stalled writes, cursors and memory.
fn write_bunko(service: &Service, _: &Tally, _: DocumentRef<'_>, out: &mut Writer<'_>) {
    let statistics = service.catalog.store().statistics();
    let log = &statistics.log;
    out.append("version", env!("CARGO_PKG_VERSION"))
        .begin_document("log")
        .append("nextLsn", log.next_lsn as i64)
        .append("syncedLsn", log.synced_lsn as i64)
        .append("appendedRecords", log.appended_records as i64)
        .append("writtenGroups", log.written_groups as i64)
        .append("syncedGroups", log.synced_groups as i64)
        .append("segments", log.segments as i64)
        .append("segmentWaits", log.segment_waits as i64);
    write_sync_latencies(&log.sync_latencies, out);
    out.end()
        .begin_document("checkpoints")
        .append("count", statistics.checkpoints as i64)
        .append("lastMillis", statistics.last_checkpoint_ms as i64)
        .append("longestMillis", statistics.longest_checkpoint_ms as i64)
        .end()
        .append("stalledWrites", statistics.stalled_writes as i64);
    if let Some(file_system) = service.catalog.store().path().and_then(|path| file_system(path).ok()) {
        out.begin_document("disk")
            .append("freeBytes", file_system.free_bytes as i64)
            .append("totalBytes", file_system.total_bytes as i64)
            .end();
    }
    out.begin_document("diskReserve")
        .append("bytes", statistics.reserve.bytes as i64)
        .append("wholeBytes", statistics.reserve.whole_bytes as i64)
        .append("isInUse", statistics.reserve.is_in_use())
        .end()
        .append("cursorsClosedForRoom", service.cursors.closed_for_room() as i64)
        .begin_document("idleCursors")
        .append("heldBytes", service.facts.memory_limits.server.idle() as i64)
        .append("readAhead", service.cursors.read_ahead() as i64)
        .append("endedForMemory", service.cursors.ended_for_memory() as i64)
        .end()
        .append("unflushedBytes", statistics.unflushed_bytes as i64)
        .append("engineBytes", statistics.engines_bytes as i64)
        .begin_document("memory");
    service.memory_counts.write(&service.facts.memory_limits.server, out);
    out.end().begin_document("backup");
    service.backup_notes.write(service.time_and_term(), out);
    out.end();
    if let Some(counts) = service.profiler.span_counts() {
        write_span_counts(&counts, out);
    }
    if let Some(set) = service.replica_set.as_ref().filter(|set| set.state() != MemberState::Removed) {
        out.begin_document("members");
        repl_set_get_status::write_lags(service, set, out);
        out.end();
    }
}

fn write_span_counts(counts: &SpanCounts, out: &mut Writer<'_>) {
    out.begin_document("traces")
        .append("queuedSpans", counts.queued as i64)
        .append("sentSpans", counts.sent as i64)
        .begin_document("droppedSpans")
        .append("queueFull", counts.dropped_queue_full as i64)
        .append("notDelivered", counts.dropped_not_delivered as i64)
        .append("rejected", counts.dropped_rejected as i64)
        .end()
        .end();
}

/// Writes latencies as `opLatencies` does, except that the histogram is a document whose field names are the lower
/// bounds of the buckets in microseconds. Exporters turn each field of a document into a metric of its own, but repeat
/// one metric for the elements of an array.
fn write_sync_latencies(latencies: &LatencyCounts, out: &mut Writer<'_>) {
    out.begin_document("syncLatencies")
        .append("latency", latencies.total_micros as i64)
        .append("ops", latencies.count() as i64)
        .append("longestMicros", latencies.max_micros as i64)
        .begin_document("histogram");
    for (micros, count) in &latencies.buckets {
        out.append(&micros.to_string(), *count as i64);
    }
    out.end().end();
}

fn write_connections(service: &Service, _: &Tally, _: DocumentRef<'_>, out: &mut Writer<'_>) {
    let counts = service.counters.connections();
    let available = u64::from(service.facts.connections_max).saturating_sub(counts.current);
    let active = service.operations.observe().iter().filter(|operation| operation.opid != 0).count();
    out.append("current", counts.current as i32)
        .append("available", available as i32)
        .append("totalCreated", counts.total_created as i32)
        .append("active", active as i32);
    service.pace.write(out);
}

fn write_extra_info(_: &Service, _: &Tally, _: DocumentRef<'_>, out: &mut Writer<'_>) {
    let time = machine::process_time();
    out.append("note", "fields vary by platform")
        .append("user_time_us", time.user.as_micros() as i64)
        .append("system_time_us", time.system.as_micros() as i64)
        .append("page_faults", machine::page_faults() as i64);
}

/// Bunko has no global lock, so the queues are empty; monitors read the active clients.
fn write_global_lock(service: &Service, _: &Tally, _: DocumentRef<'_>, out: &mut Writer<'_>) {
    let mut active = [0; OperationClass::COUNT];
    for operation in service.operations.observe().iter().filter(|operation| operation.opid != 0) {
        active[operation.entry.class.index()] += 1;
    }
    out.append("totalTime", service.uptime().as_micros() as i64);
    out.begin_document("currentQueue").append("total", 0).append("readers", 0).append("writers", 0).end();
    out.begin_document("activeClients")
        .append("total", active.iter().sum::<i32>())
        .append("readers", active[OperationClass::Read.index()])
        .append("writers", active[OperationClass::Write.index()])
        .end();
}

fn write_memory(_: &Service, _: &Tally, _: DocumentRef<'_>, out: &mut Writer<'_>) {
    let memory = machine::process_memory();
    out.append("bits", usize::BITS as i32)
        .append("resident", (memory.resident_bytes / MEBIBYTE) as i32)
        .append("virtual", (memory.virtual_bytes / MEBIBYTE) as i32)
        .append("supported", memory.virtual_bytes > 0);
}

fn write_metrics(service: &Service, totals: &Tally, _: DocumentRef<'_>, out: &mut Writer<'_>) {
    out.begin_document("commands").append("<UNKNOWN>", totals.unknown_commands as i64);
    for (name, runs) in totals.commands.iter().collect::<BTreeMap<_, _>>() {
        out.begin_document(name).append("failed", runs.failed as i64).append("total", runs.total as i64).end();
    }
    out.end();
    let (open, without_timeout) = service.cursors.open_counts();
    out.begin_document("cursor")
        .begin_document("open")
        .append("noTimeout", without_timeout as i64)
        .append("total", open as i64)
        .end()
        .append("timedOut", service.cursors.timed_out() as i64)
        .end();
    out.begin_document("document")
        .append("deleted", totals.documents.deleted as i64)
        .append("inserted", totals.documents.inserted as i64)
        .append("returned", totals.documents.returned as i64)
        .append("updated", totals.documents.updated as i64)
        .end();
    out.begin_document("operation").append("writeConflicts", service.catalog.write_conflicts() as i64).end();
    out.begin_document("queryExecutor")
        .append("scanned", totals.documents.keys_examined as i64)
        .append("scannedObjects", totals.documents.examined as i64)
        .end();
    write_query_statistics(service, out);
    let expired = service.time_to_live.counts();
    out.begin_document("ttl")
        .append("deletedDocuments", expired.deleted_documents as i64)
        .append("passes", expired.passes as i64)
        .append("subPasses", expired.sub_passes as i64)
        .end();
}

/// The size of the statistics that `$queryStats` shows, and events without memory for them.
fn write_query_statistics(service: &Service, out: &mut Writer<'_>) {
    let size = service.query_statistics.size();
    let limits = &service.parameters.query_statistics;
    out.begin_document("queryStats")
        .append("maxSizeBytes", limits.bytes_max(service.facts.memory_limits.server.bytes_max()) as i64)
        .append("numEntries", size.entries as i64)
        .append("numEvicted", size.evicted as i64)
        .append("numHmacApplicationErrors", 0_i64)
        .append("numPartitions", 1_i64)
        .append("numQueryStatsStoreWriteErrors", size.refused as i64)
        .append("numRateLimitedRequests", limits.refused() as i64)
        .append("queryStatsStoreSizeEstimateBytes", size.bytes as i64)
        .end();
}

fn write_network(_: &Service, totals: &Tally, _: DocumentRef<'_>, out: &mut Writer<'_>) {
    out.append("bytesIn", totals.network.bytes_in as i64)
        .append("bytesOut", totals.network.bytes_out as i64)
        .append("numRequests", totals.network.requests as i64);
}

fn write_latencies(service: &Service, totals: &Tally, asked: DocumentRef<'_>, out: &mut Writer<'_>) {
    let histograms = matches!(asked.get("histograms"), Some(ValueRef::Boolean(true)));
    let classes =
        [("reads", OperationClass::Read), ("writes", OperationClass::Write), ("commands", OperationClass::Command)];
    for (name, class) in classes {
        out.begin_document(name);
        totals.latencies[class.index()].write(out, histograms);
        out.end();
    }
    out.begin_document("transactions");
    service.transaction_latencies.lock().write(out, histograms);
    out.end();
}

fn write_operation_counters(_: &Service, totals: &Tally, _: DocumentRef<'_>, out: &mut Writer<'_>) {
    let counts = &totals.operations;
    out.append("insert", counts.inserts as i64)
        .append("query", counts.queries as i64)
        .append("update", counts.updates as i64)
        .append("delete", counts.deletes as i64)
        .append("getmore", counts.get_mores as i64)
        .append("command", counts.commands as i64);
}

/// The subject and expiry of the server's own certificate, if it has one.
fn write_security(service: &Service, _: &Tally, _: DocumentRef<'_>, out: &mut Writer<'_>) {
    if let Some(certificate) = (service.process.certificate)() {
        out.append("SSLServerSubjectName", &certificate.subject)
            .append("SSLServerHasCertificateAuthority", true)
            .append("SSLServerCertificateExpirationDate", ValueRef::DateTime(certificate.not_after_ms));
    }
}

/// Connections since the start, by TLS version. Versions below 1.2 are not supported.
fn write_transport_security(service: &Service, _: &Tally, _: DocumentRef<'_>, out: &mut Writer<'_>) {
    let count = |version| service.counters.tls(version).load(Ordering::Relaxed) as i64;
    out.append("1.0", 0_i64)
        .append("1.1", 0_i64)
        .append("1.2", count(TlsVersion::V1_2))
        .append("1.3", count(TlsVersion::V1_3))
        .append("unknown", 0_i64);
}

fn write_storage_engine(service: &Service, _: &Tally, _: DocumentRef<'_>, out: &mut Writer<'_>) {
    let store = service.catalog.store();
    out.append("name", store.engine_name())
        .append("supportsCommittedReads", true)
        .append("supportsSnapshotReadConcern", false)
        .append("readOnly", false)
        .append("persistent", store.path().is_some())
        .append("backupCursorOpen", false);
}

fn write_transactions(service: &Service, _: &Tally, _: DocumentRef<'_>, out: &mut Writer<'_>) {
    let counts = service.transactions.counts();
    out.append("currentActive", counts.active as i64)
        .append("currentInactive", counts.open.saturating_sub(counts.active) as i64)
        .append("currentOpen", counts.open as i64)
        .append("totalAborted", counts.aborted as i64)
        .append("totalCommitted", counts.committed as i64)
        .append("totalStarted", counts.started as i64);
}
