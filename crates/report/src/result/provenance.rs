//! Where figures come from.

use serde::{Deserialize, Serialize};

/// What was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioRecord {
    /// Its name.
    pub name: String,
    /// One line.
    pub about: String,
    /// What it does and why, for whoever reads the report in ten years.
    pub prose: String,
    /// The published experiment that it repeats (`E1` .. `E5`).
    pub experiment: Option<String>,
    /// Seed of all its random choices.
    pub seed: u64,
    /// SHA-256 of [`Self::resolved`]: equal where two runs did the same.
    pub hash: String,
    /// The scenario as TOML after `--set`.
    pub resolved: String,
}

/// A generator's share of the load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum WorkerShare {
    /// One of several.
    Share {
        /// From 0.
        index: u32,
        /// How many there are.
        count: u32,
        /// This machine's clock minus the server's, in milliseconds.
        clock_offset_ms: f64,
    },
    /// The sum of all.
    Merged {
        /// How many.
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

/// A server that was measured; `None` where it did not say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// What tables call it: `A`, `lsm`, an address.
    pub label: String,
    /// `host:port` or the path of a socket, without credentials.
    pub address: String,
    /// What bytes travelled over; several where variants differ in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transports: Vec<Transport>,
    /// Whether the lab started it itself.
    pub embedded: bool,
    /// Whether it runs on the generator's machine.
    pub local: bool,
    /// `buildInfo.version`
    pub version: Option<String>,
    /// `serverStatus.storageEngine.name`
    pub storage_engine: Option<String>,
    /// What an acknowledgement promised: w, j, engine, journal interval.
    pub durability: String,
    /// What sets it apart from a server with default settings: setting, value. Of a server that the lab started what it
    /// was given, of others what `getCmdLineOpts` says of storage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<(String, String)>,
    /// Directory of its data files.
    pub data_directory: Option<String>,
    /// Type of the filesystem that holds them, as the kernel names it.
    pub filesystem: Option<String>,
}

/// What a client and a server are connected by.
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
    /// Notes that bytes travelled over this, too.
    pub fn add_transport(&mut self, transport: Transport) {
        if let Err(place) = self.transports.binary_search(&transport) {
            self.transports.insert(place, transport);
        }
    }
}
