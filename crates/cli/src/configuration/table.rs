//! All settings: one table for files, flags, `--print-config`, `getCmdLineOpts` and docs/reference/settings.md.

mod logging;
mod network;
mod security;

pub use logging::*;
pub use network::*;
pub use security::*;

use super::missing::refusal_of_key;
use super::setting::{Effect, Kind, PARAMETERS, Setting, Value};
use bunko_engines::{Compression, ENGINES, EngineOptions};
use bunko_settings::{TRANSACTION_MEMORY_BYTES, parameters_of_startup};
use std::sync::LazyLock;

/// Defaults for the fields of a setting.
const PLAIN: Setting = Setting {
    keys: &[],
    flag: "",
    mongod_flag: None,
    negations: &[],
    help: "",
    value_name: "VALUE",
    kind: Kind::Text(any_text),
    default: |_| None,
    effect: Effect::Always,
};

pub const DB_PATH: Setting = Setting {
    keys: &["storage.dbPath"],
    flag: "dbpath",
    help: "Data directory [default: ./bunko-data]",
    value_name: "DIRECTORY",
    default: |_| Some(Value::Text("bunko-data".into())),
    effect: Effect::OnDisk,
    ..PLAIN
};
pub const ENGINE: Setting = Setting {
    keys: &["storage.engine"],
    flag: "storage-engine",
    mongod_flag: Some("storageEngine"),
    help: "Storage engine, by our name or by that of mongod's engine whose role it plays [default: lsm]",
    value_name: "NAME",
    kind: Kind::Text(check_engine),
    default: |_| Some(Value::Text(ENGINES[0].name.into())),
    ..PLAIN
};
pub const CACHE_SIZE_GB: Setting = Setting {
    keys: &["storage.wiredTiger.engineConfig.cacheSizeGB", "storage.lsm.cacheSizeGB"],
    flag: "cache-size-gb",
    mongod_flag: Some("wiredTigerCacheSizeGB"),
    help: "Cache of the engine lsm [default: half of the memory beyond 1 GB, at least 0.25]",
    value_name: "GB",
    kind: Kind::Number(SIZE_GB_MIN..=SIZE_GB_MAX),
    default: |_| Some(gigabytes(bunko_host::usable_memory_bytes().saturating_sub(1 << 30) / 2)),
    effect: Effect::OnDisk,
    ..PLAIN
};
pub const BLOCK_COMPRESSOR: Setting = Setting {
    keys: &["storage.wiredTiger.collectionConfig.blockCompressor", "storage.lsm.blockCompressor"],
    flag: "block-compressor",
    mongod_flag: Some("wiredTigerCollectionBlockCompressor"),
    help: "How lsm compresses documents of collections that do not say otherwise: none, snappy, lz4 or zstd \
           [default: lz4]",
    value_name: "NAME",
    kind: Kind::Text(check_compressor),
    default: |_| Some(Value::Text(EngineOptions::default().compression.name().into())),
    effect: Effect::OnDisk,
    ..PLAIN
};
pub const COMPRESSION_LEVEL: Setting = Setting {
    keys: &["storage.wiredTiger.engineConfig.zstdCompressionLevel", "storage.lsm.compressionLevel"],
    flag: "compression-level",
    mongod_flag: Some("zstdDefaultCompressionLevel"),
    help: "Level of zstd: higher is smaller and slower [default: 6]",
    value_name: "LEVEL",
    kind: Kind::Whole(1..=22),
    default: |configuration| {
        let compression = Compression::parse(&configuration.text(&BLOCK_COMPRESSOR)?, None).ok()?;
        compression.level().map(|level| Value::Whole(level.into()))
    },
    effect: Effect::OnDisk,
    ..PLAIN
};
pub const IN_MEMORY_SIZE_GB: Setting = Setting {
    keys: &["storage.inMemory.engineConfig.inMemorySizeGB", "storage.memory.sizeGB"],
    flag: "in-memory-size-gb",
    mongod_flag: Some("inMemorySizeGB"),
    help: "Limit of the engine memory; writes beyond it fail [default: half of the memory]",
    value_name: "GB",
    kind: Kind::Number(SIZE_GB_MIN..=SIZE_GB_MAX),
    default: |_| Some(gigabytes(bunko_host::usable_memory_bytes() / 2)),
    ..PLAIN
};
pub const JOURNAL: Setting = Setting {
    keys: &["storage.journal.enabled"],
    flag: "journal",
    help: "Must be true except for the engine memory: the log is the database [default: true]",
    value_name: "true|false",
    kind: Kind::Switch,
    default: |_| Some(Value::Switch(true)),
    effect: Effect::OnDisk,
    ..PLAIN
};
pub const JOURNAL_COMMIT_INTERVAL: Setting = Setting {
    keys: &["storage.journal.commitIntervalMs"],
    flag: "journal-commit-interval",
    mongod_flag: Some("journalCommitInterval"),
    help: "Longest time between syncs of the log, in milliseconds [default: 100]",
    value_name: "MS",
    kind: Kind::Whole(1..=500),
    default: |_| Some(Value::Whole(100)),
    effect: Effect::OnDisk,
    ..PLAIN
};
pub const SYNC_DELAY: Setting = Setting {
    keys: &["storage.syncPeriodSecs"],
    flag: "sync-delay",
    mongod_flag: Some("syncdelay"),
    help: "Longest time between checkpoints, in seconds [default: 60]",
    value_name: "SECONDS",
    kind: Kind::Number(1.0..=9_000_000.0),
    default: |_| Some(Value::Number(60.0)),
    effect: Effect::OnDisk,
    ..PLAIN
};
pub const OPLOG_SIZE_MB: Setting = Setting {
    keys: &["replication.oplogSizeMB"],
    flag: "oplog-size",
    mongod_flag: Some("oplogSize"),
    help: "MB of the log that are kept and shown as local.oplog.rs, for dump --oplog and change streams [default: no \
           oplog, 1024 with --repl-set]",
    value_name: "MB",
    kind: Kind::Whole(1..=1 << 30),
    default: |configuration| configuration.given(&REPL_SET_NAME).map(|_| Value::Whole(1024)),
    effect: Effect::OnDisk,
    ..PLAIN
};
pub const REPL_SET_NAME: Setting = Setting {
    keys: &["replication.replSetName"],
    flag: "repl-set",
    mongod_flag: Some("replSet"),
    help: "Be in the replica set with this name, at first as its only member; keeps an oplog",
    value_name: "NAME",
    kind: Kind::Text(check_set_name),
    ..PLAIN
};
pub const REPL_SET_HOST: Setting = Setting {
    keys: &["replication.host"],
    flag: "repl-set-host",
    mongod_flag: Some("replSetHost"),
    help: "Where drivers reach the member of the set [default: the first address and the port]",
    value_name: "HOST:PORT",
    kind: Kind::Text(check_set_host),
    ..PLAIN
};

pub const TEST_COMMANDS: Setting = Setting {
    keys: &["setParameter.enableTestCommands"],
    flag: "enable-test-commands",
    value_name: "true|false",
    kind: Kind::Truth,
    ..PLAIN
};

pub const TRANSACTION_LIFETIME: Setting = Setting {
    keys: &["setParameter.transactionLifetimeLimitSeconds"],
    flag: "transaction-lifetime-limit-seconds",
    value_name: "SECONDS",
    kind: Kind::Whole(1..=i32::MAX as i64),
    ..PLAIN
};

pub const TRANSACTION_MEMORY: Setting = Setting {
    keys: &["setParameter.transactionMemoryLimitBytes"],
    flag: "transaction-memory-limit-bytes",
    value_name: "BYTES",
    kind: Kind::Whole(TRANSACTION_MEMORY_BYTES),
    ..PLAIN
};
/// A parameter that the service itself checks and sets.
const fn parameter(keys: &'static [&'static str], flag: &'static str, kind: Kind) -> Setting {
    Setting { keys, flag, kind, ..PLAIN }
}

/// Settings for parameters that are not in the table: the service knows, checks and sets them itself.
static OTHER_PARAMETERS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
    let other = parameters_of_startup().map(|name| format!("{PARAMETERS}{name}"));
    let other = other.filter(|key| !SETTINGS.iter().any(|setting| setting.key() == key));
    let setting = |key: String| {
        // The keys live as long as the process, like those of the table.
        let keys: &'static [&'static str] = Box::leak(Box::new([&*Box::leak(key.into_boxed_str())]));
        parameter(keys, "", Kind::Parameter)
    };
    other.map(setting).collect()
});

/// The setting with this key; parameters of the service are included.
pub fn find(key: &str) -> Option<&'static Setting> {
    let other = || OTHER_PARAMETERS.iter().find(|setting| setting.key() == key);
    SETTINGS.iter().find(|setting| setting.keys.contains(&key)).or_else(other)
}

/// Reads the value of `--setParameter`.
/// # Errors
/// A sentence that names the parameter.
pub fn parse_parameter(text: &str) -> Result<(&'static Setting, Value), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("'{text}' is not NAME=VALUE"))?;
    let key = format!("{PARAMETERS}{name}");
    let setting =
        find(&key).ok_or_else(|| refusal_of_key(&key).unwrap_or_else(|| format!("unknown parameter {name}")))?;
    let value = setting.kind.check(Value::Text(value.to_owned())).map_err(|error| format!("{name}: {error}"))?;
    Ok((setting, value))
}

/// A setting of mongod for which only one value is accepted here.
const fn only(
    keys: &'static [&'static str],
    flag: &'static str,
    mongod_flag: Option<&'static str>,
    value: &'static str,
    because: &'static str,
) -> Setting {
    Setting { keys, flag, mongod_flag, kind: Kind::Only { value, because }, ..PLAIN }
}

/// A setting of mongod that has no effect here.
const fn idle(
    keys: &'static [&'static str],
    flag: &'static str,
    mongod_flag: Option<&'static str>,
    kind: Kind,
    instead: &'static str,
) -> Setting {
    Setting { keys, flag, mongod_flag, kind, effect: Effect::Nowhere { instead }, ..PLAIN }
}

/// All settings, in the order of `--help`.
pub static SETTINGS: &[Setting] = &[
    DB_PATH,
    ENGINE,
    CACHE_SIZE_GB,
    BLOCK_COMPRESSOR,
    COMPRESSION_LEVEL,
    IN_MEMORY_SIZE_GB,
    JOURNAL,
    JOURNAL_COMMIT_INTERVAL,
    SYNC_DELAY,
    OPLOG_SIZE_MB,
    REPL_SET_NAME,
    REPL_SET_HOST,
    PORT,
    BIND_IP,
    BIND_IP_ALL,
    IPV6,
    COMPRESSORS,
    MAX_CONNECTIONS,
    CONNECTIONS_OVERRIDE,
    CONNECTIONS_BY_ADDRESS,
    MONITOR_PORT,
    MONITOR_BIND_IP,
    CONSOLE,
    CONSOLE_REPORTS,
    LOGIN_TIMEOUT_MS,
    TLS_MODE,
    TLS_CERTIFICATE_KEY_FILE,
    TLS_CERTIFICATE_KEY_PASSWORD,
    TLS_CA_FILE,
    TLS_CRL_FILE,
    TLS_WITHOUT_CERTIFICATES,
    TLS_DISABLED_PROTOCOLS,
    TLS_INVALID_HOSTNAMES,
    UNIX_SOCKET,
    UNIX_SOCKET_PREFIX,
    FILE_PERMISSIONS,
    AUTHORIZATION,
    KEY_FILE,
    CLUSTER_AUTH_MODE,
    INSECURE,
    REDACT,
    AUDIT_DESTINATION,
    AUDIT_FORMAT,
    AUDIT_PATH,
    AUDIT_FILTER,
    AUDIT_RUNTIME,
    JAVASCRIPT,
    LOG_DESTINATION,
    LOG_PATH,
    LOG_APPEND,
    LOG_ROTATE,
    LOG_FORMAT,
    LOG_QUIET,
    LOG_VERBOSITY,
    SLOW_MS,
    SLOW_SAMPLE_RATE,
    PROFILING_MODE,
    TRACE_ENDPOINT,
    PID_FILE_PATH,
    TEST_COMMANDS,
    TRANSACTION_LIFETIME,
    TRANSACTION_MEMORY,
    AUDIT_SUCCESSES,
    parameter(&["setParameter.authFailedDelayMs"], "auth-failed-delay-ms", Kind::Whole(0..=5_000)),
    parameter(
        &["setParameter.ingressConnectionEstablishmentRateLimiterEnabled"],
        "ingress-connection-establishment-rate-limiter-enabled",
        Kind::Truth,
    ),
    parameter(
        &["setParameter.ingressConnectionEstablishmentRateLimiterBypass"],
        "ingress-connection-establishment-rate-limiter-bypass",
        // Each parameter reports its own errors.
        Kind::Text(|_| Ok(())),
    ),
    parameter(
        &["setParameter.ingressConnectionEstablishmentRatePerSec"],
        "ingress-connection-establishment-rate-per-sec",
        Kind::Whole(1..=i32::MAX as i64),
    ),
    parameter(
        &["setParameter.ingressConnectionEstablishmentBurstCapacitySecs"],
        "ingress-connection-establishment-burst-capacity-secs",
        Kind::Number(1e-6..=f64::MAX),
    ),
    parameter(
        &["setParameter.ingressConnectionEstablishmentMaxQueueDepth"],
        "ingress-connection-establishment-max-queue-depth",
        Kind::Whole(0..=i32::MAX as i64),
    ),
    idle(
        &["storage.directoryPerDB"],
        "directory-per-db",
        Some("directoryperdb"),
        Kind::Switch,
        "all databases share one log",
    ),
    idle(
        &["storage.wiredTiger.engineConfig.directoryForIndexes"],
        "directory-for-indexes",
        Some("wiredTigerDirectoryForIndexes"),
        Kind::Switch,
        "all indexes share the engine's files",
    ),
    idle(
        &["storage.wiredTiger.engineConfig.journalCompressor"],
        "journal-compressor",
        Some("wiredTigerJournalCompressor"),
        Kind::OneOf(&["none", "snappy", "zlib", "zstd"]),
        "the log holds documents as clients send them, until they move into compressed extents",
    ),
    idle(
        &["storage.wiredTiger.indexConfig.prefixCompression"],
        "index-prefix-compression",
        Some("wiredTigerIndexPrefixCompression"),
        Kind::Switch,
        "keys of indexes are always stored without the bytes that they share",
    ),
    idle(
        &["processManagement.timeZoneInfo"],
        "time-zone-info",
        Some("timeZoneInfo"),
        Kind::Text(any_text),
        "the program has the zones of the IANA time zone database built in",
    ),
    only(
        &["replication.enableMajorityReadConcern"],
        "enable-majority-read-concern",
        Some("enableMajorityReadConcern"),
        "true",
        "the read concern majority is always served",
    ),
    only(
        &["net.tls.allowInvalidCertificates"],
        "tls-allow-invalid-certificates",
        Some("tlsAllowInvalidCertificates"),
        "false",
        "a certificate that a client shows is always verified",
    ),
    only(&["net.tls.FIPSMode"], "tls-fips-mode", Some("tlsFIPSMode"), "false", "the cryptography is not certified"),
    only(&["net.wireObjectCheck"], "obj-check", Some("objcheck"), "true", "documents are always checked"),
    only(
        &["processManagement.fork"],
        "fork",
        None,
        "false",
        "let systemd or a container's runtime start it in the background, or the shell: nohup bunko serve ... &",
    ),
    only(
        &["systemLog.timeStampFormat"],
        "time-stamp-format",
        Some("timeStampFormat"),
        "iso8601-utc",
        "lines have the time in UTC",
    ),
];

/// Limits for the size of a cache or of an engine in memory, in GB, as in mongod.
const SIZE_GB_MIN: f64 = 0.25;
const SIZE_GB_MAX: f64 = 10_000.0;

/// Gigabytes as a person writes them, to a thousandth.
fn gigabytes(bytes: u64) -> Value {
    let gigabytes = (bytes as f64 / f64::from(1 << 30) * 1000.0).floor() / 1000.0;
    Value::Number(gigabytes.clamp(SIZE_GB_MIN, SIZE_GB_MAX))
}

fn any_text(text: &str) -> Result<(), String> {
    if text.is_empty() { Err("'' says nothing".into()) } else { Ok(()) }
}

/// Checks a set's name, because drivers put it into connection strings.
fn check_set_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.contains(['/', '?', '&', ' ']) {
        return Err(format!("'{name}' is not the name of a replica set"));
    }
    Ok(())
}

fn check_set_host(host: &str) -> Result<(), String> {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => Ok(()),
        _ => Err(format!("'{host}' is not HOST:PORT")),
    }
}

fn check_engine(name: &str) -> Result<(), String> {
    if bunko_engines::find(name).is_some() {
        return Ok(());
    }
    let names: Vec<_> = ENGINES.iter().map(|entry| format!("{} ({})", entry.name, entry.mongodb_name)).collect();
    Err(format!("there is no storage engine '{name}'; there are {}", names.join(", ")))
}

fn check_compressor(name: &str) -> Result<(), String> {
    match name {
        "zlib" => Err("zlib is not supported; zstd is the compressor for small files".into()),
        _ => Compression::parse(name, None).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Configuration;
    use std::collections::HashSet;

    #[test]
    fn names_are_taken_once() {
        let mut names = HashSet::new();
        for setting in SETTINGS {
            let flags = [setting.flag].into_iter().chain(setting.mongod_flag).chain(setting.negations.iter().copied());
            for name in flags.map(|flag| format!("--{flag}")).chain(setting.keys.iter().map(|key| (*key).to_owned())) {
                assert!(names.insert(name.clone()), "{name} is taken twice");
            }
        }
    }

    #[test]
    fn defaults_are_values_that_would_be_taken() {
        let configuration = Configuration::default();
        for setting in SETTINGS {
            if let Some(default) = (setting.default)(&configuration) {
                assert_eq!(setting.kind.check(default.clone()), Ok(default), "{}", setting.key());
            }
        }
    }

    #[test]
    fn engines_and_compressors_that_there_are_not_are_named() {
        assert!(
            check_engine("rocksdb")
                .is_err_and(|error| error.contains("'rocksdb'") && error.contains("lsm (wiredTiger)"))
        );
        assert!(check_compressor("zlib").is_err_and(|error| error.contains("zstd")));
        assert!(check_compressor("brotli").is_err_and(|error| error.contains("'brotli'")));
    }
}
