//! The replica set that this server is a member of (`serve --replSet`): the set's configuration, the cluster time, and the
//! state that clients see. The elections of a set of one member are here too; those of several are in the crate `members`.
//!
//! The crate checks and completes configurations, and stores none: its caller reads the stored one and keeps each new
//! one.
#![forbid(unsafe_code)]

mod asked;
mod asked_members;
mod changes;
mod checks;
mod cluster_time;
mod configuration;
mod horizons;
mod leadership;
mod listed;
mod modes;
mod seen;
mod several;
mod tag_pattern;

use asked::Extent;
pub use asked::Force;
pub use changes::{shown, with_vote};
pub use cluster_time::ClusterTime;
pub use configuration::{Member, MemberHost, name_and_port, set_id, with_stamp};
pub use leadership::Leadership;
pub use listed::Listed;
pub use modes::{Tagged, check_tagged};
pub use seen::{MemberState, Seen};
pub use several::Initiation;
pub use tag_pattern::TagPattern;

use bunko_bson::{DocumentBuf, DocumentRef, ObjectId, Timestamp, ValueRef};
use bunko_catalog::{Catalog, Namespace, from_storage};
use bunko_errors::{ErrorCode, Failure};
use bunko_store::Role;
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The database of the set's configuration, as in MongoDB.
pub const DATABASE: &str = Namespace::OPLOG_DATABASE;
/// The collection of the set's configuration.
pub const COLLECTION: &str = "system.replset";

fn optime(time: Timestamp, term: Option<u64>) -> DocumentBuf {
    DocumentBuf::new().with("ts", time).with("t", term.map_or(-1, |term| term as i64))
}

/// The set, as its member sees it.
pub struct ReplicaSet {
    catalog: Arc<Catalog>,
    name: String,
    member: RwLock<Arc<Member>>,
    /// Held while a client changes the configuration, and while the only member elects itself. The value says whether
    /// `replSetInitiate` is still allowed: the server began the set at its start, and no client has initiated it.
    may_be_initiated: Mutex<bool>,
    /// The state of a set of several members; `None` in a set of one.
    seen: RwLock<Option<Seen>>,
    /// Whether a successor of the primary is catching up, so that nothing may be written.
    are_writes_paused: AtomicBool,
    /// The times that clients and this server know.
    pub cluster_time: ClusterTime,
    /// The member's elections.
    pub leadership: Leadership,
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
            seen: RwLock::default(),
            are_writes_paused: AtomicBool::default(),
            cluster_time: ClusterTime::new(Arc::clone(&catalog)),
            leadership: Leadership::default(),
            catalog,
        })
    }

    /// The set of several members with this configuration, in which this server has that `_id`.
    /// # Errors
    /// `InvalidReplicaSetConfig` if the configuration is another set's.
    pub fn of_several(catalog: Arc<Catalog>, name: &str, configuration: DocumentBuf, id: u32) -> Result<Self, Failure> {
        let own = configuration.as_ref().get("_id").and_then(ValueRef::as_str).unwrap_or_default();
        if own != name {
            let message = format!("the data belong to the replica set '{own}', not to '{name}'");
            return Err(Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message));
        }
        Ok(Self {
            name: name.to_owned(),
            member: RwLock::new(Member::with_id(configuration, id)),
            may_be_initiated: Mutex::new(false),
            seen: RwLock::new(Some(Seen::default())),
            are_writes_paused: AtomicBool::default(),
            cluster_time: ClusterTime::new(Arc::clone(&catalog)),
            leadership: Leadership::default(),
            catalog,
        })
    }

    /// Whether a client initiates the set, or changes its configuration, at this moment.
    pub fn is_being_initiated(&self) -> bool {
        self.may_be_initiated.try_lock().is_none()
    }

    /// Keeps clients from initiating the set, or changing its configuration, until the result is dropped; `None` if one does so.
    /// The value says whether `replSetInitiate` is still allowed.
    pub fn hold_configuration(&self) -> Option<MutexGuard<'_, bool>> {
        self.may_be_initiated.try_lock()
    }

    /// The set's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The id (`settings.replicaSetId`) that tells the set from another one of its name.
    pub fn id(&self) -> ObjectId {
        set_id(self.member().configuration.as_ref())
    }

    /// The member, as configured now.
    pub fn member(&self) -> Arc<Member> {
        Arc::clone(&self.member.read())
    }

    /// Whether the member is the primary.
    pub fn is_primary(&self) -> bool {
        // The members elect another primary before the store of the last one has left its role.
        let is_elected = self.seen.read().as_ref().is_none_or(|seen| seen.state == MemberState::Primary);
        is_elected && self.catalog.store().role() != Role::Secondary && !self.are_writes_paused()
    }

    /// Whether a successor of the primary is catching up, so that nothing may be written.
    pub fn are_writes_paused(&self) -> bool {
        self.are_writes_paused.load(Ordering::Acquire)
    }

    /// The last term; 0 before the first election.
    pub fn term(&self) -> i64 {
        match &*self.seen.read() {
            Some(seen) => seen.term as i64,
            None => self.catalog.store().last_position().term as i64,
        }
    }

    /// The time of the newest write that readers see, in the form that members of a set use among each other.
    pub fn applied(&self, newest: Timestamp) -> DocumentBuf {
        let store = self.catalog.store();
        optime(newest, store.term_before(store.visible_end()))
    }

    /// The time of the newest write that is committed.
    /// # Errors
    /// As reading the log.
    pub fn committed(&self) -> Result<(Timestamp, DocumentBuf), Failure> {
        let (newest, term) = self.catalog.store().committed_time().map_err(from_storage)?;
        Ok((newest, optime(newest, term)))
    }

    /// Grows with each election. Source: MongoDB manual, `hello`.
    pub fn election_id(&self) -> ObjectId {
        ObjectId::from_parts(0x7fff_ffff, [0; 5], self.term() as u32)
    }

    /// Elects the member for a new term, unless it is the primary. `prepare` is called first, with the member still a
    /// secondary. `begin` is called before clients hear of the election; its argument is the configuration, which has
    /// the new term and is to be stored.
    /// # Errors
    /// Errors of saving the vote and of writing to the log; those of `begin`.
    pub fn elect(
        &self,
        prepare: impl FnOnce(),
        begin: impl FnOnce(&DocumentBuf) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // Before the lock of elections: a client who makes a set of several of this one steps down while it holds this.
        let _no_change = self.may_be_initiated.lock();
        self.leadership.elect(&self.catalog, prepare, |term| {
            let configuration = configuration::of_term(self.member().configuration.as_ref(), term);
            *self.member.write() = Member::of(configuration);
            begin(&self.member().configuration)
        })
    }

    /// Makes the primary a secondary until `until`. Returns false if the member is not the primary.
    pub fn step_down(&self, until: Instant) -> bool {
        self.leadership.step_down(&self.catalog, until)
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
        let configuration = asked::next(asked, &self.name, &self.member(), force, Extent::One)?;
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
