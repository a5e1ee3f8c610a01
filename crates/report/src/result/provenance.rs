//! The origin of figures: scenario, machine, servers.

use serde::{Deserialize, Serialize};

/// The scenario that was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioRecord {
    /// Its name.
    pub name: String,
    /// A description in one line.
    pub about: String,
    /// The purpose of the scenario, for a reader in ten years.
    pub prose: String,
    /// The published experiment that it repeats (`E1` .. `E5`).
    pub experiment: Option<String>,
    /// Seed of all its random choices.
    pub seed: u64,
    /// SHA-256 of [`Self::resolved`]: two runs with equal hashes did the same work.
    pub hash: String,
    /// The scenario as TOML after `--set`.
    pub resolved: String,
}

/// A generator's share of the load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum WorkerShare {
    /// One generator of several.
    Share {
        /// Index of the generator, from 0.
        index: u32,
        /// Number of generators.
        count: u32,
        /// This machine's clock minus the server's, in milliseconds.
        clock_offset_ms: f64,
    },
    /// The sum of all generators.
    Merged {
        /// Number of generators.
        count: u32,
    },
}

/// The machine that the generator ran on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// Operating system and kernel release.
    pub kernel: String,
}

/// A measured server. `None` for facts that it did not report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// Name in tables: `A`, `lsm`, an address.
    pub label: String,
    /// `host:port` or the path of a socket, without credentials.
    pub address: String,
    /// Transports used; several where variants differ in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transports: Vec<Transport>,
    /// Whether the lab started it.
    pub embedded: bool,
    /// Whether it runs on the generator's machine.
    pub local: bool,
    /// `buildInfo.version`
    pub version: Option<String>,
    /// `serverStatus.storageEngine.name`
    pub storage_engine: Option<String>,
    /// The promise of an acknowledgement: w, j, engine, journal interval.
    pub durability: String,
    /// Settings that differ from the defaults: setting, value. For a server that the lab started, the settings given;
    /// for others, the storage settings in `getCmdLineOpts`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<(String, String)>,
    /// Directory of its data files.
    pub data_directory: Option<String>,
    /// Type of the filesystem that holds them, as the kernel names it.
    pub filesystem: Option<String>,
}

/// The connection between a client and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A TCP socket.
    Tcp,
    /// TLS over TCP.
    Tls,
    /// A Unix domain socket.
    Unix,
}

impl TargetRecord {
    /// Notes a transport.
    pub fn add_transport(&mut self, transport: Transport) {
        if let Err(place) = self.transports.binary_search(&transport) {
            self.transports.insert(place, transport);
        }
    }
}
