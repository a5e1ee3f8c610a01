//! A set of several members: its initiation, and the state that its member shows.

use crate::asked::Extent;
use crate::changes::{check_change, with_newly_added, with_periods_of_several};
use crate::checks::invalid;
use crate::configuration::{Member, name_and_port};
use crate::{Force, Listed, MemberState, ReplicaSet, Seen};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A set that a client initiates.
pub struct Initiation {
    /// The complete configuration.
    pub configuration: DocumentBuf,
    /// This member.
    pub own: u32,
    /// The other members.
    pub others: Vec<Listed>,
}

impl ReplicaSet {
    /// Whether the set has several members.
    pub fn has_several(&self) -> bool {
        self.seen.read().is_some()
    }

    /// The member's own state.
    pub fn state(&self) -> MemberState {
        let seen = self.seen.read().clone();
        match seen.map_or(MemberState::Primary, |seen| seen.state) {
            // Between an election and the first write, and while writes are paused, the member is not primary.
            MemberState::Primary if !self.is_primary() => MemberState::Secondary,
            state => state,
        }
    }

    /// The `host:port` of the primary, if there is one.
    pub fn primary(&self) -> Option<String> {
        let member = self.member();
        let seen = self.seen.read().clone();
        match seen {
            Some(Seen { primary, .. }) => {
                let primary = primary?;
                member.listed.iter().find(|listed| listed.id == primary).map(|listed| listed.host.clone())
            }
            None => self.is_primary().then(|| member.host.clone()),
        }
    }

    /// Makes the set one of several members, of which this one has that `_id`.
    pub fn begin_several(&self, configuration: DocumentBuf, id: u32) {
        let term = self.term() as u64;
        *self.seen.write() = Some(Seen { term, ..Seen::default() });
        self.configure(configuration, id);
    }

    /// The configuration that a client proposes for the set of several members.
    /// # Errors
    /// `NewReplicaSetConfigurationIncompatible` for a change that the agreement does not allow; `NodeNotFound` if this member is
    /// missing; `NodeNotElectable` if it could not stay primary; `CommandNotSupported` for a member with another host; errors of the
    /// fields.
    pub fn proposed(&self, asked: DocumentRef<'_>, force: Force) -> Result<DocumentBuf> {
        let current = self.member();
        let proposed = crate::asked::next(asked, &self.name, &current, force, Extent::Several)?;
        check_change(&self.name, &current, proposed.as_ref(), force)?;
        Ok(if force == Force::Yes { proposed } else { with_newly_added(&current, proposed.as_ref()) })
    }

    /// Whether a configuration makes a set of several members of a set of one.
    /// # Errors
    /// `InvalidReplicaSetConfig`, `TypeMismatch` without members.
    pub fn grows(&self, asked: DocumentRef<'_>) -> Result<bool> {
        Ok(!self.has_several() && Extent::of(asked)? == Extent::Several)
    }

    /// Makes a set of several members of the set of one. `begin` begins the new set.
    /// # Errors
    /// As [`ReplicaSet::proposed`]; errors of `begin`.
    pub fn grow<E: From<Failure>>(
        &self,
        asked: DocumentRef<'_>,
        force: Force,
        begin: impl FnOnce(Initiation) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut may_be_initiated = self.may_be_initiated.lock();
        let current = self.member();
        let proposed = crate::asked::next(asked, &self.name, &current, force, Extent::Several)?;
        check_change(&self.name, &current, proposed.as_ref(), force)?;
        let mut configuration = with_periods_of_several(&current, proposed);
        if force == Force::No {
            configuration = with_newly_added(&current, configuration.as_ref());
        }
        let mut others = Listed::all(configuration.as_ref()).map_err(invalid)?;
        let own = current.own().map_or(0, |own| own.id);
        others.retain(|listed| listed.id != own);
        begin(Initiation { configuration, own, others })?;
        *may_be_initiated = false;
        Ok(())
    }

    /// Shows clients the state of a set of several members.
    pub fn show(&self, seen: Seen) {
        let (new, old) = (seen.state, self.seen.write().replace(seen));
        let old = old.map_or(MemberState::Unknown, |old| old.state);
        self.leadership.tell(new.name(), old.name());
    }

    /// Shows clients a configuration of several members, of which this one has that `_id`.
    pub fn configure(&self, configuration: DocumentBuf, id: u32) {
        *self.member.write() = Member::with_id(configuration, id);
        self.leadership.tell_of_configuration();
    }

    /// Holds writes back while a successor of the primary catches up.
    pub fn pause_writes(&self) {
        self.are_writes_paused.store(true, Ordering::Release);
        self.leadership.tell_of_configuration();
    }

    /// Lets writes go on.
    pub fn resume_writes(&self) {
        if self.are_writes_paused.swap(false, Ordering::AcqRel) {
            self.leadership.tell_of_configuration();
        }
    }

    /// The set of several members that a client initiates, once. `is_own` says whether a host, `host:port`, is this server,
    /// which listens on the port that is its second argument. `begin` begins the set.
    /// # Errors
    /// `AlreadyInitialized`; errors of the configuration, and of `begin`.
    pub fn initiate_several<E: From<Failure>>(
        &self,
        asked: DocumentRef<'_>,
        is_own: &dyn Fn(&str, &str) -> bool,
        begin: impl FnOnce(Initiation) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut may_be_initiated = self.may_be_initiated.lock();
        if !*may_be_initiated {
            return Err(Failure::new(ErrorCode::ALREADY_INITIALIZED, "already initialized").into());
        }
        let current = self.member();
        let configuration = crate::asked::initial(asked, &self.name, &current)?;
        let initiation = self.own_part(configuration, &current, is_own)?;
        begin(initiation)?;
        *may_be_initiated = false;
        Ok(())
    }

    fn own_part(
        &self,
        configuration: DocumentBuf,
        current: &Arc<Member>,
        is_own: &dyn Fn(&str, &str) -> bool,
    ) -> Result<Initiation> {
        let mut others = Listed::all(configuration.as_ref()).map_err(invalid)?;
        let own_port = name_and_port(&current.host).1;
        let is_own = |listed: &Listed| listed.host == current.host || is_own(&listed.host, own_port);
        let own: Vec<usize> = (0..others.len()).filter(|index| is_own(&others[*index])).collect();
        let [own] = own[..] else {
            let found = if own.is_empty() { "No host" } else { "More than one host" };
            let message = format!(
                "{found} described in new configuration with {{version: 1, term: 0}} for replica set {} maps to this node",
                self.name
            );
            return Err(invalid(message));
        };
        let own = others.remove(own);
        if own.arbiter || own.priority == 0.0 {
            let message = "This node, which initiates the set, must be able to become primary";
            return Err(Failure::new(ErrorCode::NODE_NOT_ELECTABLE, message));
        }
        Ok(Initiation { configuration, own: own.id, others })
    }
}
