//! Bugs that are planted on purpose, to see that the simulator and the exhaustive search find them.
//!
//! Compiled in only with debug assertions, so no release build has them. A bug belongs to one [`crate::Agreement`] and
//! not to the process, because one test walks through all bugs.

/// A promise that can be broken on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bug {
    /// A follower reports bytes as synced when they are only written.
    AckBeforeSync,
    /// A vote is sent before it is stored.
    UnsyncedVote,
    /// A member votes for two candidates in a term.
    DoubleVote,
    /// A member whose files were lost votes and acknowledges as if it remembered.
    VoteWithoutMemory,
    /// A member votes for a log that is shorter than its own.
    VoteForShorterLog,
    /// The primary commits records that enough members have, although they are of an earlier term.
    CommitEarlierTerm,
    /// The commit point counts arbiters.
    ArbiterCounted,
    /// A follower takes over a commit point that lies beyond its part of the primary's log.
    CommitBeyondLog,
    /// A majority read sees all that is written.
    MajorityReadAtVisible,
    /// A linearizable read is confirmed without asking the members.
    ReadWithoutQuorum,
    /// A configuration may change two voters at once.
    TwoVotersAtOnce,
    /// The primary uses a configuration before a majority stores it.
    ConfigurationBeforeQuorum,
    /// The caller truncates without a durable intent. The simulator's disk plants it.
    TruncationWithoutIntent,
    /// The caller lets a former primary write on under the next term. The simulator's gate plants it.
    AppendByOldPrimary,
}

impl Bug {
    /// All bugs.
    pub const ALL: [Self; 14] = [
        Self::AckBeforeSync,
        Self::UnsyncedVote,
        Self::DoubleVote,
        Self::VoteWithoutMemory,
        Self::VoteForShorterLog,
        Self::CommitEarlierTerm,
        Self::ArbiterCounted,
        Self::CommitBeyondLog,
        Self::MajorityReadAtVisible,
        Self::ReadWithoutQuorum,
        Self::TwoVotersAtOnce,
        Self::ConfigurationBeforeQuorum,
        Self::TruncationWithoutIntent,
        Self::AppendByOldPrimary,
    ];
}
