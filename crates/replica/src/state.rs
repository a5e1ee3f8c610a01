//! The parts of a member's state, and the roles that it changes between.

use crate::random::Random;
use crate::{Action, Lsn, MemberId, Position, Progress, Stamp, Term, Terms};
use std::hash::{Hash, Hasher};

/// Periods of the protocol, in milliseconds, and sizes.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How often the primary sends heartbeats.
    pub heartbeat_ms: u64,
    /// How long a follower waits for the primary, and the primary for a majority (`electionTimeoutMillis`).
    pub election_timeout_ms: u64,
    /// Maximum number of bytes of one span.
    pub span_bytes_max: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self { heartbeat_ms: 200, election_timeout_ms: 1000, span_bytes_max: 16 << 20 }
    }
}

/// A campaign for votes.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Campaign {
    /// The members that voted for this one, by their index in the configuration.
    pub(crate) granted: u64,
    /// When the campaign ends without a result.
    pub(crate) until: Until,
}

/// A moment on the member's own clock, in milliseconds; not part of the state that an exhaustive search compares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until(pub(crate) u64);

impl Hash for Until {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[derive(Clone, Debug, Hash)]
pub(crate) enum Role {
    Follower(Following),
    Candidate(Campaign),
    Primary(Leading),
}

/// The extent of the member's log.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Log {
    pub(crate) start: Lsn,
    pub(crate) written: Lsn,
    pub(crate) synced: Lsn,
    pub(crate) terms: Terms,
}

#[derive(Clone, Debug, Hash)]
pub(crate) struct Following {
    pub(crate) primary: Option<MemberId>,
    pub(crate) heard_at: Until,
    /// Whether the connection to the primary broke since it was last heard.
    pub(crate) lost: bool,
    /// Whether this log is a prefix of the primary's.
    pub(crate) matched: bool,
    /// An earlier position of this log, while the place is searched where the logs part.
    pub(crate) probe: Option<Position>,
    pub(crate) round: u64,
    /// The members that would vote for this one, by their index in the configuration; 0 unless it asks.
    pub(crate) pre_votes: u64,
    pub(crate) campaign_at: Until,
}

impl Timing {
    /// An election timeout with up to 15 % more, so that members do not campaign together.
    pub(crate) fn election_timeout(&self, random: &mut Random) -> u64 {
        self.election_timeout_ms + random.below(self.election_timeout_ms * 15 / 100 + 1)
    }
}

impl Timing {
    /// How long a candidate waits for votes: some messages and writes to disks.
    pub(crate) fn campaign(&self, random: &mut Random) -> u64 {
        let least = (self.election_timeout_ms / 4).max(1);
        least + random.below(least)
    }

    /// How long a member waits before it asks again.
    pub(crate) fn retry(&self, random: &mut Random) -> u64 {
        let least = (self.election_timeout_ms / 20).max(1);
        least + random.below(least)
    }
}

impl Following {
    pub(crate) fn new(now: u64, timing: &Timing, random: &mut Random) -> Self {
        Self {
            primary: None,
            heard_at: Until(now),
            lost: false,
            matched: false,
            probe: None,
            round: 0,
            pre_votes: 0,
            campaign_at: Until(now + timing.election_timeout(random)),
        }
    }
}

#[derive(Clone, Debug, Hash)]
pub(crate) struct Leading {
    pub(crate) term: Term,
    /// One for each member of the configuration, in its order.
    pub(crate) peers: Vec<Peer>,
    /// Where this term's first record begins, as soon as it is written.
    pub(crate) term_start: Option<Lsn>,
    /// Whether a majority of the voters stores the configuration in use.
    pub(crate) installed: bool,
    /// The heartbeat round that was begun last.
    pub(crate) round: u64,
    /// The highest round that a majority has answered.
    pub(crate) confirmed: u64,
    /// Reads that wait, with the round that confirms each.
    pub(crate) reads: Vec<(u64, u64)>,
    pub(crate) hand_over: Option<HandOver>,
    pub(crate) heartbeat_at: Until,
    /// When the term began.
    pub(crate) since: Until,
    /// The log's end at the last heartbeat.
    pub(crate) end_at_heartbeat: Lsn,
}

#[derive(Clone, Debug, Hash)]
pub(crate) struct Peer {
    pub(crate) id: MemberId,
    pub(crate) progress: Progress,
    pub(crate) heard_at: Until,
    pub(crate) round: u64,
    pub(crate) configuration: Stamp,
    /// The position from which the follower waits for bytes.
    pub(crate) waits_at: Option<Position>,
    /// The commit point that the follower was told last.
    pub(crate) told: Lsn,
}

/// The part of [`crate::Body::Fetch`] that describes the follower's log.
pub(crate) struct Fetched {
    pub(crate) position: Position,
    pub(crate) synced: Lsn,
    pub(crate) searching: bool,
}

/// A member's request for a vote, or for a promise of one.
#[derive(Clone, Copy)]
pub(crate) struct Candidacy {
    pub(crate) from: MemberId,
    pub(crate) term: Term,
    pub(crate) configuration: Stamp,
    pub(crate) position: Position,
}

/// A primary that looks for its successor.
#[derive(Clone, Debug, Hash)]
pub(crate) struct HandOver {
    pub(crate) to: Option<MemberId>,
    pub(crate) until: Until,
    pub(crate) freeze: Until,
    pub(crate) forced: bool,
}

impl Leading {
    pub(crate) fn wake_at(&self) -> u64 {
        self.hand_over.as_ref().map_or(self.heartbeat_at.0, |hand_over| hand_over.until.0.min(self.heartbeat_at.0))
    }

    /// Tells the caller that this member is no longer primary.
    pub(crate) fn end(self, actions: &mut Actions) {
        actions.push(Action::StepDown { term: self.term });
        actions.extend(self.reads.iter().map(|&(token, _)| Action::ReadRefused { token }));
    }
}

/// Where actions are collected; the caller keeps it, so that a step allocates nothing.
pub(crate) type Actions = Vec<Action>;
