//! The configuration document of a set of one member.
//! Source: MongoDB manual, "Replica Set Configuration".

use crate::listed::Listed;
use crate::tag_pattern::{self, TagPattern};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ObjectId, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

/// The term of a configuration that was made before any election.
const NO_TERM: i64 = 0;
/// Maximum version of a configuration: members send each other 32 bits.
pub(crate) const VERSION_MAX: i64 = i32::MAX as i64;
/// The port of a host without one.
const PORT: &str = "27017";

/// The address at which clients reach the member, as `host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberHost {
    /// The host in the setting `replication.host`.
    Given(String),
    /// The server's first address. A host that a client configured for the set takes precedence, if its port is this
    /// one.
    Default(String),
}

/// The member, as configured.
pub struct Member {
    /// The address at which clients reach it, as `host:port`.
    pub host: String,
    /// The configuration that `replSetGetConfig` shows.
    pub configuration: DocumentBuf,
    /// All members of the set.
    pub listed: Vec<Listed>,
    /// The position of this member in `listed`.
    pub position: usize,
    /// The modes of write concerns that the configuration defines.
    pub(crate) modes: Vec<(String, TagPattern)>,
}

impl Member {
    /// The only member of a set.
    pub(crate) fn of(configuration: DocumentBuf) -> Arc<Self> {
        let host = host(configuration.as_ref()).unwrap_or_default().to_owned();
        let listed = Listed::all(configuration.as_ref()).unwrap_or_default();
        let modes = tag_pattern::defined(configuration.as_ref());
        Arc::new(Self { host, configuration, listed, position: 0, modes })
    }

    /// The member with this `_id`; one that the configuration does not list has no host.
    pub(crate) fn with_id(configuration: DocumentBuf, id: u32) -> Arc<Self> {
        let listed = Listed::all(configuration.as_ref()).unwrap_or_default();
        let position = listed.iter().position(|listed| listed.id == id).unwrap_or(listed.len());
        let host = listed.get(position).map(|own| own.host.clone()).unwrap_or_default();
        let modes = tag_pattern::defined(configuration.as_ref());
        Arc::new(Self { host, configuration, listed, position, modes })
    }

    /// This member's entry in the configuration.
    pub fn own(&self) -> Option<&Listed> {
        self.listed.get(self.position)
    }

    /// The version of the configuration, which starts at 1.
    pub fn version(&self) -> i64 {
        version(self.configuration.as_ref())
    }

    /// The term of the primary that made the configuration its own.
    pub fn term(&self) -> i64 {
        self.configuration.as_ref().get("term").and_then(number::as_i64_exact).unwrap_or(NO_TERM)
    }
}

/// A configuration with another term and version.
pub fn with_stamp(configuration: DocumentRef<'_>, term: u64, version: u64) -> DocumentBuf {
    let version = ValueRef::Int32((version as i64).min(VERSION_MAX) as i32);
    replaced(configuration, &[("version", version), ("term", shown_term(term as i64))])
}

/// The configuration as the primary of a term takes it over.
pub(crate) fn of_term(configuration: DocumentRef<'_>, term: u64) -> DocumentBuf {
    replaced(configuration, &[("term", shown_term(term as i64))])
}

/// MongoDB shows terms as 32-bit integers where they fit.
pub(crate) fn shown_term(term: i64) -> ValueRef<'static> {
    i32::try_from(term).map_or(ValueRef::Int64(term), ValueRef::Int32)
}

fn version(configuration: DocumentRef<'_>) -> i64 {
    configuration.get("version").and_then(number::as_i64_exact).unwrap_or(1)
}

/// Splits `host:port`; a host without a port has MongoDB's. An IPv6 address loses its brackets.
pub fn name_and_port(host: &str) -> (&str, &str) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (name.trim_start_matches('[').trim_end_matches(']'), port)
        }
        _ => (host, PORT),
    }
}

/// `host:port` of a host that may have no port.
pub(crate) fn with_port(host: &str) -> String {
    let (name, port) = name_and_port(host);
    if host.ends_with(&format!(":{port}")) { host.to_owned() } else { format!("{name}:{port}") }
}

/// The configuration of a new set.
pub(crate) fn first(name: &str, host: &MemberHost, id: ObjectId) -> DocumentBuf {
    let (MemberHost::Given(host) | MemberHost::Default(host)) = host;
    make(name, host, 1, id)
}

/// The host of the first member.
fn host(configuration: DocumentRef<'_>) -> Option<&str> {
    let members = configuration.get("members").and_then(ValueRef::as_array)?;
    members.iter().next()?.as_document()?.get("host")?.as_str()
}

/// The id that a set keeps for its whole life, and that tells it from another set of its name.
pub fn set_id(configuration: DocumentRef<'_>) -> ObjectId {
    let settings = configuration.get("settings").and_then(ValueRef::as_document);
    match settings.and_then(|settings| settings.get("replicaSetId")) {
        Some(ValueRef::ObjectId(id)) => id,
        _ => ObjectId::from_parts(0, [0; 5], 0),
    }
}

/// A member with the defaults of all other fields.
pub(crate) fn member(id: i32, host: &str) -> DocumentBuf {
    DocumentBuf::new()
        .with("_id", id)
        .with("host", host)
        .with("arbiterOnly", false)
        .with("buildIndexes", true)
        .with("hidden", false)
        .with("priority", 1)
        .with("tags", &DocumentBuf::new())
        .with("secondaryDelaySecs", 0_i64)
        .with("votes", 1)
}

pub(crate) fn make(name: &str, host: &str, version: i64, id: ObjectId) -> DocumentBuf {
    let members: ArrayBuf = [&member(0, host)].into_iter().collect();
    let settings = DocumentBuf::new()
        .with("chainingAllowed", true)
        .with("heartbeatIntervalMillis", 2000)
        .with("heartbeatTimeoutSecs", 10)
        .with("electionTimeoutMillis", 10_000)
        .with("catchUpTimeoutMillis", -1)
        .with("catchUpTakeoverDelayMillis", 30_000)
        .with("getLastErrorModes", &DocumentBuf::new())
        .with("getLastErrorDefaults", &DocumentBuf::new().with("w", 1).with("wtimeout", 0))
        .with("replicaSetId", id);
    DocumentBuf::new()
        .with("_id", name)
        .with("version", version as i32)
        .with("term", NO_TERM as i32)
        .with("members", &members)
        .with("protocolVersion", 1_i64)
        .with("writeConcernMajorityJournalDefault", true)
        .with("settings", &settings)
}

/// A document with some values replaced. Fields that it lacks are appended.
pub(crate) fn replaced(document: DocumentRef<'_>, fields: &[(&str, ValueRef<'_>)]) -> DocumentBuf {
    let mut made = DocumentBuf::new();
    for element in document {
        let value = fields.iter().find(|(name, _)| *name == element.name).map_or(element.value, |(_, value)| *value);
        made.append(element.name, value);
    }
    for (name, value) in fields.iter().filter(|(name, _)| document.get(name).is_none()) {
        made.append(name, *value);
    }
    made
}

/// A stored configuration, with the member's present host.
/// # Errors
/// `InvalidReplicaSetConfig` for the configuration of another set, or of several members.
pub(crate) fn checked(kept: DocumentRef<'_>, name: &str, host: &MemberHost) -> Result<DocumentBuf> {
    let own = kept.get("_id").and_then(ValueRef::as_str).unwrap_or_default();
    if own != name {
        let message = format!("the data belong to the replica set '{own}', not to '{name}'");
        return Err(Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message));
    }
    let members = kept.get("members").and_then(ValueRef::as_array).into_iter().flat_map(ArrayRef::iter).count();
    if members > 1 {
        let message = format!(
            "the replica set '{own}' has {members} members, but the file with this server's own id in the set is missing"
        );
        return Err(Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message));
    }
    let had = self::host(kept).unwrap_or_default();
    let host = match host {
        MemberHost::Default(host) if name_and_port(host).1 == name_and_port(had).1 => had,
        MemberHost::Given(host) | MemberHost::Default(host) => host,
    };
    if had == host {
        return Ok(kept.to_owned());
    }
    Ok(make(name, host, (version(kept) + 1).min(VERSION_MAX), set_id(kept)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_moved_is_a_new_version_and_another_set_is_refused() {
        let id = ObjectId::from_parts(7, [1; 5], 9);
        let given = |host: &str| MemberHost::Given(host.to_owned());
        let default = |host: &str| MemberHost::Default(host.to_owned());
        let began = first("rs0", &given("a:1"), id);
        for same in [given("a:1"), default("a:1"), default("b:1")] {
            assert_eq!(checked(began.as_ref(), "rs0", &same).expect("it stays"), began);
        }
        for (moved, host) in [(given("b:1"), "b:1"), (default("a:2"), "a:2")] {
            assert_eq!(checked(began.as_ref(), "rs0", &moved).expect("moved"), make("rs0", host, 2, id));
        }
        let refused = checked(began.as_ref(), "rs1", &given("a:1")).expect_err("another");
        assert_eq!(refused.message(), "the data belong to the replica set 'rs0', not to 'rs1'");
    }
}
