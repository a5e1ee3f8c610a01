//! A primary: it answers followers, moves the commit point, confirms reads, and hands over.

use crate::position::Compared;
use crate::state::{Actions, Fetched, HandOver, Leading, Peer, Role, Until};
use crate::{Action, Agreement, Body, Bug, Configuration, Force, Lsn, MemberId, Progress, Refusal, Refused, Stamp};
use std::sync::Arc;

/// Maximum number of linearizable reads that wait for a round.
const READS_MAX: usize = 10_000;

impl Agreement {
    pub(crate) fn become_primary(&mut self, actions: &mut Actions) {
        let leading = Leading {
            term: self.vote.term,
            peers: Vec::new(),
            term_start: None,
            installed: false,
            round: 1,
            confirmed: 0,
            reads: Vec::new(),
            hand_over: None,
            heartbeat_at: Until(0),
            since: Until(self.now),
            end_at_heartbeat: Lsn::MAX,
        };
        self.role = Role::Primary(leading);
        self.reset_peers();
        actions.push(Action::BecomePrimary { term: self.vote.term });
        // Once a majority stores this configuration, no member with an older one can win an election.
        let mut configuration = Configuration::clone(&self.configuration);
        configuration.version += u64::from(configuration.term == 0);
        configuration.term = self.vote.term;
        self.keep(Arc::new(configuration), actions);
        self.send_heartbeats(actions);
    }

    /// Fits the peers to a new configuration.
    pub(crate) fn reset_peers(&mut self) {
        let now = self.now;
        let Role::Primary(leading) = &mut self.role else { return };
        let known = std::mem::take(&mut leading.peers);
        let peer = |id| Peer {
            id,
            progress: Progress::default(),
            heard_at: Until(now),
            round: 0,
            configuration: Stamp::default(),
            waits_at: None,
            told: 0,
        };
        let find = |id| known.iter().find(|peer| peer.id == id).cloned().unwrap_or_else(|| peer(id));
        leading.peers = self.configuration.members.iter().map(|member| find(member.id)).collect();
        leading.installed = false;
        self.count_installed();
    }

    /// Checks whether a majority of the voters stores the configuration in use.
    fn count_installed(&mut self) {
        let stamp = self.stamp();
        let Role::Primary(leading) = &mut self.role else { return };
        let members = self.configuration.members.iter().zip(&leading.peers);
        let stored =
            members.filter(|(member, peer)| member.votes && (member.id == self.id || peer.configuration == stamp));
        // An earlier term's primary may still spread a newer version of its own, which only this term's stamp beats.
        let own = stamp.term == leading.term || stamp.term == 0;
        leading.installed = own && stored.count() >= self.configuration.election_quorum();
    }

    /// Whether a majority of the voters stores the configuration in use; none if this member is not primary.
    pub fn is_installed(&self) -> Option<bool> {
        match &self.role {
            Role::Primary(leading) => Some(leading.installed && self.keeping.is_none()),
            _ => None,
        }
    }

    /// Whether enough voting data members answer this primary, and follow its log, for the commit point to move.
    pub fn can_commit(&self) -> bool {
        let Role::Primary(leading) = &self.role else { return false };
        let timeout = self.timing.election_timeout_ms;
        let follows = |peer: &Peer| self.now < peer.heard_at.0 + timeout && peer.progress.written > 0;
        let members = self.configuration.members.iter().zip(&leading.peers);
        let moving =
            members.filter(|(member, peer)| member.counts_for_commit() && (member.id == self.id || follows(peer)));
        moving.count() >= self.configuration.commit_quorum()
    }

    pub(crate) fn send_heartbeats(&mut self, actions: &mut Actions) {
        let (now, commit, end) = (self.now, self.committed, self.log.written);
        let Role::Primary(leading) = &mut self.role else { return };
        leading.heartbeat_at = Until(now + self.timing.heartbeat_ms);
        leading.end_at_heartbeat = end;
        let round = leading.round;
        for member in self.configuration.members.iter().filter(|member| member.id != self.id) {
            self.send(member.id, Body::Heartbeat { commit, round }, actions);
        }
    }

    pub(crate) fn primary_tick(&mut self, actions: &mut Actions) {
        let (now, timeout) = (self.now, self.timing.election_timeout_ms);
        let Role::Primary(leading) = &self.role else { return };
        let heard = self.configuration.members.iter().zip(&leading.peers);
        let heard =
            heard.filter(|(member, peer)| member.votes && (member.id == self.id || now < peer.heard_at.0 + timeout));
        if heard.count() < self.configuration.election_quorum() {
            return self.become_follower(actions);
        }
        if let Some(hand_over) = &leading.hand_over
            && now >= hand_over.until.0
        {
            return self.end_hand_over(actions);
        }
        if now >= leading.heartbeat_at.0 {
            self.look_for_higher_priority(actions);
            self.send_heartbeats(actions);
        }
    }

    pub(crate) fn primary_log_moved(&mut self, actions: &mut Actions) {
        let Role::Primary(leading) = &self.role else { return };
        for index in 0..leading.peers.len() {
            self.serve(index, false, actions);
        }
        self.move_commit(actions);
        self.look_for_successor(actions);
    }

    /// A member answered a heartbeat or asked for bytes; a data member says what it has.
    pub(crate) fn acknowledged(
        &mut self,
        from: MemberId,
        configuration: Stamp,
        round: u64,
        log: Option<Fetched>,
        actions: &mut Actions,
    ) {
        let (now, start, timeout) = (self.now, self.log.start, self.timing.election_timeout_ms);
        let compared = log.as_ref().map(|fetched| self.compare(fetched.position));
        let Role::Primary(leading) = &mut self.role else { return };
        let Some(index) = leading.peers.iter().position(|peer| peer.id == from) else { return };
        let peer = &mut leading.peers[index];
        // A member that was silent, or vouches for nothing, may have lost its files: what it had does not count (`memory.rs`).
        let vouches = log.as_ref().is_none_or(|fetched| fetched.synced > 0);
        if !vouches || now >= peer.heard_at.0 + timeout {
            peer.progress = Progress::default();
        }
        peer.heard_at = Until(now);
        peer.round = peer.round.max(round);
        let stored_other = configuration.newer_than(peer.configuration);
        if stored_other {
            peer.configuration = configuration;
        }
        match (log, compared) {
            (Some(Fetched { position, .. }), _) if position.end < start => {
                self.send(from, Body::Reclaimed { start }, actions);
            }
            (Some(Fetched { position, synced, searching }), Some(Compared::Prefix)) => {
                // While it searches, the follower names earlier positions than its log's. Otherwise its log may have become
                // shorter by a power cut.
                let had = if searching { peer.progress } else { Progress::default() };
                peer.progress.written = had.written.max(position.end);
                peer.progress.synced = had.synced.max(synced.min(position.end));
                peer.waits_at = Some(position);
                self.serve(index, searching, actions);
            }
            (Some(Fetched { position: asked, .. }), Some(Compared::Diverged(at))) => {
                peer.waits_at = None;
                self.send(from, Body::Diverged { asked, at }, actions);
            }
            _ => {}
        }
        if stored_other {
            self.count_installed();
        }
        self.move_commit(actions);
        self.confirm_reads(actions);
        self.look_for_successor(actions);
    }

    /// Answers a follower that waits, if there are bytes or a commit point that it does not know, or if it is still
    /// `searching` for a position that both logs contain.
    fn serve(&mut self, index: usize, searching: bool, actions: &mut Actions) {
        let (written, commit) = (self.log.written, self.committed);
        let Role::Primary(leading) = &mut self.role else { return };
        let peer = &mut leading.peers[index];
        let Some(from) = peer.waits_at else { return };
        let to = written.min(from.end + self.timing.span_bytes_max);
        let shared = commit.min(from.end);
        if to == from.end && shared <= peer.told && !searching {
            return;
        }
        peer.told = peer.told.max(shared);
        if to > from.end {
            peer.waits_at = None;
        }
        let id = peer.id;
        self.send(id, Body::Span { from, to, commit }, actions);
    }

    /// Moves the commit point to the place that enough data members have, if this primary's term contains it.
    fn move_commit(&mut self, actions: &mut Actions) {
        let Role::Primary(leading) = &self.role else { return };
        // A configuration that is being stored was checked against the commit point as it is now.
        let settled = leading.installed && self.keeping.is_none();
        if !settled && !self.planted(Bug::ConfigurationBeforeQuorum) {
            return;
        }
        let mut ends = [0; Configuration::VOTERS_MAX];
        let mut count = 0;
        for (member, peer) in self.configuration.members.iter().zip(&leading.peers) {
            if member.counts_for_commit() || member.votes && self.planted(Bug::ArbiterCounted) {
                let lives = member.id == self.id || self.now < peer.heard_at.0 + self.timing.election_timeout_ms;
                ends[count] = if lives { self.durable(member.id, peer.progress) } else { 0 };
                if member.arbiter {
                    ends[count] = self.log.synced;
                }
                count += 1;
            }
        }
        let mut quorum = self.configuration.commit_quorum();
        if self.planted(Bug::ArbiterCounted) {
            quorum = self.configuration.election_quorum();
        }
        ends[..count].sort_unstable_by(|a, b| b.cmp(a));
        let commit = ends[quorum - 1];
        let own_term = leading.term_start.is_some_and(|start| commit > start);
        if commit <= self.committed || !(own_term || self.planted(Bug::CommitEarlierTerm)) {
            return;
        }
        self.committed = commit;
        actions.push(Action::Committed(commit));
        for index in 0..self.configuration.members.len() {
            self.serve(index, false, actions);
        }
        self.confirm_reads(actions);
    }

    /// The end of the part of a member's log that counts for the commit point.
    fn durable(&self, id: MemberId, progress: Progress) -> Lsn {
        let Progress { written, synced } = if id == self.id { self.own_progress() } else { progress };
        if self.journaled_majority { synced } else { written }
    }

    fn own_progress(&self) -> Progress {
        Progress { written: self.log.written, synced: self.log.synced }
    }

    /// How far a member's log has come, as this primary knows; for `w: N`, tags and flow control.
    pub fn progress(&self, id: MemberId) -> Option<Progress> {
        let Role::Primary(leading) = &self.role else { return None };
        if id == self.id {
            return Some(self.own_progress());
        }
        leading.peers.iter().find(|peer| peer.id == id).map(|peer| peer.progress)
    }

    /// Whether enough members of `configuration` have all that is committed.
    pub(crate) fn commits_in(&self, configuration: &Configuration) -> bool {
        let have = configuration.voters().filter(|member| member.counts_for_commit()).filter(|member| {
            self.progress(member.id).is_some_and(|progress| self.durable(member.id, progress) >= self.committed)
        });
        have.count() >= configuration.commit_quorum()
    }
}

/// Linearizable reads.
impl Agreement {
    pub(crate) fn asked_to_read(&mut self, token: u64, actions: &mut Actions) {
        let at = self.committed;
        let fast = self.planted(Bug::ReadWithoutQuorum);
        let Role::Primary(leading) = &mut self.role else {
            return actions.push(Action::ReadRefused { token });
        };
        if leading.reads.len() >= READS_MAX {
            return actions.push(Action::ReadRefused { token });
        }
        if fast {
            return actions.push(Action::ReadConfirmed { token, at });
        }
        // Answers to a round that began before this read cannot confirm the read.
        let next = leading.round + 1;
        let idle = leading.reads.is_empty();
        leading.reads.push((token, next));
        if idle {
            self.begin_round(actions);
        }
    }

    fn begin_round(&mut self, actions: &mut Actions) {
        let Role::Primary(leading) = &mut self.role else { return };
        leading.round += 1;
        self.send_heartbeats(actions);
        self.confirm_reads(actions);
    }

    fn confirm_reads(&mut self, actions: &mut Actions) {
        let (committed, id) = (self.committed, self.id);
        let quorum = self.configuration.election_quorum();
        let Role::Primary(leading) = &mut self.role else { return };
        if leading.reads.is_empty() {
            return;
        }
        let (round, confirmed) = (leading.round, leading.confirmed);
        let members = self.configuration.members.iter().zip(&leading.peers);
        let answered = members.filter(|(member, peer)| member.votes && (member.id == id || peer.round >= round));
        if confirmed < round && answered.count() >= quorum {
            leading.confirmed = round;
        }
        // Until a record of this term is committed, the commit point may lie below that of an earlier primary.
        if leading.term_start.is_none_or(|start| committed <= start) {
            return;
        }
        let confirmed = leading.confirmed;
        leading.reads.retain(|&(token, round)| {
            if round <= confirmed {
                actions.push(Action::ReadConfirmed { token, at: committed });
            }
            round > confirmed
        });
        if confirmed == round && !leading.reads.is_empty() {
            self.begin_round(actions);
        }
    }
}

/// Stepping down, and handing over.
impl Agreement {
    pub(crate) fn asked_to_step_down(
        &mut self,
        to: Option<MemberId>,
        wait_ms: u64,
        freeze_ms: u64,
        force: Force,
        actions: &mut Actions,
    ) {
        let (until, freeze) = (Until(self.now + wait_ms), Until(self.now + wait_ms + freeze_ms));
        let Role::Primary(leading) = &mut self.role else {
            return actions.push(Action::Refused(Refused::StepDown(Refusal::NotPrimary)));
        };
        leading.hand_over = Some(HandOver { to, until, freeze, forced: force == Force::Yes });
        actions.push(Action::PauseWrites);
        self.look_for_successor(actions);
        if wait_ms == 0 {
            self.end_hand_over(actions);
        }
    }

    /// Hands over as soon as a member that can become primary has the whole log.
    fn look_for_successor(&mut self, actions: &mut Actions) {
        let Role::Primary(leading) = &self.role else { return };
        let Some(hand_over) = &leading.hand_over else { return };
        let members = self.configuration.members.iter().zip(&leading.peers);
        let ready = members.filter(|(member, peer)| {
            let wanted = hand_over.to.is_none_or(|to| to == member.id) && member.id != self.id;
            // A member that is gone may have had the whole log of a primary that writes nothing.
            let lives = self.now < peer.heard_at.0 + self.timing.election_timeout_ms;
            wanted && lives && member.is_electable() && peer.progress.written == self.log.written
        });
        let Some((successor, _)) = ready.max_by_key(|(member, _)| member.priority) else { return };
        let successor = successor.id;
        self.frozen_until = hand_over.freeze.0;
        self.send(successor, Body::CampaignNow, actions);
        self.become_follower(actions);
    }

    /// Gives up the search for a successor.
    fn end_hand_over(&mut self, actions: &mut Actions) {
        let Role::Primary(leading) = &mut self.role else { return };
        let Some(hand_over) = leading.hand_over.take() else { return };
        if hand_over.forced {
            self.frozen_until = hand_over.freeze.0;
            return self.become_follower(actions);
        }
        actions.push(Action::ResumeWrites);
        actions.push(Action::Refused(Refused::StepDown(Refusal::NoSuccessor)));
    }

    /// Begins to hand over to a member of higher priority that keeps up.
    fn look_for_higher_priority(&mut self, actions: &mut Actions) {
        let Some(own) = self.me().map(|me| me.priority) else { return };
        let timeout = self.timing.election_timeout_ms;
        let Role::Primary(leading) = &mut self.role else { return };
        if leading.hand_over.is_some() || !leading.installed || self.now < leading.since.0 + timeout {
            return;
        }
        let members = self.configuration.members.iter().zip(&leading.peers);
        let better = members.filter(|(member, peer)| {
            let higher = member.is_electable() && member.priority > own;
            higher && peer.progress.written >= leading.end_at_heartbeat && self.now < peer.heard_at.0 + timeout
        });
        let Some((member, _)) = better.max_by_key(|(member, _)| member.priority) else { return };
        let to = Some(member.id);
        leading.since = Until(self.now);
        let until = Until(self.now + timeout);
        leading.hand_over = Some(HandOver { to, until, freeze: Until(0), forced: false });
        actions.push(Action::PauseWrites);
        self.look_for_successor(actions);
    }
}
