//! The configuration in force, in the types that the server is made of.

use super::addresses::{self, Families};
use super::audit::{self, AuditSettings};
use super::cluster_auth::{self, ClusterAuth};
use super::console::{self, ConsoleSettings};
use super::in_force::Configuration;
use super::log_file::{self, LogFile};
use super::log_format::LogFormat;
use super::setting::{Effect, PARAMETERS, Setting, Value};
use super::table::{
    AUTHORIZATION, BIND_IP, BIND_IP_ALL, BLOCK_COMPRESSOR, CACHE_SIZE_GB, CLUSTER_AUTH_MODE, COMPRESSION_LEVEL,
    COMPRESSORS, CONNECTIONS_BY_ADDRESS, CONNECTIONS_OVERRIDE, DB_PATH, ENGINE, FILE_PERMISSIONS, IN_MEMORY_SIZE_GB,
    INSECURE, IPV6, JAVASCRIPT, JOURNAL, JOURNAL_COMMIT_INTERVAL, KEY_FILE, LOG_FORMAT, LOG_QUIET, LOG_VERBOSITY,
    LOGIN_TIMEOUT_MS, MAX_CONNECTIONS, MONITOR_BIND_IP, MONITOR_PORT, OPLOG_SIZE_MB, PID_FILE_PATH, PORT,
    PROFILING_MODE, REDACT, REPL_SET_HOST, REPL_SET_NAME, SLOW_MS, SLOW_SAMPLE_RATE, SYNC_DELAY, TEST_COMMANDS,
    TLS_MODE, TRACE_ENDPOINT, TRANSACTION_LIFETIME, TRANSACTION_MEMORY, UNIX_SOCKET, UNIX_SOCKET_PREFIX,
    parse_compressors, parse_permissions, parse_range,
};
use super::tls;
use bunko_bson::DocumentBuf;
use bunko_client::Verification;
use bunko_command::MemberHost;
use bunko_engines::{Compression, EngineOptions, Entry};
use bunko_operation::Scripting;
use bunko_server::{AdmissionOptions, TlsOptions, UnixSocketOptions};
use bunko_store::Survival;
use bunko_wire::Compressor;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of a server.
pub struct Settings {
    pub engine: &'static Entry,
    /// The engine's name as it was given.
    pub asked_engine: String,
    /// Whether the data of the server's own engine survives a restart.
    pub survival: Survival,
    pub engines: EngineOptions,
    pub dbpath: PathBuf,
    pub addresses: Vec<SocketAddr>,
    /// Whether commands need privileges; `None` if no setting says so.
    pub authorization: Option<bool>,
    /// How members of the set prove that they are members.
    pub cluster_auth: ClusterAuth,
    /// Whether a server without authorization may be reached from other machines.
    pub is_insecure: bool,
    /// Whether clients' values are left out of the log.
    pub is_log_redacted: bool,
    pub audit: Option<AuditSettings>,
    /// Where the monitor listens; empty if it is off.
    pub monitor_addresses: Vec<SocketAddr>,
    /// Where the console is served; `None` if it is off.
    pub console: Option<ConsoleSettings>,
    pub unix_socket: Option<UnixSocketOptions>,
    /// TLS options; `None` if TLS is disabled.
    pub tls: Option<TlsOptions>,
    /// The value of `net.tls.mode`.
    pub tls_mode: String,
    /// How much of the certificates of other members is checked.
    pub verification: Verification,
    pub log_format: LogFormat,
    pub log_file: Option<LogFile>,
    /// Compressors that messages may use.
    pub compressors: Vec<Compressor>,
    /// Limits on accepted connections.
    pub admission: AdmissionOptions,
    /// Parameters that the service checks and sets itself, by name.
    pub parameters: Vec<(&'static str, Value)>,
    pub commit_interval: Duration,
    pub checkpoint_interval: Duration,
    /// Size of the part of the log that is shown as an oplog; `None` for no oplog.
    pub oplog_bytes: Option<u64>,
    /// The replica set that this server is a member of.
    pub replica_set: Option<ReplicaSetSettings>,
    pub pid_file: Option<PathBuf>,
    /// Whether JavaScript from clients is executed.
    pub scripting: Scripting,
    /// Operations that take at least this long are logged.
    pub slow_operation: Duration,
    /// Profiling level of databases whose level no client has set: 0, 1 or 2, as the command `profile` takes it.
    pub profiling_level: i32,
    /// Share of slow operations that is logged and profiled.
    pub slow_sample_rate: f64,
    /// The URL of the collector to which spans of slow operations are sent, as it was given.
    pub trace_endpoint: Option<String>,
    /// Whether commands for testing clients are accepted.
    pub test_commands: TestCommands,
    /// Longest time that transactions may be open, in seconds, if given.
    pub transaction_lifetime: Option<u32>,
    /// Maximum memory of a transaction, in bytes, if given.
    pub transaction_memory: Option<u64>,
    /// Settings that were given but have no effect with this engine.
    pub idle: Vec<String>,
    /// Settings of mongod that were given but have no effect here, each with what is done instead.
    pub without_effect: Vec<String>,
    /// The given values, as `getCmdLineOpts` shows them.
    pub parsed: DocumentBuf,
    /// All values in force, in that form.
    pub in_force: DocumentBuf,
}

/// Whether commands for testing clients are accepted, such as `configureFailPoint`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestCommands {
    Taken,
    Refused,
}

/// A replica set, and this member's address.
#[derive(Debug, PartialEq, Eq)]
pub struct ReplicaSetSettings {
    pub name: String,
    pub host: MemberHost,
}

impl Settings {
    /// # Errors
    /// A sentence that names the settings that contradict each other, and where they were given.
    pub fn new(configuration: &Configuration) -> Result<Self, String> {
        let asked_engine = configuration.text(&ENGINE).unwrap_or_default();
        let engine = bunko_engines::find(&asked_engine).ok_or_else(|| configuration.name_of(&ENGINE))?;
        let engines = engine_options(configuration)?;
        let survival = (engine.kind)(&engines).survival;
        check_journal(configuration, engine, survival)?;
        let path = |setting: &Setting| configuration.text(setting).map(PathBuf::from);
        Ok(Self {
            engine,
            asked_engine,
            survival,
            engines,
            dbpath: path(&DB_PATH).unwrap_or_default(),
            addresses: addresses(configuration)?,
            authorization: authorization(configuration),
            cluster_auth: cluster_auth::options(configuration)?,
            is_insecure: configuration.is_on(&INSECURE),
            is_log_redacted: configuration.is_on(&REDACT),
            audit: audit::options(configuration)?,
            monitor_addresses: monitor_addresses(configuration)?,
            console: console::options(configuration)?,
            unix_socket: unix_socket(configuration)?,
            tls: tls::options(configuration)?,
            tls_mode: configuration.text(&TLS_MODE).unwrap_or_default(),
            verification: tls::verification(configuration),
            log_format: configuration.text(&LOG_FORMAT).map_or(LogFormat::Json, |name| LogFormat::named(&name)),
            log_file: log_file::options(configuration)?,
            compressors: parse_compressors(&configuration.text(&COMPRESSORS).unwrap_or_default())?,
            admission: admission(configuration)?,
            parameters: parameters(configuration),
            commit_interval: Duration::from_millis(configuration.whole(&JOURNAL_COMMIT_INTERVAL) as u64),
            checkpoint_interval: Duration::from_secs_f64(configuration.number(&SYNC_DELAY)),
            oplog_bytes: oplog_bytes(configuration),
            replica_set: replica_set(configuration, engine, survival)?,
            pid_file: path(&PID_FILE_PATH),
            scripting: if configuration.is_on(&JAVASCRIPT) { Scripting::Allowed } else { Scripting::Refused },
            slow_operation: Duration::from_millis(configuration.whole(&SLOW_MS) as u64),
            profiling_level: profiling_level(configuration),
            slow_sample_rate: configuration.number(&SLOW_SAMPLE_RATE),
            trace_endpoint: configuration.text(&TRACE_ENDPOINT),
            test_commands: if configuration.is_on(&TEST_COMMANDS) {
                TestCommands::Taken
            } else {
                TestCommands::Refused
            },
            transaction_lifetime: configuration
                .given(&TRANSACTION_LIFETIME)
                .map(|_| configuration.whole(&TRANSACTION_LIFETIME) as u32),
            transaction_memory: configuration
                .given(&TRANSACTION_MEMORY)
                .map(|_| configuration.whole(&TRANSACTION_MEMORY) as u64),
            idle: idle(configuration, survival),
            without_effect: without_effect(configuration),
            parsed: configuration.parsed(),
            in_force: configuration.all_in_force(),
        })
    }
}

/// Whether access control was requested. A key file or certificates for members request it too, as with mongod.
fn authorization(configuration: &Configuration) -> Option<bool> {
    let said = configuration.given(&AUTHORIZATION).map(|_| configuration.is_on(&AUTHORIZATION));
    let is_by_certificate = configuration.text(&CLUSTER_AUTH_MODE).is_some_and(|mode| mode == "x509");
    said.or((is_by_certificate || configuration.given(&KEY_FILE).is_some()).then_some(true))
}

fn profiling_level(configuration: &Configuration) -> i32 {
    match configuration.text(&PROFILING_MODE).as_deref() {
        Some("slowOp" | "1") => 1,
        Some("all" | "2") => 2,
        _ => 0,
    }
}

fn admission(configuration: &Configuration) -> Result<AdmissionOptions, String> {
    let exempt = configuration.text(&CONNECTIONS_OVERRIDE).unwrap_or_default();
    Ok(AdmissionOptions {
        connections_max: configuration.whole(&MAX_CONNECTIONS) as usize,
        by_address_max: configuration
            .given(&CONNECTIONS_BY_ADDRESS)
            .map(|_| configuration.whole(&CONNECTIONS_BY_ADDRESS) as usize),
        exempt: exempt.split(',').filter(|text| !text.is_empty()).map(parse_range).collect::<Result<_, _>>()?,
        login_patience: Duration::from_millis(configuration.whole(&LOGIN_TIMEOUT_MS) as u64),
    })
}

/// The given parameters that a client could set, too.
fn parameters(configuration: &Configuration) -> Vec<(&'static str, Value)> {
    let own = [TEST_COMMANDS.key(), TRACE_ENDPOINT.key(), TRANSACTION_LIFETIME.key(), TRANSACTION_MEMORY.key()];
    let given = configuration.all_given().iter().filter(|given| !own.contains(&given.setting.key()));
    let parameters =
        given.filter_map(|given| Some((given.setting.key().strip_prefix(PARAMETERS)?, given.value.clone())));
    // These two are settings as well as parameters.
    let both = [(&LOG_QUIET, "quiet"), (&LOG_VERBOSITY, "logLevel")];
    let both = both.into_iter().filter_map(|(setting, name)| Some((name, configuration.given(setting)?.value.clone())));
    parameters.chain(both).collect()
}

fn oplog_bytes(configuration: &Configuration) -> Option<u64> {
    let is_kept = configuration.given(&OPLOG_SIZE_MB).or(configuration.given(&REPL_SET_NAME)).is_some();
    is_kept.then(|| (configuration.whole(&OPLOG_SIZE_MB) as u64) << 20)
}

fn replica_set(
    configuration: &Configuration,
    engine: &Entry,
    survival: Survival,
) -> Result<Option<ReplicaSetSettings>, String> {
    let Some(name) = configuration.text(&REPL_SET_NAME) else {
        return match configuration.given(&REPL_SET_HOST) {
            Some(_) => Err(format!("{} needs {}", configuration.name_of(&REPL_SET_HOST), REPL_SET_NAME.key())),
            None => Ok(None),
        };
    };
    if survival == Survival::Volatile {
        let setting = configuration.name_of(&REPL_SET_NAME);
        return Err(format!("{setting}: the engine {} keeps no log, and a replica set needs one", engine.name));
    }
    let host = match configuration.text(&REPL_SET_HOST) {
        Some(host) => MemberHost::Given(host),
        None => own_host(&addresses(configuration)?)
            .map(MemberHost::Default)
            .ok_or_else(|| format!("{}: port 0 needs {}", configuration.name_of(&PORT), REPL_SET_HOST.key()))?,
    };
    Ok(Some(ReplicaSetSettings { name, host }))
}

/// The first address as other machines reach it; `None` if its port is not known yet.
fn own_host(addresses: &[SocketAddr]) -> Option<String> {
    let first = addresses.first().filter(|address| address.port() != 0)?;
    if first.ip().is_unspecified() {
        return Some(format!("{}:{}", rustix::system::uname().nodename().to_string_lossy(), first.port()));
    }
    Some(first.to_string())
}

fn engine_options(configuration: &Configuration) -> Result<EngineOptions, String> {
    let bytes = |setting| (configuration.number(setting) * f64::from(1 << 30)) as u64;
    let compressor = configuration.text(&BLOCK_COMPRESSOR).unwrap_or_default();
    let level = configuration.given(&COMPRESSION_LEVEL).map(|_| configuration.whole(&COMPRESSION_LEVEL) as i32);
    let compression = Compression::parse(&compressor, level)
        .map_err(|error| format!("{}: {error}", configuration.name_of(&COMPRESSION_LEVEL)))?;
    Ok(EngineOptions { cache_bytes: bytes(&CACHE_SIZE_GB), compression, memory_limit_bytes: bytes(&IN_MEMORY_SIZE_GB) })
}

fn check_journal(configuration: &Configuration, engine: &Entry, survival: Survival) -> Result<(), String> {
    if survival == Survival::Volatile || configuration.is_on(&JOURNAL) {
        return Ok(());
    }
    let name = configuration.name_of(&JOURNAL);
    Err(format!("{name}: false is not supported by the engine {}, only true: the log is the database", engine.name))
}

fn addresses(configuration: &Configuration) -> Result<Vec<SocketAddr>, String> {
    let list = match (configuration.given(&BIND_IP), configuration.is_on(&BIND_IP_ALL)) {
        (Some(_), true) => {
            let (one, other) = (configuration.name_of(&BIND_IP), configuration.name_of(&BIND_IP_ALL));
            return Err(format!("{one} and {other} exclude each other; give one of them"));
        }
        (None, true) => addresses::ALL.to_owned(),
        (_, false) => configuration.text(&BIND_IP).unwrap_or_default(),
    };
    addresses_of(configuration, &list, &BIND_IP, &PORT)
}

fn monitor_addresses(configuration: &Configuration) -> Result<Vec<SocketAddr>, String> {
    match (configuration.given(&MONITOR_PORT), configuration.given(&MONITOR_BIND_IP)) {
        (None, None) => Ok(Vec::new()),
        (None, Some(_)) => Err(format!("{} needs {}", configuration.name_of(&MONITOR_BIND_IP), MONITOR_PORT.key())),
        (Some(_), _) => {
            let list = configuration.text(&MONITOR_BIND_IP).unwrap_or_default();
            addresses_of(configuration, &list, &MONITOR_BIND_IP, &MONITOR_PORT)
        }
    }
}

/// The addresses in the list, which `setting` gave, with the port that `port` gives.
fn addresses_of(
    configuration: &Configuration,
    list: &str,
    setting: &Setting,
    port: &Setting,
) -> Result<Vec<SocketAddr>, String> {
    let families = if configuration.is_on(&IPV6) { Families::Both } else { Families::V4 };
    let named =
        addresses::parse(list, families).map_err(|error| format!("{}: {error}", configuration.name_of(setting)))?;
    let port = configuration.whole(port) as u16;
    Ok(named.into_iter().map(|address| SocketAddr::new(address, port)).collect())
}

fn unix_socket(configuration: &Configuration) -> Result<Option<UnixSocketOptions>, String> {
    if !configuration.is_on(&UNIX_SOCKET) {
        return Ok(None);
    }
    let directory = configuration.text(&UNIX_SOCKET_PREFIX).unwrap_or_default().into();
    let permissions = parse_permissions(&configuration.text(&FILE_PERMISSIONS).unwrap_or_default())?;
    Ok(Some(UnixSocketOptions { directory, permissions }))
}

fn idle(configuration: &Configuration, survival: Survival) -> Vec<String> {
    let given = configuration.all_given().iter();
    let idle = given.filter(|given| survival == Survival::Volatile && given.setting.effect == Effect::OnDisk);
    idle.map(|given| given.setting.key().to_owned()).collect()
}

/// Settings that were given and have no effect on any engine, each with what is done instead.
fn without_effect(configuration: &Configuration) -> Vec<String> {
    let said = |setting: &Setting| match setting.effect {
        Effect::Nowhere { instead } => Some(format!("{}: {instead}", setting.key())),
        Effect::Always | Effect::OnDisk => None,
    };
    configuration.all_given().iter().filter_map(|given| said(given.setting)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::ServeArguments;
    use crate::configuration::log_file::ExistingLog;
    use crate::configuration::table::{
        LOG_DESTINATION, LOG_PATH, LOG_ROTATE, SETTINGS, TLS_CA_FILE, TLS_CERTIFICATE_KEY_FILE,
    };

    fn settings(values: &[(&Setting, &str)]) -> Result<Settings, String> {
        let given = values.iter().map(|(wanted, value)| {
            let setting = SETTINGS.iter().find(|setting| setting.key() == wanted.key()).expect("a setting");
            (setting, setting.kind.check(Value::Text((*value).to_owned())).expect("a value"))
        });
        let arguments = ServeArguments { given: given.collect(), ..ServeArguments::default() };
        Settings::new(&Configuration::read(&arguments).expect("no file"))
    }

    #[test]
    fn defaults_are_those_of_the_documentation() {
        let settings = settings(&[]).expect("valid");
        assert_eq!(settings.addresses, ["127.0.0.1:27017".parse().expect("an address")]);
        assert_eq!(settings.dbpath, PathBuf::from("bunko-data"));
        assert_eq!((settings.engine.name, settings.survival), ("lsm", Survival::Durable));
        assert_eq!(settings.commit_interval, Duration::from_millis(100));
        assert!(settings.log_file.is_none() && settings.idle.is_empty() && settings.parsed.as_ref().is_empty());
    }

    #[test]
    fn values_arrive() {
        let settings = settings(&[
            (&CACHE_SIZE_GB, "1.5"),
            (&BLOCK_COMPRESSOR, "zstd"),
            (&COMPRESSION_LEVEL, "3"),
            (&IN_MEMORY_SIZE_GB, "0.25"),
            (&BIND_IP_ALL, "true"),
            (&IPV6, "true"),
            (&PORT, "7"),
            (&LOG_PATH, "a.log"),
            (&FILE_PERMISSIONS, "0666"),
        ])
        .expect("valid");
        assert_eq!(settings.engines.cache_bytes, 3 << 29);
        assert_eq!(settings.engines.compression, Compression::Zstd { level: 3 });
        assert_eq!(settings.engines.memory_limit_bytes, 256 << 20);
        assert_eq!(settings.addresses, ["0.0.0.0:7", "[::]:7"].map(|text| text.parse().expect("an address")));
        assert_eq!(settings.log_file.expect("given").existing, ExistingLog::Refuse);
        assert_eq!(settings.unix_socket.expect("on by default").permissions, 0o666);
    }

    #[test]
    fn members_log_in_by_a_key_or_by_certificates() {
        let with_key = settings(&[(&KEY_FILE, "key")]).expect("valid");
        assert_eq!(with_key.authorization, Some(true));
        assert_eq!(with_key.cluster_auth, ClusterAuth::KeyFile("key".into()));
        let tls = [(&TLS_MODE, "preferTLS"), (&TLS_CERTIFICATE_KEY_FILE, "own.pem"), (&TLS_CA_FILE, "ca.pem")];
        let given: Vec<_> = tls.into_iter().chain([(&CLUSTER_AUTH_MODE, "x509")]).collect();
        let with_certificate = settings(&given).expect("valid");
        assert_eq!(with_certificate.authorization, Some(true));
        assert_eq!(with_certificate.cluster_auth, ClusterAuth::Certificate);
        assert_eq!(settings(&tls).expect("valid").cluster_auth, ClusterAuth::None);
        let refused = CLUSTER_AUTH_MODE.kind.check(Value::Text("sendX509".to_owned()));
        assert_eq!(refused, Err("'sendX509' is not supported yet, only keyFile and x509".to_owned()));
    }

    #[test]
    fn contradictory_settings_are_refused() {
        for (values, expected) in [
            (
                vec![(&COMPRESSION_LEVEL, "3")],
                "storage.wiredTiger.engineConfig.zstdCompressionLevel (flag --compression-level): blockCompressor lz4 \
                 takes no compression level, but 3 is given",
            ),
            (
                vec![(&JOURNAL, "false")],
                "storage.journal.enabled (flag --journal): false is not supported by the engine lsm, only true: the \
                 log is the database",
            ),
            (
                vec![(&BIND_IP, "::1"), (&BIND_IP_ALL, "true")],
                "net.bindIp (flag --bind-ip) and net.bindIpAll (flag --bind-ip-all) exclude each other; give one of \
                 them",
            ),
            (
                vec![(&TLS_MODE, "requireTLS")],
                "net.tls.mode (flag --tls-mode): requireTLS needs net.tls.certificateKeyFile, a PEM file with the \
                 server's certificate and its key",
            ),
            (
                vec![(&TLS_MODE, "allowTLS"), (&TLS_CERTIFICATE_KEY_FILE, "server.pem")],
                "net.tls.mode (flag --tls-mode): allowTLS needs net.tls.CAFile, a PEM file with the authorities that \
                 issue certificates of clients",
            ),
            (vec![(&TLS_CA_FILE, "ca.pem")], "net.tls.CAFile (flag --tls-ca-file) needs net.tls.mode"),
            (
                vec![(&CLUSTER_AUTH_MODE, "x509")],
                "security.clusterAuthMode (flag --cluster-auth-mode): x509 needs net.tls.mode preferTLS or requireTLS, and \
                 it is disabled",
            ),
            (
                vec![(&CLUSTER_AUTH_MODE, "x509"), (&KEY_FILE, "key")],
                "security.keyFile (flag --key-file) has no use where security.clusterAuthMode (flag --cluster-auth-mode) is \
                 x509; give one of them",
            ),
            (
                vec![(&KEY_FILE, "key"), (&AUTHORIZATION, "disabled")],
                "security.authorization (flag --auth): disabled contradicts security.keyFile (flag --key-file), which turns \
                 authorization on",
            ),
            (
                vec![(&LOG_DESTINATION, "file")],
                "systemLog.destination (flag --log-destination): file needs systemLog.path",
            ),
            (
                vec![(&LOG_PATH, "a.log"), (&LOG_ROTATE, "reopen")],
                "systemLog.logRotate (flag --log-rotate): reopen needs systemLog.logAppend: true",
            ),
        ] {
            assert_eq!(settings(&values).err().as_deref(), Some(expected));
        }
    }
}
