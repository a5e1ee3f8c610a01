//! This server as the only member of a replica set, which `serve --replSet` makes of it.

mod cluster_time;
mod configuration;
pub(crate) mod default_concerns;

pub(crate) use cluster_time::{ClusterTime, parse as parse_cluster_time};
pub(crate) use default_concerns::DefaultConcerns;

use crate::connection::{ClientConnection, Peer};
use crate::dispatch::{Halt, Request, RunOn};
use crate::service::Service;
use crate::stored_settings;
use crate::write_concern::Acknowledgement;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ObjectId, Timestamp, ValueRef, number};
use bunko_catalog::stored_document::Stamps;
use bunko_catalog::{Namespace, from_storage};
use bunko_errors::{ErrorCode, Failure, Result};

/// Where the set's configuration is kept, as MongoDB keeps it.
const COLLECTION: &str = "system.replset";
/// There is one election, at the beginning: nobody else could be elected.
pub(crate) const TERM: i64 = 1;

/// A time as members of a set tell it to each other.
pub(crate) fn optime(time: Timestamp) -> DocumentBuf {
    DocumentBuf::new().with("ts", time).with("t", TERM)
}

/// What a server is to its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deployment {
    /// A server without replicas.
    Standalone,
    /// A member of a replica set.
    SetMember,
}

/// A set of one member.
pub struct ReplicaSet {
    name: String,
    host: String,
    configuration: DocumentBuf,
    pub(crate) cluster_time: ClusterTime,
}

impl ReplicaSet {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// `host:port` of the member, as clients reach it.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// As `replSetGetConfig` shows it.
    pub(crate) fn configuration(&self) -> DocumentRef<'_> {
        self.configuration.as_ref()
    }

    /// How often the configuration was changed, and once more.
    pub(crate) fn version(&self) -> i64 {
        version(self.configuration())
    }

    /// Ascends with elections. Source: MongoDB manual, `hello`.
    pub(crate) fn election_id() -> ObjectId {
        ObjectId::from_parts(0x7fff_ffff, [0; 5], TERM as u32)
    }
}

fn version(configuration: DocumentRef<'_>) -> i64 {
    configuration.get("version").and_then(number::as_i64_exact).unwrap_or(1)
}

impl Service {
    /// Makes the server the only member of the set `name`, reached at `host`. The first time begins the set; later the
    /// member may have moved.
    /// # Errors
    /// `InvalidReplicaSetConfig` where the data belong to another set, or to one of several members; those of writing
    /// the configuration.
    pub fn join_replica_set(&mut self, name: &str, host: &str) -> Result<()> {
        let database = Namespace::OPLOG_DATABASE;
        let kept = self.stored_configuration()?;
        let configuration = match &kept {
            None => configuration::first(name, host, self.world.object_id()),
            Some(kept) => configuration::checked(kept.as_ref(), name, host)?,
        };
        if kept.as_ref() != Some(&configuration) {
            let statement = DocumentBuf::new()
                .with("q", &DocumentBuf::new().with("_id", name))
                .with("u", &configuration)
                .with("upsert", true);
            let updates: ArrayBuf = [&statement].into_iter().collect();
            let body = DocumentBuf::new().with("update", COLLECTION).with("updates", &updates);
            self.run_own(database, body.as_ref())?;
        }
        let concerns = stored_settings::find(
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
            host: host.to_owned(),
            configuration,
            cluster_time: ClusterTime::default(),
        });
        Ok(())
    }

    pub(crate) fn deployment(&self) -> Deployment {
        if self.replica_set.is_some() { Deployment::SetMember } else { Deployment::Standalone }
    }

    /// When the newest write that readers see happened.
    pub(crate) fn operation_time(&self) -> Timestamp {
        self.catalog.store().newest_time()
    }

    /// Runs a command of the server's own before it has clients; its reply.
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

    /// The configuration that was kept, of whatever set.
    fn stored_configuration(&self) -> Result<Option<DocumentBuf>> {
        let body = DocumentBuf::new().with("find", COLLECTION).with("limit", 1).with("singleBatch", true);
        let reply = self.run_own(Namespace::OPLOG_DATABASE, body.as_ref())?;
        let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document);
        let batch = cursor.and_then(|cursor| cursor.get("firstBatch")).and_then(ValueRef::as_array);
        let first = batch.and_then(|batch| batch.iter().next()).and_then(ValueRef::as_document);
        Ok(first.map(DocumentRef::to_owned))
    }
}
