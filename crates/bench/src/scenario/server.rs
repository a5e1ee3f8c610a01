//! Settings of servers that the lab itself starts.

use serde::{Deserialize, Serialize};

/// Settings of servers that the lab itself starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServerSettings {
    /// Transport of connections to them; `tcp` if not set.
    pub transport: Option<TransportSetting>,
}

/// Transport of connections to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransportSetting {
    /// A TCP port of the loopback interface.
    #[default]
    Tcp,
    /// A Unix domain socket.
    Unix,
}
