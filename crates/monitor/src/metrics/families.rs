//! The table of all metrics. `docs/reference/metrics.md` is made from it.

use super::family::{Family, Kind, Source};

const MICROSECONDS: f64 = 1e-6;
const MILLISECONDS: f64 = 1e-3;
const MEBIBYTES: f64 = 1_048_576.0;

const fn value(path: &'static str) -> Source {
    Source::Value { path, factor: 1.0 }
}

const fn gauge(name: &'static str, unit: &'static str, path: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Gauge, unit, help, source: value(path) }
}

const fn counter(name: &'static str, unit: &'static str, path: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Counter, unit, help, source: value(path) }
}

const fn of_members(name: &'static str, unit: &'static str, field: &'static str, help: &'static str) -> Family {
    let source = Source::Each { path: "bunko.members", field, label: "member" };
    Family { name, kind: Kind::Gauge, unit, help, source }
}

/// All metrics, by subject.
pub const FAMILIES: &[Family] = &[
    // The server.
    Family {
        name: "server_info",
        kind: Kind::Gauge,
        unit: "",
        help: "Always 1; its labels describe the server",
        source: Source::Text {
            labels: &[("version", "bunko.version"), ("engine", "storageEngine.name"), ("set", "repl.setName")],
        },
    },
    Family {
        name: "uptime",
        kind: Kind::Gauge,
        unit: "seconds",
        help: "Time since the start of the server",
        source: Source::Value { path: "uptimeMillis", factor: MILLISECONDS },
    },
    gauge("primary", "", "repl.isWritablePrimary", "1 if this member of a replica set is the primary"),
    of_members(
        "set_member_state",
        "",
        "state",
        "State of each member of the set, as this member sees it: 1 primary, 2 secondary, 7 arbiter",
    ),
    of_members("set_member_up", "", "health", "1 for each member of the set that answers this member"),
    of_members(
        "set_member_lag",
        "seconds",
        "lagSeconds",
        "How many seconds of the writes that this member knows of each data member of the set lacks",
    ),
    // Backups.
    Family {
        name: "archive_lag",
        kind: Kind::Gauge,
        unit: "seconds",
        help: "Time of the newest writes that the archive of the log does not have yet, of the archive that is behind the most",
        source: Source::Value { path: "bunko.backup.archiveLagMillis", factor: MILLISECONDS },
    },
    gauge(
        "archives",
        "",
        "bunko.backup.archives",
        "Archives of the log that have told of themselves since the start or the set's last election",
    ),
    Family {
        name: "backup_last_success_timestamp",
        kind: Kind::Gauge,
        unit: "seconds",
        help: "When a backup was last finished, in seconds since 1970; none since the start of the server, no value",
        source: Source::Value { path: "bunko.backup.lastSuccessMillis", factor: MILLISECONDS },
    },
    Family {
        name: "backup_last_failure_timestamp",
        kind: Kind::Gauge,
        unit: "seconds",
        help: "When a backup or an archive last failed, in seconds since 1970; none since the start of the server, no value",
        source: Source::Value { path: "bunko.backup.lastFailureMillis", factor: MILLISECONDS },
    },
    Family {
        name: "cpu_user",
        kind: Kind::Counter,
        unit: "seconds",
        help: "Processor time of the process in its own code",
        source: Source::Value { path: "extra_info.user_time_us", factor: MICROSECONDS },
    },
    Family {
        name: "cpu_system",
        kind: Kind::Counter,
        unit: "seconds",
        help: "Processor time of the process in the kernel",
        source: Source::Value { path: "extra_info.system_time_us", factor: MICROSECONDS },
    },
    // Work.
    Family {
        name: "operations",
        kind: Kind::Counter,
        unit: "",
        help: "Operations by kind; each document of an insert and each statement of an update or delete counts",
        source: Source::Labelled {
            label: "operation",
            values: &[
                ("insert", "opcounters.insert"),
                ("query", "opcounters.query"),
                ("update", "opcounters.update"),
                ("delete", "opcounters.delete"),
                ("getmore", "opcounters.getmore"),
                ("command", "opcounters.command"),
            ],
        },
    },
    Family {
        name: "commands",
        kind: Kind::Counter,
        unit: "",
        help: "Commands by name",
        source: Source::Each { path: "metrics.commands", field: "total", label: "command" },
    },
    Family {
        name: "commands_failed",
        kind: Kind::Counter,
        unit: "",
        help: "Commands that ended with an error, by name",
        source: Source::Each { path: "metrics.commands", field: "failed", label: "command" },
    },
    Family {
        name: "operation_duration",
        kind: Kind::Histogram,
        unit: "seconds",
        help: "Durations of operations by class",
        source: Source::Latencies {
            label: "class",
            values: &[
                ("reads", "opLatencies.reads"),
                ("writes", "opLatencies.writes"),
                ("commands", "opLatencies.commands"),
                ("transactions", "opLatencies.transactions"),
            ],
        },
    },
    Family {
        name: "documents",
        kind: Kind::Counter,
        unit: "",
        help: "Documents that were returned to clients, inserted, updated and deleted",
        source: Source::Labelled {
            label: "action",
            values: &[
                ("returned", "metrics.document.returned"),
                ("inserted", "metrics.document.inserted"),
                ("updated", "metrics.document.updated"),
                ("deleted", "metrics.document.deleted"),
            ],
        },
    },
    counter("examined_keys", "", "metrics.queryExecutor.scanned", "Index keys that queries examined"),
    counter("examined_documents", "", "metrics.queryExecutor.scannedObjects", "Documents that queries examined"),
    counter(
        "write_conflicts",
        "",
        "metrics.operation.writeConflicts",
        "Writes that conflicted with another transaction",
    ),
    counter("user_errors", "", "asserts.user", "Errors that clients caused"),
    counter("ttl_deleted_documents", "", "metrics.ttl.deletedDocuments", "Documents that expired and were deleted"),
    counter("ttl_passes", "", "metrics.ttl.passes", "Passes over all TTL indexes"),
    gauge("active_clients", "", "globalLock.activeClients.total", "Clients whose operation runs now"),
    gauge("cursors_open", "", "metrics.cursor.open.total", "Open cursors"),
    counter("cursors_timed_out", "", "metrics.cursor.timedOut", "Cursors that were closed because no client used them"),
    Family {
        name: "transactions_open",
        kind: Kind::Gauge,
        unit: "",
        help: "Open transactions by whether a statement runs now",
        source: Source::Labelled {
            label: "state",
            values: &[("active", "transactions.currentActive"), ("inactive", "transactions.currentInactive")],
        },
    },
    Family {
        name: "transactions",
        kind: Kind::Counter,
        unit: "",
        help: "Transactions that began, and how they ended",
        source: Source::Labelled {
            label: "event",
            values: &[
                ("started", "transactions.totalStarted"),
                ("committed", "transactions.totalCommitted"),
                ("aborted", "transactions.totalAborted"),
            ],
        },
    },
    // Spans of slow operations, where they are sent.
    gauge("trace_spans_queued", "", "bunko.traces.queuedSpans", "Spans of slow operations that wait to be sent"),
    counter("trace_spans_sent", "", "bunko.traces.sentSpans", "Spans of slow operations that the collector took"),
    Family {
        name: "trace_spans_dropped",
        kind: Kind::Counter,
        unit: "",
        help: "Spans of slow operations that were dropped, by the reason",
        source: Source::Labelled {
            label: "reason",
            values: &[
                ("queue_full", "bunko.traces.droppedSpans.queueFull"),
                ("not_delivered", "bunko.traces.droppedSpans.notDelivered"),
                ("rejected", "bunko.traces.droppedSpans.rejected"),
            ],
        },
    },
    // Connections and messages.
    gauge("connections", "", "connections.current", "Open connections"),
    gauge("connections_available", "", "connections.available", "Connections that may still be opened"),
    counter("connections_created", "", "connections.totalCreated", "Connections that were accepted"),
    counter("connections_rejected", "", "connections.rejected", "Connections that were refused"),
    counter("network_received", "bytes", "network.bytesIn", "Bytes of messages from clients"),
    counter("network_sent", "bytes", "network.bytesOut", "Bytes of messages to clients"),
    counter("network_requests", "", "network.numRequests", "Messages from clients"),
    Family {
        name: "tls_certificate_expiry_timestamp",
        kind: Kind::Gauge,
        unit: "seconds",
        help: "When the server's TLS certificate expires, in seconds since 1970",
        source: Source::Value { path: "security.SSLServerCertificateExpirationDate", factor: MILLISECONDS },
    },
    // Memory.
    Family {
        name: "memory_resident",
        kind: Kind::Gauge,
        unit: "bytes",
        help: "Resident memory of the process",
        source: Source::Value { path: "mem.resident", factor: MEBIBYTES },
    },
    gauge("memory_limit", "bytes", "bunko.memory.limitBytes", "The budget for operations of clients"),
    gauge("memory_held", "bytes", "bunko.memory.heldBytes", "Memory that operations hold of the budget"),
    gauge("memory_messages", "bytes", "bunko.memory.messageBytes", "Memory of messages that are being received"),
    gauge("memory_replies", "bytes", "bunko.memory.replyBytes", "Memory of replies that clients have not read"),
    gauge("memory_waiting", "", "bunko.memory.waiting", "Messages that wait for memory now"),
    counter("memory_waited_messages", "", "bunko.memory.waitedMessages", "Messages that waited for memory"),
    counter("memory_refused_messages", "", "bunko.memory.refusedMessages", "Messages refused for lack of memory"),
    gauge("idle_cursors_held", "bytes", "bunko.idleCursors.heldBytes", "Memory of cursors between two batches"),
    counter(
        "idle_cursors_ended",
        "",
        "bunko.idleCursors.endedForMemory",
        "Idle cursors that were ended to free memory",
    ),
    // The log and checkpoints.
    gauge("log_end", "bytes", "bunko.log.nextLsn", "Position of the end of the log"),
    gauge("log_synced_end", "bytes", "bunko.log.syncedLsn", "Position up to which the log is on disk"),
    counter("log_records", "", "bunko.log.appendedRecords", "Records that were appended to the log"),
    counter("log_writes", "", "bunko.log.writtenGroups", "Writes of the log to the kernel"),
    counter("log_segment_waits", "", "bunko.log.segmentWaits", "Appends that waited for a new segment"),
    gauge("log_segments", "", "bunko.log.segments", "Segment files of the log"),
    Family {
        name: "log_sync_duration",
        kind: Kind::Histogram,
        unit: "seconds",
        help: "Durations of syncs of the log",
        source: Source::Latencies { label: "", values: &[("", "bunko.log.syncLatencies")] },
    },
    counter("checkpoints", "", "bunko.checkpoints.count", "Checkpoints"),
    Family {
        name: "checkpoint_last_duration",
        kind: Kind::Gauge,
        unit: "seconds",
        help: "Duration of the last checkpoint",
        source: Source::Value { path: "bunko.checkpoints.lastMillis", factor: MILLISECONDS },
    },
    gauge("unflushed", "bytes", "bunko.unflushedBytes", "Changes in memory that the next checkpoint writes"),
    counter("stalled_writes", "", "bunko.stalledWrites", "Writes that waited for checkpoints or merges"),
    // Disk.
    gauge("disk_free", "bytes", "bunko.disk.freeBytes", "Free bytes of the filesystem of the data directory"),
    gauge("disk_size", "bytes", "bunko.disk.totalBytes", "Size of the filesystem of the data directory"),
    gauge("disk_reserve_in_use", "", "bunko.diskReserve.isInUse", "1 while the reserve of a full disk is in use"),
    gauge("engine_files", "bytes", "bunko.engineBytes", "Size of the files of all storage engines"),
    // The engine lsm.
    gauge("lsm_cache_limit", "bytes", "lsm.cache.maximumBytes", "Limit of the cache of engine lsm"),
    Family {
        name: "lsm_cache",
        kind: Kind::Gauge,
        unit: "bytes",
        help: "Contents of the cache of engine lsm",
        source: Source::Labelled {
            label: "of",
            values: &[
                ("documents", "lsm.cache.documentsBytes"),
                ("log", "lsm.cache.logBytes"),
                ("trees", "lsm.cache.treesBytes"),
            ],
        },
    },
    counter("lsm_cache_hits", "", "lsm.cache.hits", "Reads that the cache of engine lsm answered"),
    counter("lsm_cache_misses", "", "lsm.cache.misses", "Reads that the cache of engine lsm did not answer"),
    counter("lsm_cache_read", "bytes", "lsm.cache.bytesRead", "Bytes that engine lsm read into its cache"),
    gauge("lsm_extents", "", "lsm.extents.count", "Extents, the files of moved documents"),
    gauge("lsm_extents_files", "bytes", "lsm.extents.fileBytes", "Size of the extents on disk"),
    gauge(
        "lsm_extents_live_documents",
        "bytes",
        "lsm.extents.liveDocumentsBytes",
        "Live documents in extents, uncompressed",
    ),
    counter("lsm_extents_written", "bytes", "lsm.extents.bytesWritten", "Bytes written to extents"),
    counter("lsm_segments_moved", "", "lsm.extents.segmentsMoved", "Segments whose documents were moved to extents"),
    gauge("lsm_trees_files", "bytes", "lsm.trees.fileBytes", "Size of the trees on disk"),
    gauge("lsm_tables", "", "lsm.trees.tables", "Tables of the trees"),
    counter("lsm_flushes", "", "lsm.trees.flushes", "Memtables that were written as tables"),
    counter("lsm_compactions", "", "lsm.trees.compactions", "Merges of tables"),
    // Contents.
    Family {
        name: "collections",
        kind: Kind::Gauge,
        unit: "",
        help: "Collections and views by kind; a collection may be of several kinds",
        source: Source::Labelled {
            label: "kind",
            values: &[
                ("all", "catalogStats.collections"),
                ("capped", "catalogStats.capped"),
                ("clustered", "catalogStats.clustered"),
                ("timeseries", "catalogStats.timeseries"),
                ("views", "catalogStats.views"),
            ],
        },
    },
];
