//! Changes of the configuration, which lies beside the log (logless reconfiguration, arXiv 2102.11960).

use crate::state::{Actions, Role};
use crate::{
    Action, Agreement, Body, Bug, Configuration, Force, MemberConfiguration, MemberId, Refusal, Refused, Stamp, Term,
    Timing,
};
use std::sync::Arc;

/// The least by which a forced change raises the version.
const FORCED_STEP: u64 = 10_000;
/// Maximum number of terms by which the first campaign under a forced configuration exceeds the next one.
const FORCED_TERMS_MAX: u64 = 1000;

impl Agreement {
    /// The term of this member's next campaign. Members that do not know of a forced configuration may elect a primary in the next
    /// term, too; two primaries of one term would write different logs that look equal.
    pub(crate) fn next_term(&mut self) -> Term {
        let is_forced = self.configuration.term == 0 && self.configuration.version > FORCED_STEP;
        let beyond = if is_forced { self.random.below(FORCED_TERMS_MAX) } else { 0 };
        self.vote.term + 1 + beyond
    }

    pub(crate) fn proposed(&mut self, mut configuration: Configuration, force: Force, actions: &mut Actions) {
        configuration.term = self.stamp().term;
        configuration.version = configuration.version.max(self.configuration.version + 1);
        if force == Force::Yes {
            // The version must exceed every version that a majority elsewhere may have agreed on in the meantime.
            configuration.term = 0;
            configuration.version += FORCED_STEP + self.random.below(90_000);
        }
        match self.may_change(&configuration, force) {
            Ok(()) => self.keep(Arc::new(configuration), actions),
            Err(refusal) => actions.push(Action::Refused(Refused::Propose(refusal))),
        }
    }

    /// Whether this primary would take a configuration now, which an administrator has not proposed.
    pub fn would_take(&self, next: &Configuration) -> bool {
        self.may_change(next, Force::No).is_ok()
    }

    fn may_change(&self, next: &Configuration, force: Force) -> Result<(), Refusal> {
        next.check().map_err(Refusal::Invalid)?;
        if self.keeping.is_some() {
            return Err(Refusal::ConfigurationPending);
        }
        if force == Force::Yes {
            return Ok(());
        }
        let Role::Primary(leading) = &self.role else { return Err(Refusal::NotPrimary) };
        if !next.member(self.id).is_some_and(MemberConfiguration::is_electable) {
            return Err(Refusal::PrimaryLeaves);
        }
        if !self.configuration.may_become(next) && !self.planted(Bug::TwoVotersAtOnce) {
            return Err(Refusal::SeveralVoters);
        }
        if self.planted(Bug::ConfigurationBeforeQuorum) {
            return Ok(());
        }
        if !leading.installed {
            return Err(Refusal::ConfigurationPending);
        }
        // With a record of this term committed, no primary of an earlier term can commit a record that a majority of
        // the next configuration lacks.
        if leading.term_start.is_none_or(|start| self.committed <= start) {
            return Err(Refusal::NothingCommitted);
        }
        // See `Configuration::commit_quorum`.
        if self.commits_in(next) { Ok(()) } else { Err(Refusal::NotCaughtUp) }
    }

    /// Stores a configuration; it is in use once it is stored.
    pub(crate) fn keep(&mut self, configuration: Arc<Configuration>, actions: &mut Actions) {
        actions.push(Action::Keep(Arc::clone(&configuration)));
        self.keeping = Some(configuration);
    }

    /// Another member sent its configuration.
    pub(crate) fn learn(&mut self, configuration: Arc<Configuration>, actions: &mut Actions) {
        let newest = self.keeping.as_ref().map_or(self.stamp(), |keeping| keeping.stamp());
        // The agreement relies on the rules of `check` for every configuration in use, also for one from another
        // member.
        if configuration.stamp().newer_than(newest) && configuration.check().is_ok() {
            self.keep(configuration, actions);
        }
    }

    pub(crate) fn configuration_kept(&mut self, stamp: Stamp, actions: &mut Actions) {
        let Some(kept) = self.keeping.take_if(|keeping| keeping.stamp() == stamp) else { return };
        self.configuration = kept;
        match &self.role {
            Role::Primary(_) if self.me().is_some_and(MemberConfiguration::is_electable) => {
                self.reset_peers();
                let configuration = Body::Configuration(Arc::clone(&self.configuration));
                for member in self.configuration.members.iter().filter(|member| member.id != self.id) {
                    self.send(member.id, configuration.clone(), actions);
                }
                self.send_heartbeats(actions);
                self.primary_log_moved(actions);
            }
            // Votes that were counted by the old configuration no longer count.
            Role::Primary(_) | Role::Candidate(_) => self.become_follower(actions),
            Role::Follower(_) => self.follower_configured(actions),
        }
    }

    fn follower_configured(&mut self, actions: &mut Actions) {
        let is_removed = self.me().is_none();
        if let Role::Follower(following) = &mut self.role {
            following.pre_votes = 0;
            if is_removed {
                following.primary = None;
            }
        }
        // The primary counts the members that store the configuration.
        self.fetch(actions);
    }

    /// Notes how often heartbeats are sent, and how long members wait for them, as the configuration in use says.
    pub fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
    }

    /// Sends this member's configuration to a member that has an older one.
    pub(crate) fn teach(&self, member: MemberId, known: Stamp, actions: &mut Actions) {
        if self.stamp().newer_than(known) {
            self.send(member, Body::Configuration(Arc::clone(&self.configuration)), actions);
        }
    }
}
