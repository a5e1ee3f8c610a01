//! Commands that the server runs for itself before it has clients.

use crate::acknowledgement::Acknowledgement;
use crate::commands::create_user;
use crate::connection::ClientConnection;
use crate::service::Service;
use bunko_authority::DATABASE;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::from_storage;
use bunko_catalog::stored_document::Stamps;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_members::Kept;
use bunko_operation::RunOn;
use bunko_replica_set::{COLLECTION, MemberHost, ReplicaSet};
use bunko_request::Request;
use bunko_session::Halt;
use bunko_settings::{UserWriteBlock, default_concerns, find_stored};
use std::sync::Arc;

impl Service {
    /// Creates a user in `admin` with the role `root`. Call it before privileges are checked.
    /// # Errors
    /// As `createUser`.
    pub fn make_root_user(&self, name: &str, password: &str) -> Result<()> {
        let roles: ArrayBuf = ["root"].into_iter().collect();
        let body = DocumentBuf::new().with(create_user::COMMAND.name, name).with("pwd", password).with("roles", &roles);
        self.run_own(DATABASE, &body).map(drop)
    }

    /// Makes the server a member of the set `name`. With the file of a member of several, `member`, it is that member,
    /// and [`Service::begin_membership`] must be called. Otherwise it is the only member, and its primary; the first
    /// call begins the set, and a later one may change the member's host.
    /// # Errors
    /// `InvalidReplicaSetConfig` if the data belong to another set, or if the file is missing; errors of writing the
    /// configuration.
    pub fn join_replica_set(&mut self, name: &str, host: &MemberHost, member: Option<&Kept>) -> Result<()> {
        let catalog = Arc::clone(&self.catalog);
        if let Some(member) = member {
            let set = ReplicaSet::of_several(catalog, name, member.configuration.clone(), member.id.0)?;
            let known = set.member();
            if let MemberHost::Given(given) = host
                && *given != known.host
            {
                let known = &known.host;
                let message =
                    format!("this member of the set is {known}, and not {given}: another host is not supported yet");
                return Err(Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message));
            }
            self.replica_set = Some(Arc::new(set));
            return self.know_settings_anew();
        }
        let kept = self.stored_configuration()?;
        let id = self.world.object_id();
        let set = ReplicaSet::new(catalog, name, host, kept.as_ref().map(DocumentBuf::as_ref), id)?;
        self.replica_set = Some(Arc::new(set));
        self.know_settings_anew()?;
        self.step_up()
    }

    /// Reads the settings that are stored as documents, which another member may have written.
    pub(crate) fn know_settings_anew(&self) -> Result<()> {
        let concerns = find_stored(
            &self.catalog,
            default_concerns::DATABASE,
            default_concerns::COLLECTION,
            default_concerns::NAME,
        )?;
        if let Some(kept) = concerns {
            self.default_concerns.apply(default_concerns::Set::of_kept(kept.as_ref()));
        }
        self.user_write_block.set(UserWriteBlock::kept(&self.catalog).reason());
        self.query_settings.renew(&self.catalog);
        self.authority.access.note_change();
        self.apply_cluster_parameters();
        Ok(())
    }

    /// Reads the stored configuration, of any set; `None` if there is none.
    fn stored_configuration(&self) -> Result<Option<DocumentBuf>> {
        let body = DocumentBuf::new().with("find", COLLECTION).with("limit", 1).with("singleBatch", true);
        let reply = self.run_own(bunko_replica_set::DATABASE, &body)?;
        let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document);
        let batch = cursor.and_then(|cursor| cursor.get("firstBatch")).and_then(ValueRef::as_array);
        let first = batch.and_then(|batch| batch.iter().next()).and_then(ValueRef::as_document);
        Ok(first.map(DocumentRef::to_owned))
    }

    /// Runs a command and returns its reply, once its write is in the kernel.
    pub(crate) fn run_own(&self, database: &str, body: &DocumentBuf) -> Result<DocumentBuf> {
        let mut connection = ClientConnection::of_server();
        let mut reply = Vec::new();
        let request = Request::new(database, body.as_ref(), None);
        let answer = match self.run(&mut connection, request, RunOn::OwnThread, &mut reply) {
            Ok(answer) => answer,
            Err(Halt::Failed(failure)) => return Err(failure),
            Err(Halt::TooLong | Halt::Awaits(_) | Halt::ClosesConnection) => {
                unreachable!("it may be long, is not a getMore, and comes before all failpoints")
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
            Some(message) => Err(Failure::new(ErrorCode::OPERATION_FAILED, message)),
        }
    }
}
