//! Servers that the lab starts itself.

use serde::{Deserialize, Serialize};

/// How servers are to be that the lab starts itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServerSettings {
    /// What they are reached by; `tcp` if not set.
    pub transport: Option<TransportSetting>,
}

/// What a server is reached by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransportSetting {
    /// A TCP port of the loopback.
    #[default]
    Tcp,
    /// A Unix domain socket.
    Unix,
}
