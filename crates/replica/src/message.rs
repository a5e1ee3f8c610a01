//! The messages between members.

use crate::{Configuration, Lsn, MemberId, Position, Stamp, Term};
use std::sync::Arc;

/// A message between members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// The sender.
    pub from: MemberId,
    /// The sender's term.
    pub term: Term,
    /// The configuration that the sender has stored.
    pub configuration: Stamp,
    /// The message itself.
    pub body: Body,
}

/// How far a member's log has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Progress {
    /// The end of the log that the member has written, as far as it is the primary's log too.
    pub written: Lsn,
    /// The end of the part of it that survives a power cut.
    pub synced: Lsn,
}

/// The contents of a [`Message`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    /// Would the receiver vote for the sender in the term after the sender's?
    PreVote {
        /// The sender's log.
        position: Position,
    },
    /// The answer to a pre-vote.
    PreVoteAnswer {
        /// Whether the member that was asked would vote so.
        granted: bool,
    },
    /// A candidate asks for the vote in its term.
    RequestVote {
        /// The candidate's log.
        position: Position,
    },
    /// The answer to a request for a vote, sent when the vote is stored.
    VoteAnswer {
        /// Whether the candidate has the vote.
        granted: bool,
    },
    /// The primary is there.
    Heartbeat {
        /// The commit point.
        commit: Lsn,
        /// The number of the heartbeat round, for linearizable reads.
        round: u64,
    },
    /// A follower asks for the bytes that come after its log, and acknowledges its log.
    Fetch {
        /// The follower's log, or an earlier position of it while it searches for the place where the logs part.
        position: Position,
        /// The end of the synced part, at most the position.
        synced: Lsn,
        /// The last heartbeat round that the follower has seen.
        round: u64,
        /// Whether the follower does not know yet that its log is a prefix of the primary's, and wants an answer even
        /// if there is nothing new.
        searching: bool,
    },
    /// A member without a log, or whose log is being cut, answers a heartbeat. Also sent to a primary of an older term.
    Heard {
        /// As in `Fetch`.
        round: u64,
    },
    /// Bytes of the log, which travel beside the message.
    Span {
        /// The position that the follower asked for.
        from: Position,
        /// The end of the bytes; `from.end` if the message only carries the commit point.
        to: Lsn,
        /// The commit point.
        commit: Lsn,
    },
    /// The position that the follower asked for is not in the primary's log.
    Diverged {
        /// The position that the follower asked for.
        asked: Position,
        /// The highest position of the primary's log that the follower may share.
        at: Position,
    },
    /// The primary's log no longer reaches back to the position that the follower asked for.
    Reclaimed {
        /// Where the primary's log begins.
        start: Lsn,
    },
    /// The primary asks the receiver to become its successor at once.
    CampaignNow,
    /// The sender's configuration, which is newer than the receiver's.
    Configuration(Arc<Configuration>),
}
