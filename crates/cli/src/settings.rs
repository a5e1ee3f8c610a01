//! What is in force: flags before the configuration file before the defaults.

use crate::arguments::{LogFormat, ServeArguments};
use crate::config_file::ConfigFile;
use bunko_bson::DocumentBuf;
use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

const PORT: u16 = 27017;
const CONNECTIONS_MAX: usize = 65_536;
/// Longest `commitIntervalMs` that mongod takes.
const COMMIT_INTERVAL_MS_MAX: u64 = 500;

#[derive(Debug)]
pub struct Settings {
    pub dbpath: PathBuf,
    pub addresses: Vec<SocketAddr>,
    pub log_format: LogFormat,
    pub log_path: Option<PathBuf>,
    pub connections_max: usize,
    pub commit_interval: Duration,
    pub checkpoint_interval: Duration,
    pub cache_bytes: u64,
    /// As `getCmdLineOpts` shows it.
    pub parsed: DocumentBuf,
}

impl Settings {
    /// # Errors
    /// A sentence that names the setting and its value.
    pub fn new(arguments: &ServeArguments) -> Result<Self, String> {
        let file = match &arguments.config {
            Some(path) => ConfigFile::read(path)?,
            None => ConfigFile::default(),
        };
        check_engine(&file)?;
        let dbpath = arguments
            .dbpath
            .clone()
            .or_else(|| file.storage.db_path.clone())
            .unwrap_or_else(|| PathBuf::from("bunko-data"));
        let port = arguments.port.or(file.net.port).unwrap_or(PORT);
        let bind_ip = arguments.bind_ip.clone().or_else(|| file.net.bind_ip.clone());
        let bind_ip = match bind_ip {
            Some(bind_ip) => bind_ip,
            None if file.net.bind_ip_all == Some(true) => "0.0.0.0".into(),
            None => "127.0.0.1".into(),
        };
        let parsed = parsed_options(arguments, &dbpath, port, &bind_ip);
        Ok(Self {
            dbpath,
            addresses: addresses(&bind_ip, port)?,
            log_format: arguments
                .log_format
                .unwrap_or_else(|| if std::io::stderr().is_terminal() { LogFormat::Text } else { LogFormat::Json }),
            log_path: log_path(&file)?,
            connections_max: arguments.max_connections.or(file.net.max_incoming_connections).unwrap_or(CONNECTIONS_MAX),
            commit_interval: commit_interval(&file)?,
            checkpoint_interval: checkpoint_interval(&file)?,
            cache_bytes: cache_bytes(&file)?,
            parsed,
        })
    }
}

/// Names of engines whose role `lsm` plays.
fn check_engine(file: &ConfigFile) -> Result<(), String> {
    match file.storage.engine.as_deref() {
        None | Some("wiredTiger" | "lsm") => {}
        Some(engine) => return Err(format!("storage.engine: {engine} is not supported; use wiredTiger or lsm")),
    }
    if file.storage.journal.enabled == Some(false) {
        return Err("storage.journal.enabled: false is not supported; the log is the database".into());
    }
    Ok(())
}

fn addresses(bind_ip: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let mut addresses = Vec::new();
    for name in bind_ip.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let address = match name {
            "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            "*" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            "::" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            _ => name.parse().map_err(|_| format!("--bind-ip: '{name}' is not an IP address or localhost"))?,
        };
        addresses.push(SocketAddr::new(address, port));
    }
    if addresses.is_empty() {
        return Err(format!("--bind-ip: '{bind_ip}' names no address"));
    }
    Ok(addresses)
}

fn commit_interval(file: &ConfigFile) -> Result<Duration, String> {
    match file.storage.journal.commit_interval_ms.unwrap_or(100) {
        milliseconds @ 1..=COMMIT_INTERVAL_MS_MAX => Ok(Duration::from_millis(milliseconds)),
        other => Err(format!("storage.journal.commitIntervalMs: {other} is not within 1..={COMMIT_INTERVAL_MS_MAX}")),
    }
}

fn checkpoint_interval(file: &ConfigFile) -> Result<Duration, String> {
    let seconds = file.storage.sync_period_secs.unwrap_or(60.0);
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|interval| *interval >= Duration::from_secs(1))
        .ok_or_else(|| format!("storage.syncPeriodSecs: {seconds} must be at least 1"))
}

fn cache_bytes(file: &ConfigFile) -> Result<u64, String> {
    match file.storage.wired_tiger.engine_config.cache_size_gb {
        None => Ok(bunko_lsm::LsmOptions::default().cache_bytes),
        Some(gigabytes) if (0.001..=10_000.0).contains(&gigabytes) => Ok((gigabytes * f64::from(1 << 30)) as u64),
        Some(gigabytes) => {
            Err(format!("storage.wiredTiger.engineConfig.cacheSizeGB: {gigabytes} is not within 0.001..=10000"))
        }
    }
}

fn log_path(file: &ConfigFile) -> Result<Option<PathBuf>, String> {
    match (file.system_log.destination.as_deref(), &file.system_log.path) {
        (None, None) => Ok(None),
        (Some("file"), Some(path)) if file.system_log.log_append == Some(true) || !path.exists() => {
            Ok(Some(path.clone()))
        }
        (Some("file"), Some(path)) => {
            Err(format!("systemLog.path: {} exists; set systemLog.logAppend: true to append to it", path.display()))
        }
        (Some("file"), None) => Err("systemLog.destination: file needs systemLog.path".into()),
        (None, Some(_)) => Err("systemLog.path needs systemLog.destination: file".into()),
        (Some(other), _) => Err(format!("systemLog.destination: {other} is not supported; use file")),
    }
}

fn parsed_options(arguments: &ServeArguments, dbpath: &std::path::Path, port: u16, bind_ip: &str) -> DocumentBuf {
    let mut parsed = DocumentBuf::new();
    if let Some(config) = &arguments.config {
        parsed.append("config", config.to_string_lossy().as_ref());
    }
    let net = DocumentBuf::new().with("bindIp", bind_ip).with("port", i32::from(port));
    let storage = DocumentBuf::new().with("dbPath", dbpath.to_string_lossy().as_ref());
    parsed.append("net", &net).append("storage", &storage);
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_go_before_defaults() {
        let settings = Settings::new(&ServeArguments { port: Some(1234), ..ServeArguments::default() }).expect("valid");
        assert_eq!(settings.addresses, ["127.0.0.1:1234".parse().expect("address")]);
        assert_eq!(settings.dbpath, PathBuf::from("bunko-data"));
    }

    #[test]
    fn addresses_are_checked() {
        assert_eq!(addresses("localhost, ::1", 5).expect("valid").len(), 2);
        assert!(addresses("nowhere", 5).expect_err("refused").contains("nowhere"));
        assert!(addresses(" ,", 5).is_err());
    }
}
