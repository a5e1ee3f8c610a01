//! This server as a member of a set of several: its part for the crate `members`, and its answers to other members.

use crate::access_control::end_revoked;
use crate::service::Service;
use crate::start_note::STARTUP_LOG;
use crate::stored_settings::replacement;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{Namespace, from_storage};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_members::{Force, Host, Inbound, Kept, MemberId, Members, Memory, Setup};
use bunko_replica_set::{self as replica_set, COLLECTION, DATABASE, Initiation, Listed, MemberState, ReplicaSet};
use bunko_settings::{cluster_parameters, default_concerns, user_write_block};
use bunko_store::{Lsn, StorageError, Vote};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Longest time that a primary that stops waits for a successor that has the whole log.
const HAND_OVER_TIME: Duration = Duration::from_secs(5);

/// The id of no operation, for a revocation that this member did not carry out itself.
const NO_OPERATION: u32 = 0;

/// Collections of settings that a member keeps in memory.
const SETTINGS: [(&str, &str); 3] = [
    (default_concerns::DATABASE, default_concerns::COLLECTION),
    (cluster_parameters::DATABASE, cluster_parameters::COLLECTION),
    (user_write_block::DATABASE, user_write_block::COLLECTION),
];

impl Service {
    /// Lets the service begin threads that need it, and takes part in a set of several members if the server was in
    /// one.
    /// # Errors
    /// Errors of the member's file and configuration.
    pub fn begin_membership(self: &Arc<Self>, kept: Option<Kept>) -> Result<()> {
        // `own` is set once, before any client connects.
        let _ = self.own.set(Arc::downgrade(self));
        kept.map_or(Ok(()), |kept| self.take_part(kept))
    }

    fn take_part(&self, kept: Kept) -> Result<()> {
        let (Some(set), Some(own)) = (&self.replica_set, self.own.get()) else { return Err(no_part()) };
        let host: Weak<dyn Host> = own.clone();
        let members = Members::start(Setup {
            catalog: Arc::clone(&self.catalog),
            set: Arc::clone(set),
            host,
            dial: Arc::clone(&self.process.dial),
            directory: self.data_directory()?,
            kept,
            seed: (self.world.random)(),
        })?;
        // `members` is set once: at the start, or when a client initiates the set.
        self.members.set(members).map_err(|_| no_part())?;
        self.follow_settings()?;
        self.follow_users()
    }

    /// Reads stored settings again whenever this member has applied a change that another one made.
    fn follow_settings(&self) -> Result<()> {
        for (database, collection) in SETTINGS {
            let own = self.own.get().cloned().unwrap_or_default();
            let renew = move || {
                if let Some(Err(failure)) = own.upgrade().map(|service| service.know_settings_anew()) {
                    tracing::warn!(target: "REPL", id = 315, ctx = "apply", error = %failure, "Settings that another member has changed cannot be read");
                }
            };
            self.catalog.on_absorbed(Namespace::new(database, collection)?, Box::new(renew));
        }
        Ok(())
    }

    /// Reads rights again, and ends the work of users who lost some, whenever this member has applied a change of users
    /// or roles that another one made.
    fn follow_users(&self) -> Result<()> {
        for collection in [bunko_authority::USERS, bunko_authority::ROLES] {
            let own = self.own.get().cloned().unwrap_or_default();
            let renew = move || {
                if let Some(service) = own.upgrade() {
                    service.authority.access.note_change();
                    end_revoked(&service, NO_OPERATION);
                }
            };
            let namespace = Namespace::new(bunko_authority::DATABASE, collection)?;
            self.catalog.on_absorbed(namespace, Box::new(renew));
        }
        Ok(())
    }

    fn data_directory(&self) -> Result<PathBuf> {
        self.catalog.store().path().map(PathBuf::from).ok_or_else(no_part)
    }

    /// Begins a set of several members, of which this one has the data.
    /// # Errors
    /// `NodeNotFound` if another member cannot join; errors of the files.
    pub(crate) fn initiate_several(&self, initiation: Initiation) -> Result<()> {
        let Initiation { configuration, own, others } = initiation;
        self.check_logins(&configuration)?;
        self.check_majority_reads()?;
        let name = self.replica_set.as_ref().map_or("", |set| set.name());
        self.ask_all_to_join(name, own, &others)?;
        self.begin_several(Initiation { configuration, own, others })
    }

    /// Makes a set of several members of a set of one.
    /// # Errors
    /// As [`Service::initiate_several`] and [`Service::check_change`].
    pub(crate) fn grow(&self, initiation: Initiation, force: replica_set::Force) -> Result<()> {
        let Some(set) = &self.replica_set else { return Err(no_part()) };
        self.check_majority_reads()?;
        self.check_logins(&initiation.configuration)?;
        if force == replica_set::Force::No {
            self.check_default_concern(set, &initiation.configuration)?;
            self.check_quorum(set, &[], &initiation.configuration)?;
        }
        self.begin_several(initiation)
    }

    fn check_majority_reads(&self) -> Result<()> {
        if self.default_concerns.set().is_some_and(|set| set.is_majority_read()) {
            let concern = "the default read concern 'majority', in a set of several members";
            return Err(Failure::not_supported_yet(concern));
        }
        Ok(())
    }

    /// Begins a set of several members, after the other members have agreed to join.
    fn begin_several(&self, Initiation { configuration, own, others }: Initiation) -> Result<()> {
        let store = self.catalog.store();
        // From here on, a record is committed when enough members have it, not when this one has.
        store.hold_committed();
        self.step_down_for_good();
        let base = store.last_position().end;
        let invited = others.iter().map(|other| MemberId(other.id)).collect();
        let listed = Listed::all(configuration.as_ref()).unwrap_or_default();
        let own_entry = listed.into_iter().find(|listed| listed.id == own);
        let (host, delay_secs) = own_entry.map_or_else(Default::default, |own| (own.host, own.delay_secs));
        let (offered, memory) = (Vec::new(), Memory::Kept);
        let kept = Kept { id: MemberId(own), host, configuration, base, invited, offered, memory, delay_secs };
        let is_kept = sync(store, base)
            .and_then(|()| keep_term(store))
            .and_then(|()| kept.write(&self.data_directory()?).map_err(from_storage));
        if let (Err(failure), Some(set)) = (is_kept, &self.replica_set) {
            // This server is the only member still, and elects itself in a second. An election waits for the caller's
            // lock.
            store.commit_what_is_visible();
            set.leadership.freeze(None);
            return Err(failure);
        }
        if let Some(set) = &self.replica_set {
            set.begin_several(kept.configuration.clone(), own);
        }
        self.take_part(kept)
    }

    /// Handles a message of another member, for a server that is in no set of several members yet.
    /// # Errors
    /// `NotYetInitialized` if the server may join; `InvalidReplicaSetConfig` if it may not.
    pub(crate) fn join(&self, set: &ReplicaSet, body: DocumentRef<'_>) -> Result<()> {
        if set.is_being_initiated() {
            let message = "a client initiates the set of this server at this moment";
            return Err(Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message));
        }
        self.check_empty().inspect_err(|failure| {
            if !self.is_refusal_told.swap(true, Ordering::Relaxed) {
                tracing::warn!(target: "REPL", id = 339, ctx = "ReplCoord", error = %failure, "A set of several members counts this server among its members, and it does not join");
            }
        })?;
        let Some(invitation) = body.get("join").and_then(ValueRef::as_document) else {
            return Err(Failure::new(
                ErrorCode::NOT_YET_INITIALIZED,
                "this server is in no set of several members yet",
            ));
        };
        let kept = Kept::of_invitation(invitation).map_err(Failure::bad_value)?;
        let named = kept.configuration.as_ref().get("_id").and_then(ValueRef::as_str).unwrap_or_default();
        if named != set.name() {
            return Err(Failure::bad_value(format!("an invitation to the set '{named}'")));
        }
        if !Kept::is_meant_for(invitation, set.id()) {
            return Err(Failure::bad_value("an invitation of another server, which had this address before"));
        }
        let Some(mut may_be_initiated) = set.hold_configuration() else {
            let message = "the set of this server is changed at this moment";
            return Err(Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message));
        };
        // A write that was acknowledged from here on would be deleted with the data.
        self.step_down_for_good();
        if let Err(failure) = self.give_up_data(&kept) {
            drop(may_be_initiated);
            set.leadership.freeze(None);
            self.step_up()?;
            return Err(failure);
        }
        *may_be_initiated = false;
        tracing::info!(target: "REPL", id = 311, ctx = "ReplCoord", set = set.name(), "This server joins a set of several members: it starts again, with an empty log");
        (self.process.restart)();
        Ok(())
    }

    /// Lets the next start delete the data, which clients have not written.
    fn give_up_data(&self, kept: &Kept) -> Result<()> {
        // A client may have written since the last look.
        self.check_empty()?;
        kept.write_joining(&self.data_directory()?).map_err(from_storage)
    }

    /// # Errors
    /// `InvalidReplicaSetConfig` if the server has data of users.
    fn check_empty(&self) -> Result<()> {
        let Some(found) = self.data_of_users() else { return Ok(()) };
        let message = format!("this server has data, in {found}, and a server that joins a set must be empty");
        Err(Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message))
    }

    /// The name of a collection that users have filled, if there is one.
    fn data_of_users(&self) -> Option<String> {
        let of_server = ["admin", "config", DATABASE];
        if let Some(database) = self.catalog.databases().into_iter().find(|name| !of_server.contains(&&**name)) {
            return Some(database);
        }
        // In the server's own databases, only collections that the server does not write itself, users and roles count.
        let is_of_users = |name: &Arc<Namespace>| {
            let collection = name.collection();
            let is_setting = SETTINGS.contains(&(name.database(), collection));
            let is_own = collection.starts_with("system.") || collection == STARTUP_LOG || is_setting;
            !is_own || ["system.users", "system.roles"].contains(&collection)
        };
        let collections = of_server.into_iter().flat_map(|database| self.catalog.collections(database));
        let mut names = collections.map(|collection| collection.namespace());
        names.find(is_of_users).map(|name| name.to_string())
    }

    /// Whether the server is a member of a set of several.
    pub fn is_of_several(&self) -> bool {
        self.members().is_some()
    }

    /// The server as a member of a set of several, if it is one.
    pub(crate) fn members(&self) -> Option<&Arc<Members>> {
        self.members.get()
    }

    /// Notes that a connection belongs to another member.
    pub(crate) fn inbound(&self, body: DocumentRef<'_>) -> Option<Inbound> {
        self.members()?.inbound(body)
    }

    /// Lets another member become primary, and ends this member's part in the set: the server stops.
    pub fn end_membership(&self) {
        let Some(members) = self.members() else { return };
        if self.replica_set.as_ref().is_some_and(|set| set.is_primary()) {
            // Without a successor in time, the others elect one when this one is gone.
            let _ = members.step_down(HAND_OVER_TIME, HAND_OVER_TIME, Force::Yes, &|| Ok(()));
        }
        members.stop();
    }
}

impl Service {
    fn begin_term(&self, term: u64) -> Result<()> {
        let found = self.catalog.interrupted_builds();
        self.catalog.become_primary(term)?;
        self.catalog.reload_write_histories()?;
        self.sessions.adopt(self.catalog.take_write_histories());
        self.know_settings_anew()?;
        let begun = self.catalog.step_up();
        *self.builds_to_resume.lock() = found;
        begun
    }
}

fn no_part() -> Failure {
    Failure::new(ErrorCode::INTERNAL_ERROR, "the server cannot take part in a set")
}

/// Saves a vote for none where there is none, as after a restore, or after an election on a full disk. A member whose
/// log has terms and that has no vote counts as one whose files were lost, but this one has voted for no member of the
/// new set.
fn keep_term(store: &bunko_store::Store) -> Result<()> {
    let term = store.last_position().term;
    if term == 0 || store.vote().is_some() {
        return Ok(());
    }
    store.save_vote(Vote { term, candidate: None }).map_err(from_storage)
}

/// Waits until the log is on disk up to `end`.
fn sync(store: &bunko_store::Store, end: u64) -> Result<()> {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    let told = move |outcome: Result<(), StorageError>| drop(sender.try_send(outcome));
    store.on_durable(Lsn(end.saturating_sub(1)), Box::new(told));
    receiver.recv().unwrap_or(Err(StorageError::LogFailed)).map_err(from_storage)
}

impl Host for Service {
    fn step_up(&self, term: u64) -> Result<()> {
        let Some(set) = &self.replica_set else { return Err(no_part()) };
        // Clients may write only once the member knows the last primary's writes.
        set.pause_writes();
        let begun = self.begin_term(term);
        set.leadership.note_election(self.world.clock.now_ms());
        // After a failure the member steps down again, and its writes go on only then: it may not know all retryable
        // writes.
        if begun.is_ok() {
            set.resume_writes();
        }
        begun
    }

    fn step_down(&self) {
        self.step_down_for_good();
    }

    fn note_configuration(&self) -> Result<()> {
        let Some(set) = &self.replica_set else { return Ok(()) };
        self.run_own(DATABASE, &replacement(COLLECTION, &set.member().configuration)).map(drop)
    }

    fn are_files_held(&self) -> bool {
        self.write_lock.is_closed()
    }

    fn restart(&self) {
        (self.process.restart)();
    }

    fn status(&self) -> DocumentBuf {
        let Some(set) = &self.replica_set else { return DocumentBuf::new() };
        // Asked before term and position are read: if the member remembers in between, its report is merely too
        // cautious.
        let has_lost_memory = self.members().is_some_and(|members| members.has_lost_memory());
        let time = set.cluster_time.operation_time();
        let member = set.member();
        let date = ValueRef::DateTime(i64::from(time.seconds) * 1000);
        let mut status = DocumentBuf::new()
            .with("state", set.state().number())
            .with("term", set.term())
            .with("setId", set.id())
            .with("optime", &set.applied(time))
            .with("optimeDate", date)
            .with("configVersion", member.version())
            .with("configTerm", member.term());
        let position = self.catalog.store().last_position();
        status.append("logTerm", position.term as i64).append("logEnd", position.end as i64);
        if has_lost_memory {
            status.append("memoryLost", true);
        }
        if let Some(primary) = set.primary() {
            status.append("primary", primary.as_str());
        }
        if set.state() == MemberState::Primary {
            status.append("elected", i64::from(set.leadership.elected_s()));
        }
        status
    }
}
