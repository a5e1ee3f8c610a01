//! This server as the only member of a replica set (`serve --replSet`).

mod asked;
mod cluster_time;
mod configuration;

pub(crate) use asked::Force;
pub(crate) use cluster_time::ClusterTime;

use crate::acknowledgement::Acknowledgement;
use crate::connection::ClientConnection;
use crate::dispatch::{Halt, RunOn};
use crate::service::Service;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ObjectId, Timestamp, ValueRef, number};
use bunko_catalog::stored_document::Stamps;
use bunko_catalog::{Namespace, from_storage};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::Peer;
use bunko_request::Request;
use bunko_request::deployment::Deployment;
use bunko_settings::default_concerns;
use bunko_settings::find_stored;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;

/// The collection of the set's configuration, as in MongoDB.
const COLLECTION: &str = "system.replset";
/// There is only the first election: the set has no other member to elect.
pub(crate) const TERM: i64 = 1;

/// A time in the form that members of a set use among each other.
pub(crate) fn optime(time: Timestamp) -> DocumentBuf {
    DocumentBuf::new().with("ts", time).with("t", TERM)
}

/// The address at which clients reach the member, as `host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberHost {
    /// The host in the setting `replication.host`.
    Given(String),
    /// The server's first address. A host that a client configured for the set takes precedence, if its port is this
    /// one.
    Default(String),
}

/// A set of one member.
pub struct ReplicaSet {
    name: String,
    member: RwLock<Arc<Member>>,
    /// Held while a client changes the configuration. The value says whether `replSetInitiate` is still allowed: the
    /// server began the set at its start, and no client has initiated it.
    may_be_initiated: Mutex<bool>,
    pub(crate) cluster_time: ClusterTime,
}

/// The member, as configured.
pub(crate) struct Member {
    /// The address at which clients reach it, as `host:port`.
    pub host: String,
    /// The configuration that `replSetGetConfig` shows.
    pub configuration: DocumentBuf,
}

impl Member {
    fn of(configuration: DocumentBuf) -> Arc<Self> {
        let host = configuration::host(configuration.as_ref()).unwrap_or_default().to_owned();
        Arc::new(Self { host, configuration })
    }

    /// The version of the configuration, which starts at 1.
    pub fn version(&self) -> i64 {
        version(self.configuration.as_ref())
    }
}

impl ReplicaSet {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn member(&self) -> Arc<Member> {
        Arc::clone(&self.member.read())
    }

    /// Grows with each election. Source: MongoDB manual, `hello`.
    pub(crate) fn election_id() -> ObjectId {
        ObjectId::from_parts(0x7fff_ffff, [0; 5], TERM as u32)
    }
}

fn version(configuration: DocumentRef<'_>) -> i64 {
    configuration.get("version").and_then(number::as_i64_exact).unwrap_or(1)
}

impl Service {
    /// Makes the server the only member of the set `name`. The first call begins the set; a later one may change the
    /// member's host.
    /// # Errors
    /// `InvalidReplicaSetConfig` if the data belong to another set, or to a set of several members; errors of writing
    /// the configuration.
    pub fn join_replica_set(&mut self, name: &str, host: &MemberHost) -> Result<()> {
        let kept = self.stored_configuration()?;
        let configuration = match &kept {
            None => configuration::first(name, host, self.world.object_id()),
            Some(kept) => configuration::checked(kept.as_ref(), name, host)?,
        };
        if kept.as_ref() != Some(&configuration) {
            self.keep_configuration(configuration.as_ref())?;
        }
        let concerns = find_stored(
            &self.catalog,
            default_concerns::DATABASE,
            default_concerns::COLLECTION,
            default_concerns::NAME,
        )?;
        if let Some(kept) = concerns {
            self.default_concerns.apply(default_concerns::Set::of_kept(kept.as_ref()));
        }
        self.replica_set = Some(ReplicaSet {
            name: name.to_owned(),
            member: RwLock::new(Member::of(configuration)),
            may_be_initiated: Mutex::new(kept.is_none()),
            cluster_time: ClusterTime::default(),
        });
        Ok(())
    }

    /// Initiates the set for a client, once. The server has begun the set at its start, so only the configuration may
    /// change.
    /// # Errors
    /// `AlreadyInitialized`; errors of the configuration.
    pub(crate) fn initiate(&self, set: &ReplicaSet, asked: DocumentRef<'_>) -> Result<()> {
        let mut may_be_initiated = set.may_be_initiated.lock();
        if !*may_be_initiated {
            return Err(Failure::new(ErrorCode::ALREADY_INITIALIZED, "already initialized"));
        }
        if !asked.is_empty() {
            let current = set.member();
            let configuration = asked::initial(asked, set.name(), &current)?;
            self.check_is_own(&configuration, &current, ErrorCode::INVALID_REPLICA_SET_CONFIG)?;
            self.keep_configuration(configuration.as_ref())?;
            *set.member.write() = Member::of(configuration);
        }
        *may_be_initiated = false;
        Ok(())
    }

    /// Changes the configuration of the set.
    /// # Errors
    /// `NewReplicaSetConfigurationIncompatible`; errors of the configuration.
    pub(crate) fn reconfigure(&self, set: &ReplicaSet, asked: DocumentRef<'_>, force: Force) -> Result<()> {
        let mut may_be_initiated = set.may_be_initiated.lock();
        let current = set.member();
        let configuration = asked::next(asked, set.name(), &current, force)?;
        self.check_is_own(&configuration, &current, ErrorCode::NODE_NOT_FOUND)?;
        self.keep_configuration(configuration.as_ref())?;
        *set.member.write() = Member::of(configuration);
        *may_be_initiated = false;
        Ok(())
    }

    /// Refuses a host that belongs to another server.
    fn check_is_own(&self, configuration: &DocumentBuf, current: &Member, code: ErrorCode) -> Result<()> {
        let host = configuration::host(configuration.as_ref()).unwrap_or_default();
        let (name, port) = asked::name_and_port(host);
        let is_own_port = asked::name_and_port(&current.host).1 == port;
        if host == current.host || (is_own_port && (self.process.is_this_machine)(name)) {
            return Ok(());
        }
        let message = format!("the member's host {host} does not map to this node, which is {}", current.host);
        Err(Failure::new(code, message))
    }

    fn keep_configuration(&self, configuration: DocumentRef<'_>) -> Result<()> {
        let id = configuration.get("_id").unwrap_or(ValueRef::Null);
        let statement = DocumentBuf::new()
            .with("q", &DocumentBuf::new().with("_id", id))
            .with("u", configuration)
            .with("upsert", true);
        let updates: ArrayBuf = [&statement].into_iter().collect();
        let body = DocumentBuf::new().with("update", COLLECTION).with("updates", &updates);
        self.run_own(Namespace::OPLOG_DATABASE, body.as_ref()).map(drop)
    }

    pub(crate) fn deployment(&self) -> Deployment {
        if self.replica_set.is_some() { Deployment::SetMember } else { Deployment::Standalone }
    }

    /// The time of the newest write that readers see.
    pub(crate) fn operation_time(&self) -> Timestamp {
        self.catalog.store().newest_time()
    }

    /// Runs a command of the server's own before it has clients. Returns the reply.
    fn run_own(&self, database: &str, body: DocumentRef<'_>) -> Result<DocumentBuf> {
        let mut connection = ClientConnection::new(0, Peer::Unix);
        let mut reply = Vec::new();
        let request = Request::new(database, body, None);
        let answer = match self.run(&mut connection, request, RunOn::OwnThread, &mut reply) {
            Ok(answer) => answer,
            Err(Halt::Failed(failure)) => return Err(failure),
            Err(Halt::TooLong | Halt::Awaits(_) | Halt::ClosesConnection) => {
                unreachable!("it may be long, is no getMore, and comes before all failpoints")
            }
        };
        if let Acknowledgement::Written(lsn) | Acknowledgement::Durable(lsn) = answer.acknowledgement {
            self.catalog.store().write(lsn).map_err(from_storage)?;
        }
        let reply = DocumentRef::trusted(&reply);
        let error = reply.get("writeErrors").and_then(ValueRef::as_array).and_then(|errors| errors.iter().next());
        let message = error.and_then(ValueRef::as_document).unwrap_or(reply).get("errmsg").and_then(ValueRef::as_str);
        match message {
            None => Ok(reply.to_owned()),
            Some(message) => Err(Failure::new(ErrorCode::INTERNAL_ERROR, message.to_owned())),
        }
    }

    /// The stored configuration, of any set.
    fn stored_configuration(&self) -> Result<Option<DocumentBuf>> {
        let body = DocumentBuf::new().with("find", COLLECTION).with("limit", 1).with("singleBatch", true);
        let reply = self.run_own(Namespace::OPLOG_DATABASE, body.as_ref())?;
        let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document);
        let batch = cursor.and_then(|cursor| cursor.get("firstBatch")).and_then(ValueRef::as_array);
        let first = batch.and_then(|batch| batch.iter().next()).and_then(ValueRef::as_document);
        Ok(first.map(DocumentRef::to_owned))
    }
}
