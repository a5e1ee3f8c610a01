//! A follower: it pulls the log, finds where its own parts from the primary's, and follows the commit point.

use crate::state::{Actions, Role, Until};
use crate::{Action, Agreement, Body, Bug, Fatal, Lsn, MemberId, Position};

impl Agreement {
    pub(crate) fn primary_says(&mut self, primary: MemberId, body: &Body, actions: &mut Actions) {
        if !self.follow(primary, actions) {
            return;
        }
        match *body {
            Body::Heartbeat { commit, round } => self.heartbeat(commit, round, actions),
            Body::Span { from, to, commit } => self.span(from, to, commit, actions),
            Body::Diverged { asked, at } => self.diverged(asked, at, actions),
            Body::Reclaimed { start } => actions.push(Action::Resync { start }),
            _ => {}
        }
    }

    /// Notes that the primary of this term was heard. False if there is nothing to follow.
    fn follow(&mut self, primary: MemberId, actions: &mut Actions) -> bool {
        match &self.role {
            Role::Primary(_) => {
                self.stop(Fatal::TwoPrimaries { term: self.vote.term, other: primary }, actions);
                return false;
            }
            Role::Candidate(_) => self.become_follower(actions),
            Role::Follower(_) => {}
        }
        let wait = self.timing.election_timeout(&mut self.random);
        let Role::Follower(following) = &mut self.role else { return false };
        following.primary = Some(primary);
        following.heard_at = Until(self.now);
        following.lost = false;
        following.pre_votes = 0;
        following.campaign_at = Until(self.now + wait);
        true
    }

    fn heartbeat(&mut self, commit: Lsn, round: u64, actions: &mut Actions) {
        if let Role::Follower(following) = &mut self.role {
            following.round = following.round.max(round);
        }
        self.follow_commit(commit, actions);
        self.fetch(actions);
    }

    /// Asks for the bytes that come after this log. The same message acknowledges this log, and answers heartbeats.
    pub(crate) fn fetch(&self, actions: &mut Actions) {
        let Role::Follower(following) = &self.role else { return };
        let Some(primary) = following.primary else { return };
        // An answer that confirms a read, and a synced log, count as this member's word.
        let round = if self.has_lost_memory() { 0 } else { following.round };
        if self.is_arbiter() || self.truncating.is_some() {
            return self.send(primary, Body::Heard { round }, actions);
        }
        let position = following.probe.unwrap_or_else(|| self.position());
        let synced = if self.planted(Bug::AckBeforeSync) { position.end } else { self.log.synced.min(position.end) };
        let synced = if self.has_lost_memory() { 0 } else { synced };
        let searching = !following.matched || following.probe.is_some();
        self.send(primary, Body::Fetch { position, synced, round, searching }, actions);
    }

    /// Takes over the primary's commit point, as far as this log equals the primary's.
    fn follow_commit(&mut self, commit: Lsn, actions: &mut Actions) {
        let Role::Follower(following) = &self.role else { return };
        let equal = if following.matched { self.log.written } else { 0 };
        let commit = if self.planted(Bug::CommitBeyondLog) { commit.min(self.log.written) } else { commit.min(equal) };
        if commit > self.committed && self.truncating.is_none() && !self.is_arbiter() {
            self.committed = commit;
            actions.push(Action::Committed(commit));
        }
    }

    fn span(&mut self, asked: Position, to: Lsn, commit: Lsn, actions: &mut Actions) {
        let position = self.position();
        let Role::Follower(following) = &mut self.role else { return };
        if asked != following.probe.unwrap_or(position) || self.truncating.is_some() {
            return;
        }
        if following.probe.take().is_some() {
            return self.roll_back(asked, actions);
        }
        following.matched = true;
        if to > asked.end {
            actions.push(Action::Append { from: asked.end, to });
        }
        self.follow_commit(commit, actions);
    }

    fn diverged(&mut self, asked: Position, at: Position, actions: &mut Actions) {
        let position = self.position();
        let Role::Follower(following) = &mut self.role else { return };
        if asked != following.probe.unwrap_or(position) || self.truncating.is_some() {
            return;
        }
        let mine = self.log.terms.last_at_most(at.term, asked.end);
        if mine.term == at.term {
            // Both logs contain the term, so they are equal up to the lower of its two ends.
            following.probe = None;
            self.roll_back(if mine.end > at.end { at } else { mine }, actions);
        } else {
            following.probe = Some(mine);
            self.fetch(actions);
        }
    }

    /// Cuts the log to a position that it shares with the primary's.
    fn roll_back(&mut self, to: Position, actions: &mut Actions) {
        if to.end < self.committed {
            return self.stop(Fatal::DivergedBelowCommit { at: to, committed: self.committed }, actions);
        }
        self.truncating = Some(to);
        actions.push(Action::Truncate(to));
    }

    pub(crate) fn truncated(&mut self, end: Lsn, actions: &mut Actions) {
        self.truncating = None;
        self.log.terms.truncate(end);
        (self.log.written, self.log.synced) = (end, end);
        self.fetch(actions);
    }
}
