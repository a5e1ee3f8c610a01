//! The hosts in a set's configuration: which of them is this server, and whether the others may join.

use crate::replication::implied_by;
use crate::service::Service;
use bunko_bson::{DocumentBuf, DocumentRef, ObjectId, ValueRef};
use bunko_client::{ClientError, Connection};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_members::{Members, Peer};
use bunko_replica_set::{Force, Listed, ReplicaSet, Tagged, check_tagged, name_and_port};
use std::net::ToSocketAddrs;

impl Service {
    /// Whether `host:port` is this server. A name that is not an address of this machine may still lead here, by a
    /// forwarded port for example, so the server at its end is asked.
    pub(crate) fn is_this_server(&self, host: &str, own_port: &str) -> bool {
        let (name, port) = name_and_port(host);
        if port == own_port && (self.process.is_this_machine)(name) {
            return true;
        }
        (self.process.dial)(host).is_ok_and(|connection| process_of(&connection) == Some(self.process_id()))
    }

    /// The id of this process, as other members see it.
    fn process_id(&self) -> ObjectId {
        ObjectId::from_parts(0, self.world.process, 0)
    }

    /// Refuses a configuration whose members could not log in to each other.
    /// # Errors
    /// `InvalidReplicaSetConfig`.
    pub(crate) fn check_logins(&self, configuration: &DocumentBuf) -> Result<()> {
        let invalid = |message: String| Err(Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message));
        if self.authority.access.membership().is_some() {
            return Ok(());
        }
        if self.authority.access.is_enforced() {
            return invalid(format!("the members of a set with authorization must log in to each other: {START}"));
        }
        let listed = Listed::all(configuration.as_ref()).unwrap_or_default();
        match listed.iter().find(|listed| !is_loopback(&listed.host)) {
            Some(other) => invalid(format!(
                "the member {} has an address that other machines reach, and members on other machines must log in to \
                 each other: {START}",
                other.host
            )),
            None => Ok(()),
        }
    }

    /// Asks the other servers of a new set whether they may join it.
    /// # Errors
    /// `NodeNotFound` if one of them cannot; `InvalidReplicaSetConfig` if two hosts are one server.
    pub(crate) fn ask_all_to_join(&self, set: &str, own: u32, others: &[Listed]) -> Result<()> {
        let mut met: Vec<(ObjectId, &str)> = Vec::new();
        for other in others {
            let Some(process) = self.ask_to_join(set, own, other)? else { continue };
            if let Some((_, same)) = met.iter().find(|(id, _)| *id == process) {
                let message = format!("the hosts {same} and {} of the configuration are one server", other.host);
                return Err(Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message));
            }
            met.push((process, &other.host));
        }
        Ok(())
    }

    /// Asks another server whether it may join the set. Returns the id of its process; `None` if its handshake has
    /// none.
    fn ask_to_join(&self, set: &str, own: u32, other: &Listed) -> Result<Option<ObjectId>> {
        let body = question(set, own, other);
        let failed = |reason: String| {
            let message = format!(
                "replSetInitiate quorum check failed because not all proposed set members responded affirmatively: {} \
                 failed with {reason}",
                other.host
            );
            Failure::new(ErrorCode::NODE_NOT_FOUND, message)
        };
        let mut connection = (self.process.dial)(&other.host).map_err(|error| failed(error.to_string()))?;
        match connection.run_command("admin", body.as_ref()) {
            Err(ClientError::Command(error)) if error.code == ErrorCode::NOT_YET_INITIALIZED.0 => {
                Ok(process_of(&connection))
            }
            Ok(_) => Err(failed("it is a member of a set already".to_owned())),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

impl Service {
    /// Checks a change of the configuration of several members beside what the other servers say.
    /// # Errors
    /// `InvalidReplicaSetConfig` for members that could not log in; unless it is forced, as
    /// [`Service::check_default_concern`] and [`Service::check_quorum`].
    pub(crate) fn check_change(
        &self,
        members: &Members,
        set: &ReplicaSet,
        proposed: &DocumentBuf,
        force: Force,
    ) -> Result<()> {
        self.check_logins(proposed)?;
        if force == Force::Yes {
            return Ok(());
        }
        self.check_default_concern(set, proposed)?;
        self.check_quorum(set, &members.peers(), proposed)
    }

    /// Refuses a configuration with which writes would wait for other members than before, unless an administrator has
    /// said for which ones they wait.
    /// # Errors
    /// `NewReplicaSetConfigurationIncompatible`.
    pub(crate) fn check_default_concern(&self, set: &ReplicaSet, proposed: &DocumentBuf) -> Result<()> {
        self.check_default_mode(proposed)?;
        let next = Listed::all(proposed.as_ref()).unwrap_or_default();
        let is_set = self.default_concerns.set().is_some_and(|set| set.write.is_some());
        if is_set || implied_by(&next) == implied_by(&set.member().listed) {
            return Ok(());
        }
        let message = "Reconfig attempted to install a config that would change the implicit default write concern. Use the \
                       setDefaultRWConcern command to set a cluster-wide write concern and try the reconfig again.";
        Err(Failure::new(ErrorCode::NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE, message))
    }

    /// Refuses a configuration whose members could not meet the default write concern that an administrator has set.
    /// # Errors
    /// `NewReplicaSetConfigurationIncompatible`.
    pub(crate) fn check_default_mode(&self, proposed: &DocumentBuf) -> Result<()> {
        let default = self.default_concerns.set().and_then(|set| set.write);
        let tagged = default.as_ref().and_then(|write| write.as_ref().get("w")).and_then(Tagged::of);
        let Some(Err(unmet)) = tagged.map(|tagged| check_tagged(proposed, &tagged)) else { return Ok(()) };
        let message = format!(
            "May not remove custom write concern definition from config while it is in use as the default write concern: {}",
            unmet.message()
        );
        Err(Failure::new(ErrorCode::NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE, message))
    }

    /// Checks that a majority of a configuration's voters can be reached. `peers` are the members that this one knows
    /// already; the others are asked whether they may join.
    /// # Errors
    /// `NodeNotFound` without a majority; `NewReplicaSetConfigurationIncompatible` if a server has data that are not
    /// the set's.
    pub(crate) fn check_quorum(&self, set: &ReplicaSet, peers: &[Peer], proposed: &DocumentBuf) -> Result<()> {
        let (member, next) = (set.member(), Listed::all(proposed.as_ref()).unwrap_or_default());
        let own = member.own().map_or(u32::MAX, |own| own.id);
        let (mut answered, mut silent, mut voters) = (vec![member.host.clone()], Vec::new(), 1);
        for other in next.iter().filter(|other| other.id != own) {
            let is_known = member.listed.iter().any(|listed| listed.id == other.id);
            let outcome = match peers.iter().find(|peer| peer.id.0 == other.id && is_known) {
                Some(Peer { failure: Some(failure), .. }) => Err(failure.clone()),
                Some(_) => Ok(()),
                None => self.ask_to_be_added(set, own, other)?,
            };
            match outcome {
                Ok(()) => {
                    voters += usize::from(other.is_to_vote());
                    answered.push(other.host.clone());
                }
                Err(reason) => silent.push(format!("{} failed with {reason}", other.host)),
            }
        }
        let needed = next.iter().filter(|listed| listed.is_to_vote()).count() / 2 + 1;
        if voters >= needed {
            return Ok(());
        }
        let message = format!(
            "Quorum check failed because not enough voting nodes responded; required {needed} but only the following \
             {voters} voting nodes responded: {}; the following nodes did not respond affirmatively: {}",
            answered.join(", "),
            silent.join(", ")
        );
        Err(Failure::new(ErrorCode::NODE_NOT_FOUND, message))
    }

    /// Asks a server whether it may be added to the set: an outer error forbids it, an inner one says why it does not
    /// answer.
    fn ask_to_be_added(&self, set: &ReplicaSet, own: u32, other: &Listed) -> Result<Result<(), String>> {
        let body = question(set.name(), own, other).with("setId", set.id());
        let mut connection = match (self.process.dial)(&other.host) {
            Ok(connection) => connection,
            Err(error) => return Ok(Err(error.to_string())),
        };
        if process_of(&connection) == Some(self.process_id()) {
            let message = format!("the host {} of the new configuration is this server, too", other.host);
            return Err(Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message));
        }
        let veto = |reason: &str| {
            let message = format!("the server {} cannot be added: {reason}", other.host);
            Failure::new(ErrorCode::NEW_REPLICA_SET_CONFIGURATION_INCOMPATIBLE, message)
        };
        match connection.run_command("admin", body.as_ref()) {
            Err(ClientError::Command(error)) if error.code == ErrorCode::NOT_YET_INITIALIZED.0 => Ok(Ok(())),
            Err(ClientError::Command(error)) if error.code == ErrorCode::INVALID_REPLICA_SET_CONFIG.0 => {
                Err(veto(&error.to_string()))
            }
            // A former member, whether or not it has heard that it was removed, may come back.
            Ok(reply) if is_of_set(reply.as_ref(), set.id()) => Ok(Ok(())),
            Ok(_) => Err(veto("it is a member of another set of this name")),
            Err(error) => Ok(Err(error.to_string())),
        }
    }
}

fn is_of_set(reply: DocumentRef<'_>, id: ObjectId) -> bool {
    let status = reply.get("status").and_then(ValueRef::as_document);
    matches!(status.and_then(|status| status.get("setId")), Some(ValueRef::ObjectId(found)) if found == id)
}

/// The message to another server that only asks for its state.
fn question(set: &str, own: u32, other: &Listed) -> DocumentBuf {
    DocumentBuf::new()
        .with(bunko_members::COMMAND, 1)
        .with("set", set)
        .with("from", i64::from(own))
        .with("to", i64::from(other.id))
        .with(bunko_members::TO_HOST, other.host.as_str())
}

/// How to start members that log in to each other.
const START: &str = "start all of them with --keyFile FILE, the same file, or with --clusterAuthMode x509";

/// The id of the process at the other end, which each server tells in its answer to the handshake.
fn process_of(connection: &Connection) -> Option<ObjectId> {
    let version =
        connection.hello().get("topologyVersion").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    match version.get("processId") {
        Some(ValueRef::ObjectId(id)) => Some(id),
        _ => None,
    }
}

/// Whether all addresses of a host are loopback addresses, which other machines cannot reach. False for a name that
/// cannot be resolved: the connection to it fails, and says why.
fn is_loopback(host: &str) -> bool {
    let (name, _) = name_and_port(host);
    (name, 0)
        .to_socket_addrs()
        .is_ok_and(|mut addresses| addresses.all(|address| address.ip().to_canonical().is_loopback()))
}
