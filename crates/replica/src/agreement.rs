//! One member's part in the agreement: its state, and the way of each event to the code that handles it.

use crate::position::Compared;
use crate::random::Random;
use crate::state::{Actions, Candidacy, Fetched, Following, Log, Role, Timing, Until};
use crate::{
    Action, Body, Bug, Configuration, Event, Fatal, Lsn, MemberConfiguration, MemberId, Memory, Message, Position,
    Refusal, Refused, Stamp, Term, Terms, Vote,
};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The state that a member finds on disk when it starts, and its settings.
#[derive(Clone, Debug)]
pub struct Start {
    /// The member's `_id`.
    pub id: MemberId,
    /// The seed of election timeouts.
    pub seed: u64,
    /// Periods and sizes.
    pub timing: Timing,
    /// Whether the commit point demands synced records (`writeConcernMajorityJournalDefault`), or written ones.
    pub journaled_majority: bool,
    /// The stored vote.
    pub vote: Vote,
    /// The stored configuration; without members before the set is initiated.
    pub configuration: Configuration,
    /// The terms of the log.
    pub terms: Terms,
    /// Where the log begins.
    pub log_start: Lsn,
    /// The end of the log, all of which is synced.
    pub log_end: Lsn,
    /// A place up to which the log is known to be committed.
    pub committed: Lsn,
    /// Whether the member's files were lost since it became a member.
    pub memory: Memory,
}

/// The part that a member plays in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Follows a primary, or waits for one.
    Secondary,
    /// Asks for votes.
    Candidate,
    /// Takes writes, as soon as [`Agreement::writable_term`] says so.
    Primary,
    /// Votes, and has no log.
    Arbiter,
    /// Is no member of the configuration.
    Removed,
    /// Met a [`Fatal`] error.
    Stopped,
}

/// One member's part in the agreement of its set.
#[derive(Clone, Debug)]
pub struct Agreement {
    pub(crate) id: MemberId,
    pub(crate) timing: Timing,
    pub(crate) journaled_majority: bool,
    pub(crate) random: Random,
    pub(crate) now: u64,
    /// The configuration that is stored, which is the one in use.
    pub(crate) configuration: Arc<Configuration>,
    /// The configuration that is being stored.
    pub(crate) keeping: Option<Arc<Configuration>>,
    pub(crate) vote: Vote,
    /// The last vote that is stored.
    pub(crate) saved: Vote,
    pub(crate) log: Log,
    pub(crate) committed: Lsn,
    pub(crate) memory: Memory,
    /// The position to which the log is being cut.
    pub(crate) truncating: Option<Position>,
    pub(crate) frozen_until: u64,
    pub(crate) stopped: bool,
    pub(crate) role: Role,
    #[cfg(debug_assertions)]
    planted: Option<Bug>,
}

/// Hashes the state that decides how events are handled; clocks and the generator are left out.
impl Hash for Agreement {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.configuration, &self.keeping, self.vote, self.saved, &self.log).hash(state);
        (self.committed, self.memory, self.truncating, self.stopped, &self.role).hash(state);
    }
}

impl Agreement {
    /// A member that starts at `now`, in milliseconds of its own clock.
    pub fn new(start: Start, now: u64) -> Self {
        let mut random = Random(start.seed);
        let following = Following::new(now, &start.timing, &mut random);
        // A crash can lose a vote that was being stored, and keep records that were synced meanwhile. Their primary may
        // count this member's acknowledgement, so no primary of an earlier term may lead it any more.
        let logged = start.terms.iter().next_back().map_or(0, |(term, _)| term);
        let vote = if logged > start.vote.term { Vote { term: logged, candidate: None } } else { start.vote };
        let mut agreement = Self {
            id: start.id,
            timing: start.timing,
            journaled_majority: start.journaled_majority,
            random,
            now,
            configuration: Arc::new(start.configuration),
            keeping: None,
            vote,
            saved: start.vote,
            log: Log { start: start.log_start, written: start.log_end, synced: start.log_end, terms: start.terms },
            committed: start.committed,
            memory: start.memory,
            truncating: None,
            frozen_until: 0,
            stopped: false,
            role: Role::Follower(following),
            #[cfg(debug_assertions)]
            planted: None,
        };
        // The only voter of a set waits for no other primary.
        if let Role::Follower(following) = &mut agreement.role
            && agreement.configuration.election_quorum() == 1
        {
            following.campaign_at = Until(now);
        }
        agreement
    }

    /// Plants a bug.
    #[cfg(debug_assertions)]
    pub fn plant(&mut self, bug: Bug) {
        self.planted = Some(bug);
    }

    /// Handles one event, and appends to `actions` what the member has to do, in this order.
    pub fn step(&mut self, now: u64, event: Event, actions: &mut Vec<Action>) {
        self.now = self.now.max(now);
        if self.stopped {
            if let Event::Read { token } = event {
                actions.push(Action::ReadRefused { token });
            }
            return;
        }
        match event {
            Event::Tick => self.tick(actions),
            Event::Received(message) => self.received(message, actions),
            Event::Reset(member) => self.connection_broke(member),
            Event::LogMoved { written, synced } => self.log_moved(written, synced, actions),
            Event::TermBegan { term, at } => self.term_began(term, at),
            Event::Reclaimed { start } => self.log.start = start,
            Event::VoteSaved(vote) => self.vote_saved(vote, actions),
            Event::ConfigurationKept(stamp) => self.configuration_kept(stamp, actions),
            Event::Truncated { end } => self.truncated(end, actions),
            Event::StepDown { to, wait_ms, freeze_ms, force } => {
                self.asked_to_step_down(to, wait_ms, freeze_ms, force, actions);
            }
            Event::Freeze { ms } => self.frozen_until = self.now + ms,
            Event::Campaign if self.may_campaign() => self.campaign(actions),
            Event::Campaign => actions.push(Action::Refused(Refused::Campaign(Refusal::NotElectable))),
            Event::Recalled(recalled) => self.recalled(recalled, actions),
            Event::Told { member, configuration } => self.teach(member, configuration, actions),
            Event::Read { token } => self.asked_to_read(token, actions),
            Event::Propose { configuration, force } => self.proposed(configuration, force, actions),
        }
    }

    fn received(&mut self, message: Message, actions: &mut Actions) {
        let Message { from, term, configuration, body } = message;
        if let Body::Configuration(configuration) = body {
            return self.learn(configuration, actions);
        }
        self.teach(from, configuration, actions);
        // A pre-vote changes nothing at the voter, not even the term.
        if term > self.vote.term && !matches!(body, Body::PreVote { .. }) {
            self.adopt(term, actions);
        }
        let current = term == self.vote.term;
        let candidacy = |position| Candidacy { from, term, configuration, position };
        match body {
            Body::PreVote { position } => self.asked_for_pre_vote(candidacy(position), actions),
            Body::PreVoteAnswer { granted } => self.pre_vote_answered(from, granted, actions),
            Body::RequestVote { position } => self.asked_for_vote(candidacy(position), actions),
            Body::VoteAnswer { granted } if current => self.vote_answered(from, granted, actions),
            Body::Heartbeat { .. } | Body::Span { .. } | Body::Diverged { .. } | Body::Reclaimed { .. } => {
                if current {
                    self.primary_says(from, &body, actions);
                } else {
                    // The sender learns from the answer's term that it is primary no longer.
                    self.send(from, Body::Heard { round: 0 }, actions);
                }
            }
            Body::Fetch { position, synced, round, searching } if current => {
                let fetched = Fetched { position, synced, searching };
                self.acknowledged(from, configuration, round, Some(fetched), actions);
            }
            Body::Heard { round } if current => self.acknowledged(from, configuration, round, None, actions),
            Body::CampaignNow if current && self.may_campaign() => self.campaign(actions),
            _ => {}
        }
    }

    /// Takes over a higher term, as a follower of no primary.
    fn adopt(&mut self, term: Term, actions: &mut Actions) {
        self.vote = Vote { term, candidate: None };
        actions.push(Action::SaveVote(self.vote));
        self.become_follower(actions);
    }

    pub(crate) fn become_follower(&mut self, actions: &mut Actions) {
        let following = Following::new(self.now, &self.timing, &mut self.random);
        let before = std::mem::replace(&mut self.role, Role::Follower(following));
        if let Role::Primary(leading) = before {
            leading.end(actions);
        }
    }

    fn log_moved(&mut self, written: Lsn, synced: Lsn, actions: &mut Actions) {
        if written == self.log.written && synced == self.log.synced {
            return;
        }
        (self.log.written, self.log.synced) = (written, synced);
        self.look_at_floor(actions);
        match &self.role {
            Role::Primary(_) => self.primary_log_moved(actions),
            Role::Follower(_) => self.fetch(actions),
            Role::Candidate(_) => {}
        }
    }

    fn term_began(&mut self, term: Term, at: Lsn) {
        self.log.terms.begin(term, at);
        if let Role::Primary(leading) = &mut self.role
            && term == leading.term
        {
            leading.term_start = Some(at);
        }
    }

    pub(crate) fn stop(&mut self, fatal: Fatal, actions: &mut Actions) {
        self.become_follower(actions);
        self.stopped = true;
        actions.push(Action::Fatal(fatal));
    }

    pub(crate) fn send(&self, to: MemberId, body: Body, actions: &mut Actions) {
        let message = Message { from: self.id, term: self.vote.term, configuration: self.configuration.stamp(), body };
        actions.push(Action::Send { to, message });
    }

    /// Sends to all voters but this member.
    pub(crate) fn ask_voters(&self, body: &Body, actions: &mut Actions) {
        for voter in self.configuration.voters().filter(|voter| voter.id != self.id) {
            self.send(voter.id, body.clone(), actions);
        }
    }

    pub(crate) fn index_of(&self, member: MemberId) -> Option<usize> {
        self.configuration.members.iter().position(|known| known.id == member)
    }

    pub(crate) fn me(&self) -> Option<&MemberConfiguration> {
        self.configuration.member(self.id)
    }

    pub(crate) fn is_arbiter(&self) -> bool {
        self.me().is_some_and(|me| me.arbiter)
    }

    pub(crate) fn compare(&self, position: Position) -> Compared {
        self.log.terms.compare(position, self.log.written)
    }

    /// Whether the bug is planted; always false without debug assertions.
    #[inline]
    pub(crate) fn planted(&self, bug: Bug) -> bool {
        #[cfg(debug_assertions)]
        return self.planted == Some(bug);
        #[cfg(not(debug_assertions))]
        {
            let _ = bug;
            false
        }
    }
}

/// Questions of the member's other parts.
impl Agreement {
    /// This member's `_id`.
    pub fn id(&self) -> MemberId {
        self.id
    }

    /// The term in which the caller may append to the log now; none unless this member is a primary that has begun its
    /// term and is not about to step down.
    #[inline]
    pub fn writable_term(&self) -> Option<Term> {
        match &self.role {
            Role::Primary(leading) if leading.term_start.is_some() && leading.hand_over.is_none() => {
                Some(self.vote.term)
            }
            _ => None,
        }
    }

    /// The part that this member plays in the set.
    pub fn state(&self) -> State {
        match &self.role {
            _ if self.stopped => State::Stopped,
            Role::Primary(_) => State::Primary,
            _ if self.me().is_none() => State::Removed,
            Role::Candidate(_) => State::Candidate,
            Role::Follower(_) if self.is_arbiter() => State::Arbiter,
            Role::Follower(_) => State::Secondary,
        }
    }

    /// The current primary, as far as this member knows.
    pub fn primary(&self) -> Option<MemberId> {
        match &self.role {
            Role::Primary(_) => Some(self.id),
            Role::Follower(following) if !following.lost => following.primary,
            _ => None,
        }
    }

    /// The highest term that this member knows.
    pub fn term(&self) -> Term {
        self.vote.term
    }

    /// The end of this member's log, and the term of its last record.
    pub fn position(&self) -> Position {
        Position { term: self.log.terms.term_at(self.log.written), end: self.log.written }
    }

    /// The commit point: what lies before it is never rolled back.
    #[inline]
    pub fn committed(&self) -> Lsn {
        self.committed
    }

    /// The place up to which a read with the concern `majority` sees the log.
    pub fn majority_read_at(&self) -> Lsn {
        if self.planted(Bug::MajorityReadAtVisible) {
            return self.log.written;
        }
        self.committed
    }

    /// The configuration in use.
    pub fn configuration(&self) -> &Arc<Configuration> {
        &self.configuration
    }

    /// The stamp of the configuration that is being stored.
    pub fn keeping(&self) -> Option<Stamp> {
        self.keeping.as_ref().map(|keeping| keeping.stamp())
    }

    /// The terms of this member's log.
    pub fn terms(&self) -> &Terms {
        &self.log.terms
    }

    /// When the next [`Event::Tick`] is due, in milliseconds of this member's clock.
    pub fn wake_at(&self) -> u64 {
        match &self.role {
            // Nothing is due any more, and a moment that has passed would be due at once.
            _ if self.stopped => self.now + self.timing.election_timeout_ms,
            Role::Follower(following) => following.campaign_at.0.max(self.frozen_until),
            Role::Candidate(campaign) => campaign.until.0,
            Role::Primary(leading) => leading.wake_at(),
        }
    }

    /// The stamp of the configuration in use.
    pub(crate) fn stamp(&self) -> Stamp {
        self.configuration.stamp()
    }
}
