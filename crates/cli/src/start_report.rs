//! The log's first lines: the process, its options, the state of the data directory, and warnings.

use crate::access::Access;
use crate::configuration::Settings;
use crate::log_format::STARTUP_WARNING;
use bunko_bson::{ValueRef, extended_json};
use bunko_certificates::Details;
use bunko_store::{Recovery, Survival};
use rustix::process::{Resource, getrlimit};
use std::net::SocketAddr;

/// The commit that this program was built from, if the build names it.
const COMMIT: &str = match option_env!("BUNKO_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};
/// Limit of open files that is recommended for a server with many clients.
/// Source: MongoDB manual, "UNIX ulimit Settings".
const FILES_RECOMMENDED: u64 = 64_000;
/// Days before the end of its certificate's validity at which a server begins to warn.
const CERTIFICATE_DAYS_RECOMMENDED: i64 = 30;
/// The kernel's own default of `vm.max_map_count`.
const MAPPINGS_RECOMMENDED: u64 = 65_530;

/// Logs the lines with which a process's log begins, and each file after a rotation.
pub fn log_process(settings: &Settings) {
    let pid = u64::from(std::process::id());
    let port = settings.addresses.first().map_or(0, SocketAddr::port);
    let host = rustix::system::uname();
    tracing::info!(
        target: "CONTROL", id = 4_615_611, ctx = "main", pid, port = u64::from(port), dbPath = %settings.dbpath.display(),
        storageEngine = settings.engine.name, architecture = std::env::consts::ARCH,
        host = %host.nodename().to_string_lossy(), "Bunko starting"
    );
    tracing::info!(
        target: "CONTROL", id = 23403, ctx = "main", version = env!("CARGO_PKG_VERSION"), gitVersion = COMMIT,
        debug = cfg!(debug_assertions), "Build Info"
    );
    tracing::info!(
        target: "CONTROL", id = 51765, ctx = "main", name = %host.sysname().to_string_lossy(),
        version = %host.release().to_string_lossy(), "Operating System"
    );
    let options = extended_json::to_relaxed(ValueRef::Document(settings.in_force.as_ref()));
    tracing::info!(target: "CONTROL", id = 21951, ctx = "main", options, "Options in force");
}

/// Logs which engine serves which role, and what that means for the data.
pub fn log_engine(settings: &Settings) {
    let (asked, engine) = (settings.asked_engine.as_str(), settings.engine.name);
    if asked == engine {
        tracing::info!(target: "STORAGE", id = 22315, ctx = "main", "Storage engine {engine}");
    } else {
        tracing::info!(target: "STORAGE", id = 22315, ctx = "main", "storage.engine {asked}: the engine {engine} plays this role");
    }
    if settings.survival == Survival::Volatile {
        tracing::warn!(target: "STORAGE", id = 101, ctx = "main", tags = STARTUP_WARNING, limitBytes = settings.engines.memory_limit_bytes, "The engine {engine} keeps nothing on disk: data will not survive the end of this process");
    }
    if !settings.idle.is_empty() {
        tracing::warn!(target: "STORAGE", id = 102, ctx = "main", tags = STARTUP_WARNING, settings = settings.idle.join(", "), "Settings that have no effect on the engine {engine}");
    }
}

/// Logs the settings of mongod that were given but have no effect.
pub fn log_without_effect(settings: &Settings) {
    for setting in &settings.without_effect {
        tracing::info!(target: "CONTROL", id = 137, ctx = "main", setting, "A setting has no effect");
    }
}

/// Logs the certificate by which clients identify the server.
pub fn log_certificate(certificate: &Details, now_ms: i64) {
    let days = (certificate.not_after_ms - now_ms).div_euclid(24 * 60 * 60 * 1000);
    tracing::info!(target: "NETWORK", id = 133, ctx = "main", subject = certificate.subject, daysLeft = days, "TLS is enabled, with this certificate");
    if days < CERTIFICATE_DAYS_RECOMMENDED {
        tracing::warn!(target: "NETWORK", id = 134, ctx = "main", tags = STARTUP_WARNING, subject = certificate.subject, daysLeft = days, "The server's certificate has expired or will soon: put a new one in its place, and run rotateCertificates");
    }
}

/// Logs the recovery of the data directory.
pub fn log_recovery(recovery: Option<&Recovery>) {
    let Some(Recovery { replayed_records, elapsed, cut }) = recovery else { return };
    tracing::info!(target: "RECOVERY", id = 103, ctx = "main", replayedRecords = *replayed_records, durationMillis = elapsed.as_millis() as u64, "Recovered from the log");
    if let Some(cut) = cut {
        tracing::info!(
            target: "RECOVERY", id = 104, ctx = "main", file = %cut.file.display(), offset = cut.offset_bytes,
            bytes = cut.length_bytes,
            "Cut off the torn tail of the log: records that a crash left, which were never synced"
        );
    }
}

/// Warns of dangers in the configuration. `files` is the limit of open files.
pub fn warn(settings: &Settings, access: &Access, files: Option<u64>, connections_max: usize) {
    let open: Vec<_> = settings.addresses.iter().filter(|address| !address.ip().is_loopback()).collect();
    if !open.is_empty() && !access.is_enforced() && !settings.is_insecure {
        let addresses = open.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        tracing::warn!(target: "CONTROL", id = 22120, ctx = "main", tags = STARTUP_WARNING, addresses, "Access control is not enabled: every client that reaches these addresses can read and change all data. Start with --auth, or with --insecure if that is meant");
    }
    if rustix::process::geteuid().is_root() {
        tracing::warn!(target: "CONTROL", id = 22138, ctx = "main", tags = STARTUP_WARNING, "The server runs as root: give it a user of its own");
    }
    if let Some(files) = files.filter(|files| *files < FILES_RECOMMENDED) {
        tracing::warn!(target: "CONTROL", id = 22184, ctx = "main", tags = STARTUP_WARNING, currentValue = files, recommendedMinimum = FILES_RECOMMENDED, connectionsMax = connections_max as u64, "The limit of open files is low (ulimit -n): it bounds connections and open segments");
    }
    if let Some(bytes) = getrlimit(Resource::As).current {
        tracing::warn!(target: "CONTROL", id = 105, ctx = "main", tags = STARTUP_WARNING, limitBytes = bytes, "Address space is limited (ulimit -v): files that are mapped into memory count in full");
    }
    let mappings = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    let mappings = mappings.ok().and_then(|text| text.trim().parse::<u64>().ok());
    if let Some(mappings) = mappings.filter(|mappings| *mappings < MAPPINGS_RECOMMENDED) {
        tracing::warn!(target: "CONTROL", id = 5_123_300, ctx = "main", tags = STARTUP_WARNING, currentValue = mappings, recommendedMinimum = MAPPINGS_RECOMMENDED, "vm.max_map_count is low: memory and mapped files may be refused");
    }
}
