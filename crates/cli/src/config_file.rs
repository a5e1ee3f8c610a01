//! Configuration files as mongod takes them. A key that is not listed here stops the start and is named.

use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ConfigFile {
    pub storage: Storage,
    pub net: Net,
    pub system_log: SystemLog,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Storage {
    pub db_path: Option<PathBuf>,
    pub engine: Option<String>,
    pub journal: Journal,
    pub sync_period_secs: Option<f64>,
    pub wired_tiger: WiredTiger,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Journal {
    pub enabled: Option<bool>,
    pub commit_interval_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct WiredTiger {
    pub engine_config: EngineConfig,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    #[serde(rename = "cacheSizeGB")]
    pub cache_size_gb: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Net {
    pub port: Option<u16>,
    pub bind_ip: Option<String>,
    pub bind_ip_all: Option<bool>,
    pub max_incoming_connections: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SystemLog {
    pub destination: Option<String>,
    pub path: Option<PathBuf>,
    pub log_append: Option<bool>,
}

impl ConfigFile {
    /// Reads a file; the error names the file and the line.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        serde_yaml_ng::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ConfigFile, String> {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("mongod.conf");
        std::fs::write(&path, text).expect("written");
        ConfigFile::read(&path)
    }

    #[test]
    fn a_mongod_file_is_read() {
        let file = read(
            "storage:\n  dbPath: /var/lib/mongodb\n  engine: wiredTiger\n  wiredTiger:\n    engineConfig:\n      \
             cacheSizeGB: 2.5\nnet:\n  port: 27018\n  bindIp: 127.0.0.1,::1\n",
        )
        .expect("valid");
        assert_eq!(file.net.port, Some(27018));
        assert_eq!(file.storage.engine.as_deref(), Some("wiredTiger"));
        assert_eq!(file.storage.wired_tiger.engine_config.cache_size_gb, Some(2.5));
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let error = read("net:\n  port: 1\n  prot: 2\n").expect_err("refused");
        assert!(error.contains("prot") && error.contains("line 3"), "{error}");
    }
}
