//! Events that happen to a member, and actions that the agreement asks for.

use crate::configuration::Invalid;
use crate::{Configuration, Lsn, MemberId, Message, Position, Recalled, Stamp, Term};
use std::sync::Arc;

/// A member's vote, which must survive a crash once it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Vote {
    /// The highest term that the member knows.
    pub term: Term,
    /// The candidate that has the member's vote in this term.
    pub candidate: Option<MemberId>,
}

/// Whether a change may leave out the checks that keep the set safe or available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// All checks.
    No,
    /// The administrator takes the consequences.
    Yes,
}

/// Something that happens to a member.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time has passed; see [`crate::Agreement::wake_at`].
    Tick,
    /// A message arrived.
    Received(Message),
    /// The connection to a member broke, or was refused.
    Reset(MemberId),
    /// The member's log has grown.
    LogMoved {
        /// The end of the part that the kernel has.
        written: Lsn,
        /// The end of the part that survives a power cut.
        synced: Lsn,
    },
    /// A term's first record was written, by this primary or as part of a span.
    TermBegan {
        /// The term.
        term: Term,
        /// Where the record begins.
        at: Lsn,
    },
    /// The log's beginning was reclaimed.
    Reclaimed {
        /// Where the log begins now.
        start: Lsn,
    },
    /// A vote is stored. Votes are stored in the order in which they were asked for.
    VoteSaved(Vote),
    /// A configuration is stored.
    ConfigurationKept(Stamp),
    /// The log was cut, and will stay so after a crash.
    Truncated {
        /// The log's end, which is synced.
        end: Lsn,
    },
    /// An administrator, or the end of the process, asks the primary to step down.
    StepDown {
        /// The only successor that is wanted.
        to: Option<MemberId>,
        /// How long to wait for a successor that has the whole log, in milliseconds.
        wait_ms: u64,
        /// How long this member then does not campaign, in milliseconds.
        freeze_ms: u64,
        /// Whether to step down without a successor too.
        force: Force,
    },
    /// An administrator forbids this member to campaign for a time; 0 ends an earlier freeze.
    Freeze {
        /// Milliseconds from now.
        ms: u64,
    },
    /// An administrator asks this member to campaign at once.
    Campaign,
    /// A member has told which configuration it has stored.
    Told {
        /// The member.
        member: MemberId,
        /// Its configuration.
        configuration: Stamp,
    },
    /// A linearizable read asks for a place.
    Read {
        /// The caller's name for the read.
        token: u64,
    },
    /// Enough other voters have told what this member, whose files were lost, must know; see [`crate::Memory`].
    Recalled(Recalled),
    /// An administrator proposes a configuration. Term and version are set by the agreement.
    Propose {
        /// The configuration.
        configuration: Configuration,
        /// Whether the checks are left out, on a secondary too.
        force: Force,
    },
}

/// Something that the agreement asks its member to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message. It may be lost, come late, twice or out of order.
    Send {
        /// The receiver.
        to: MemberId,
        /// The message.
        message: Message,
    },
    /// Store the vote, then report [`Event::VoteSaved`].
    SaveVote(Vote),
    /// Store the configuration, then report [`Event::ConfigurationKept`].
    Keep(Arc<Configuration>),
    /// This member is primary. Write the term's record, report [`Event::TermBegan`], then accept writes.
    BecomePrimary {
        /// The term.
        term: Term,
    },
    /// This member is no longer primary.
    StepDown {
        /// The term that it was primary in.
        term: Term,
    },
    /// Hold back new writes: a successor catches up. Ends with `ResumeWrites` or `StepDown`.
    PauseWrites,
    /// Accept writes again: no successor was found.
    ResumeWrites,
    /// Append the bytes that came with the message, if the log still ends at `from`.
    Append {
        /// Where the bytes begin.
        from: Lsn,
        /// Where they end.
        to: Lsn,
    },
    /// Roll back: keep rollback files and a durable intent, cut the log, then report [`Event::Truncated`].
    Truncate(Position),
    /// The primary's log no longer reaches back to this one's end: this member needs an initial sync.
    Resync {
        /// Where the primary's log begins.
        start: Lsn,
    },
    /// This member, whose files were lost, has again all that it must remember. Store that its memory is kept.
    Remembered,
    /// The log is committed up to this place.
    Committed(Lsn),
    /// A linearizable read may see all up to this place.
    ReadConfirmed {
        /// The caller's name for the read.
        token: u64,
        /// The place.
        at: Lsn,
    },
    /// A linearizable read must be asked again, of the primary.
    ReadRefused {
        /// The caller's name for the read.
        token: u64,
    },
    /// A request of the administrator was refused.
    Refused(Refused),
    /// The member must stop. The agreement does nothing more.
    Fatal(Fatal),
}

/// Which request was refused, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// [`Event::StepDown`].
    StepDown(Refusal),
    /// [`Event::Campaign`].
    Campaign(Refusal),
    /// [`Event::Propose`].
    Propose(Refusal),
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// This member is not primary.
    NotPrimary,
    /// No member that can become primary has the whole log.
    NoSuccessor,
    /// This member cannot become primary now.
    NotElectable,
    /// A configuration is still being stored, or not yet by a majority.
    ConfigurationPending,
    /// Nothing is committed in the primary's term yet.
    NothingCommitted,
    /// More than one voter would change, or a voter would turn into an arbiter or back.
    SeveralVoters,
    /// Too few of the new voters have all that is committed.
    NotCaughtUp,
    /// The primary could not stay primary.
    PrimaryLeaves,
    /// The configuration contradicts itself.
    Invalid(Invalid),
}

/// Why a member must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fatal {
    /// The primary's log parts from this one below the commit point: data was lost, or the sets are different ones.
    DivergedBelowCommit {
        /// Where the logs part.
        at: Position,
        /// This member's commit point.
        committed: Lsn,
    },
    /// Two members are primary in one term: two sets share a name, or a vote file was lost.
    TwoPrimaries {
        /// The term.
        term: Term,
        /// The other primary.
        other: MemberId,
    },
}
