//! Elections: who asks for votes and when, and who gives them.

use crate::state::{Actions, Campaign, Candidacy, Role, Until};
use crate::{Action, Agreement, Body, Bug, MemberId, Vote};

impl Agreement {
    pub(crate) fn tick(&mut self, actions: &mut Actions) {
        match &self.role {
            Role::Primary(_) => self.primary_tick(actions),
            Role::Follower(following) if self.now >= following.campaign_at.0 => {
                if self.may_campaign() && self.now >= self.frozen_until {
                    self.ask_pre_votes(actions);
                } else {
                    self.postpone();
                }
            }
            Role::Candidate(campaign) if self.now >= campaign.until.0 => {
                self.become_follower(actions);
                // Two members may have asked at the same time. A random wait lets one member ask before the other.
                let wait = self.timing.retry(&mut self.random);
                if let Role::Follower(following) = &mut self.role {
                    following.campaign_at = Until(self.now + wait);
                }
            }
            _ => {}
        }
    }

    /// Whether the configuration and the log let this member ask for votes.
    pub(crate) fn may_campaign(&self) -> bool {
        let may = self.me().is_some_and(crate::MemberConfiguration::is_electable);
        let has_base = self.log.written >= self.configuration.base;
        let remembers = !self.has_lost_memory() && self.position() >= self.floor();
        may && has_base
            && remembers
            && self.truncating.is_none()
            && self.keeping.is_none()
            && matches!(self.role, Role::Follower(_))
    }

    /// Waits another election timeout.
    fn postpone(&mut self) {
        let wait = self.timing.election_timeout(&mut self.random);
        if let Role::Follower(following) = &mut self.role {
            following.campaign_at = Until(self.now + wait);
        }
    }

    pub(crate) fn connection_broke(&mut self, member: MemberId) {
        let stagger = self.rank() * (self.timing.election_timeout_ms / 40);
        if let Role::Follower(following) = &mut self.role
            && following.primary == Some(member)
            && !following.lost
        {
            following.lost = true;
            following.campaign_at = Until(self.now + stagger);
        }
    }

    /// How many electable members other than the primary come before this one. Members that lose the primary together
    /// campaign in this order, so that they do not split the votes.
    fn rank(&self) -> u64 {
        let primary = self.primary();
        let Some(me) = self.me() else { return 0 };
        let key = |member: &crate::MemberConfiguration| (std::cmp::Reverse(member.priority), member.id);
        let before = self
            .configuration
            .members
            .iter()
            .filter(|other| other.is_electable() && Some(other.id) != primary && key(other) < key(me));
        before.count() as u64
    }

    fn ask_pre_votes(&mut self, actions: &mut Actions) {
        let retry = self.timing.retry(&mut self.random);
        let Some(index) = self.index_of(self.id) else { return };
        let Role::Follower(following) = &mut self.role else { return };
        following.campaign_at = Until(self.now + retry);
        following.pre_votes = 1 << index;
        self.ask_voters(&Body::PreVote { position: self.position() }, actions);
        self.count_pre_votes(actions);
    }

    pub(crate) fn asked_for_pre_vote(&mut self, asking: Candidacy, actions: &mut Actions) {
        let primary_lives = match &self.role {
            // A candidate may win yet, and another one would only split the votes.
            Role::Primary(_) | Role::Candidate(_) => true,
            Role::Follower(following) => {
                let deadline = following.heard_at.0 + self.timing.election_timeout_ms;
                following.primary.is_some() && !following.lost && self.now < deadline
            }
        };
        let remembers = !self.has_lost_memory();
        let granted = remembers && !primary_lives && asking.term >= self.vote.term && self.would_elect(asking);
        self.send(asking.from, Body::PreVoteAnswer { granted }, actions);
    }

    /// Whether configuration and log of a candidate are at least as new as this member's.
    fn would_elect(&self, asking: Candidacy) -> bool {
        let log = asking.position >= self.floor() || self.planted(Bug::VoteForShorterLog);
        log && !self.stamp().newer_than(asking.configuration)
    }

    pub(crate) fn pre_vote_answered(&mut self, from: MemberId, granted: bool, actions: &mut Actions) {
        let index = self.index_of(from);
        if let (Role::Follower(following), Some(index), true) = (&mut self.role, index, granted)
            && following.pre_votes != 0
        {
            following.pre_votes |= 1 << index;
            self.count_pre_votes(actions);
        }
    }

    fn count_pre_votes(&mut self, actions: &mut Actions) {
        if let Role::Follower(following) = &self.role
            && self.wins(following.pre_votes)
            && self.may_campaign()
        {
            self.campaign(actions);
        }
    }

    fn wins(&self, granted: u64) -> bool {
        let members = self.configuration.members.iter().enumerate();
        let votes = members.filter(|(index, member)| member.votes && granted & 1 << index != 0);
        votes.count() >= self.configuration.election_quorum()
    }

    /// Becomes candidate in the next term. Others are asked when the vote for itself is stored.
    pub(crate) fn campaign(&mut self, actions: &mut Actions) {
        self.vote = Vote { term: self.next_term(), candidate: Some(self.id) };
        let wait = self.timing.campaign(&mut self.random);
        self.role = Role::Candidate(Campaign { granted: 0, until: Until(self.now + wait) });
        actions.push(Action::SaveVote(self.vote));
    }

    pub(crate) fn asked_for_vote(&mut self, asking: Candidacy, actions: &mut Actions) {
        let from = asking.from;
        let follower = matches!(self.role, Role::Follower(_));
        let free = self.vote.candidate.is_none_or(|candidate| candidate == from) || self.planted(Bug::DoubleVote);
        let may_vote = follower && free && !self.has_lost_memory();
        if asking.term != self.vote.term || !may_vote || !self.would_elect(asking) {
            return self.send(from, Body::VoteAnswer { granted: false }, actions);
        }
        self.vote.candidate = Some(from);
        self.postpone();
        if self.saved == self.vote || self.planted(Bug::UnsyncedVote) {
            self.send(from, Body::VoteAnswer { granted: true }, actions);
        }
        if self.saved != self.vote {
            actions.push(Action::SaveVote(self.vote));
        }
    }

    pub(crate) fn vote_saved(&mut self, vote: Vote, actions: &mut Actions) {
        self.saved = vote;
        self.look_at_floor(actions);
        let Some(candidate) = vote.candidate.filter(|_| vote == self.vote) else { return };
        if candidate != self.id {
            return self.send(candidate, Body::VoteAnswer { granted: true }, actions);
        }
        if matches!(self.role, Role::Candidate(_)) {
            self.ask_voters(&Body::RequestVote { position: self.position() }, actions);
            self.vote_answered(self.id, true, actions);
        }
    }

    pub(crate) fn vote_answered(&mut self, from: MemberId, granted: bool, actions: &mut Actions) {
        let Some(index) = self.index_of(from).filter(|_| granted) else { return };
        let Role::Candidate(campaign) = &mut self.role else { return };
        // The voter may have lost its files since, and have asked others whether it has voted.
        if self.now >= campaign.until.0 {
            return;
        }
        campaign.granted |= 1 << index;
        let granted = campaign.granted;
        if self.wins(granted) {
            self.become_primary(actions);
        }
    }
}
