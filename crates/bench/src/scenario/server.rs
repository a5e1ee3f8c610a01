//! Settings of servers that the lab itself starts.

use super::{Cache, Phase, Scenario};
use serde::{Deserialize, Serialize};

/// Most members that the lab starts: as many as a set may have with votes.
const MEMBERS_MAX: usize = 7;

/// Settings of servers that the lab itself starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServerSettings {
    /// Transport of connections to them; `tcp` if not set.
    pub transport: Option<TransportSetting>,
    /// The members of the replica set that is started, each a server of its own; without any it is one server that is
    /// in no set. The first one is the primary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberSetting>,
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

/// A member of a replica set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberSetting {
    /// It has all data.
    Data,
    /// It votes, and has no data.
    Arbiter,
}

impl ServerSettings {
    /// Checks the set of a scenario.
    /// # Errors
    /// A set that cannot be started, or that the scenario cannot use.
    pub(crate) fn check(scenario: &Scenario) -> Result<(), String> {
        let Self { transport, members } = &scenario.server;
        if members.is_empty() {
            return Ok(());
        }
        let refused = |why: &str| Err(format!("server.members: {why}"));
        if members[0] != MemberSetting::Data {
            return refused("the first member takes the writes, so it is 'data'");
        }
        if members.len() > MEMBERS_MAX {
            return refused(&format!("there are {}, and a set has {MEMBERS_MAX} with votes at most", members.len()));
        }
        if *transport == Some(TransportSetting::Unix) {
            return refused("members reach each other by TCP, so server.transport cannot be 'unix'");
        }
        if scenario.phase.is_empty() {
            return refused("this scenario has no phase, so it starts no server");
        }
        let is_cold = |phase: &&Phase| phase.cache == Cache::Cold;
        if let Some(phase) = scenario.phase.iter().find(is_cold) {
            let why = "with cache = 'cold' starts the server again, which is not supported yet for a set";
            return refused(&format!("phase '{}' {why}", phase.name));
        }
        Ok(())
    }
}
