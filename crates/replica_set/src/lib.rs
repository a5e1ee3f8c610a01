//! This server as the only member of a replica set (`serve --replSet`): the set's configuration, and the cluster time.
//!
//! The crate checks and completes configurations, and stores none: its caller reads the stored one and keeps each new
//! one.
#![forbid(unsafe_code)]

mod asked;
mod cluster_time;
mod configuration;

pub use asked::Force;
pub use cluster_time::ClusterTime;
pub use configuration::{Member, MemberHost, TERM};

use bunko_bson::{DocumentBuf, DocumentRef, ObjectId, Timestamp};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure};
use configuration::name_and_port;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;

/// The database of the set's configuration, as in MongoDB.
pub const DATABASE: &str = Namespace::OPLOG_DATABASE;
/// The collection of the set's configuration.
pub const COLLECTION: &str = "system.replset";

/// A time in the form that members of a set use among each other.
pub fn optime(time: Timestamp) -> DocumentBuf {
    DocumentBuf::new().with("ts", time).with("t", TERM)
}

/// A set of one member.
pub struct ReplicaSet {
    name: String,
    member: RwLock<Arc<Member>>,
    /// Held while a client changes the configuration. The value says whether `replSetInitiate` is still allowed: the
    /// server began the set at its start, and no client has initiated it.
    may_be_initiated: Mutex<bool>,
    /// The times that clients and this server know.
    pub cluster_time: ClusterTime,
}

impl ReplicaSet {
    /// The set `name` with this server as its only member. `kept` is the stored configuration, of any set; without one
    /// the set begins now, with the id `new_id`. If the member's configuration is not the stored one, the caller must
    /// store it.
    /// # Errors
    /// `InvalidReplicaSetConfig` if the data belong to another set, or to a set of several members.
    pub fn new(
        catalog: Arc<Catalog>,
        name: &str,
        host: &MemberHost,
        kept: Option<DocumentRef<'_>>,
        new_id: ObjectId,
    ) -> Result<Self, Failure> {
        let configuration = match kept {
            None => configuration::first(name, host, new_id),
            Some(kept) => configuration::checked(kept, name, host)?,
        };
        Ok(Self {
            name: name.to_owned(),
            member: RwLock::new(Member::of(configuration)),
            may_be_initiated: Mutex::new(kept.is_none()),
            cluster_time: ClusterTime::new(catalog),
        })
    }

    /// The set's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The member, as configured now.
    pub fn member(&self) -> Arc<Member> {
        Arc::clone(&self.member.read())
    }

    /// Grows with each election. Source: MongoDB manual, `hello`.
    pub fn election_id() -> ObjectId {
        ObjectId::from_parts(0x7fff_ffff, [0; 5], TERM as u32)
    }

    /// Initiates the set for a client, once. The server has begun the set at its start, so only the configuration may
    /// change. `is_this_machine` says whether a host name is this machine's; `keep` stores the new configuration.
    /// # Errors
    /// `AlreadyInitialized`; errors of the configuration, and of keeping it.
    pub fn initiate<E: From<Failure>>(
        &self,
        asked: DocumentRef<'_>,
        is_this_machine: &dyn Fn(&str) -> bool,
        keep: impl FnOnce(&DocumentBuf) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut may_be_initiated = self.may_be_initiated.lock();
        if !*may_be_initiated {
            return Err(Failure::new(ErrorCode::ALREADY_INITIALIZED, "already initialized").into());
        }
        if !asked.is_empty() {
            let configuration = asked::initial(asked, &self.name, &self.member())?;
            self.change(configuration, ErrorCode::INVALID_REPLICA_SET_CONFIG, is_this_machine, keep)?;
        }
        *may_be_initiated = false;
        Ok(())
    }

    /// Changes the configuration of the set, with the same functions as [`Self::initiate`].
    /// # Errors
    /// `NewReplicaSetConfigurationIncompatible`; errors of the configuration, and of keeping it.
    pub fn reconfigure<E: From<Failure>>(
        &self,
        asked: DocumentRef<'_>,
        force: Force,
        is_this_machine: &dyn Fn(&str) -> bool,
        keep: impl FnOnce(&DocumentBuf) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut may_be_initiated = self.may_be_initiated.lock();
        let configuration = asked::next(asked, &self.name, &self.member(), force)?;
        self.change(configuration, ErrorCode::NODE_NOT_FOUND, is_this_machine, keep)?;
        *may_be_initiated = false;
        Ok(())
    }

    /// Keeps a configuration, unless its host belongs to another server. That error has the code `foreign`.
    fn change<E: From<Failure>>(
        &self,
        configuration: DocumentBuf,
        foreign: ErrorCode,
        is_this_machine: &dyn Fn(&str) -> bool,
        keep: impl FnOnce(&DocumentBuf) -> Result<(), E>,
    ) -> Result<(), E> {
        let (current, changed) = (self.member(), Member::of(configuration));
        let (name, port) = name_and_port(&changed.host);
        let is_own_port = name_and_port(&current.host).1 == port;
        if changed.host != current.host && !(is_own_port && is_this_machine(name)) {
            let (host, current) = (&changed.host, &current.host);
            let message = format!("the member's host {host} does not map to this node, which is {current}");
            return Err(Failure::new(foreign, message).into());
        }
        keep(&changed.configuration)?;
        *self.member.write() = changed;
        Ok(())
    }
}
