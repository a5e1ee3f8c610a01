//! The set's configuration: its members, and how many of them a decision needs.

use crate::{Lsn, Term};

/// A member's `_id` in the configuration; never used again for another member or for a wiped one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u32);

/// Which of two configurations is newer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The term of the primary that proposed or took over the configuration; 0 after a forced change.
    pub term: Term,
    /// The configuration's `version`.
    pub version: u64,
}

impl Stamp {
    /// Whether this configuration replaces `other`. The term decides before the version; where one of the two was
    /// forced, only versions are compared, so that a forced one wins by its far higher version.
    pub fn newer_than(self, other: Self) -> bool {
        if self.term == 0 || other.term == 0 {
            return self.version > other.version;
        }
        (self.term, self.version) > (other.term, other.version)
    }
}

/// A member as the configuration describes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberConfiguration {
    /// The member's `_id`.
    pub id: MemberId,
    /// Whether the member votes.
    pub votes: bool,
    /// The priority in thousandths; 0 never becomes primary.
    pub priority: u32,
    /// An arbiter votes and has no log.
    pub arbiter: bool,
    /// Clients do not see a hidden member.
    pub hidden: bool,
    /// How long the member waits before it applies a record, in seconds.
    pub delay_secs: u64,
    /// Tags for read preferences and write concerns.
    pub tags: Vec<(String, String)>,
}

impl MemberConfiguration {
    /// A voting data member of priority 1.
    pub fn data(id: MemberId) -> Self {
        Self { id, votes: true, priority: 1000, arbiter: false, hidden: false, delay_secs: 0, tags: Vec::new() }
    }

    /// An arbiter.
    pub fn arbiter(id: MemberId) -> Self {
        Self { priority: 0, arbiter: true, ..Self::data(id) }
    }

    /// Whether the member can become primary.
    pub fn is_electable(&self) -> bool {
        self.votes && self.priority > 0 && !self.arbiter
    }

    /// Whether the member's log counts for the commit point.
    pub fn counts_for_commit(&self) -> bool {
        self.votes && !self.arbiter
    }
}

/// Why a configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// No members, or more than [`Configuration::MEMBERS_MAX`].
    MemberCount(usize),
    /// More voters than [`Configuration::VOTERS_MAX`].
    VoterCount(usize),
    /// Two members have this `_id`.
    Duplicate(MemberId),
    /// The version is above [`Configuration::VERSION_MAX`].
    Version(u64),
    /// No member can become primary.
    NotElectable,
    /// This arbiter has a priority, is hidden or delayed, or has no vote.
    Arbiter(MemberId),
    /// This member has a priority although it is hidden, delayed or without a vote.
    Priority(MemberId),
}

/// The set's configuration, which lies beside the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Configuration {
    /// The `version`, which grows with each change.
    pub version: u64,
    /// As [`Stamp::term`].
    pub term: Term,
    /// The end of the log that the set was initiated with. The first member had written it alone, so only members that
    /// have all of it may become primary.
    pub base: Lsn,
    /// The caller's name for the parts that the agreement does not know, such as hosts and settings.
    pub label: u64,
    /// The members.
    pub members: Vec<MemberConfiguration>,
}

impl Configuration {
    /// Maximum number of members of a set, as in MongoDB.
    pub const MEMBERS_MAX: usize = 50;
    /// Maximum number of voters of a set, as in MongoDB.
    pub const VOTERS_MAX: usize = 7;
    /// Highest version, as in MongoDB, where it is an integer of 32 bits.
    pub const VERSION_MAX: u64 = i32::MAX as u64;

    /// When the configuration was made.
    pub fn stamp(&self) -> Stamp {
        Stamp { term: self.term, version: self.version }
    }

    /// The member with this `_id`.
    pub fn member(&self, id: MemberId) -> Option<&MemberConfiguration> {
        self.members.iter().find(|member| member.id == id)
    }

    /// The members that vote.
    pub fn voters(&self) -> impl Iterator<Item = &MemberConfiguration> {
        self.members.iter().filter(|member| member.votes)
    }

    /// How many votes win an election.
    pub fn election_quorum(&self) -> usize {
        self.voters().count() / 2 + 1
    }

    /// How many voting data members must have synced a record before it is committed: a majority of all voters, but no
    /// more than there are voting data members, because arbiters hold no log.
    ///
    /// Every winner of an election has everything that is committed. Let V voters contain A arbiters and D = V - A data
    /// members, and let M > V / 2 be the majority.
    /// - If M <= D, M data members have a committed record. A winner has at least M - A votes of data members, its own
    ///   included, and M + (M - A) > V - A = D: one of these voters has the record, and it votes only for a position
    ///   that is at least its own.
    /// - If M > D, all D data members have the record, the winner included.
    ///
    /// The second case ends where a data member joins a set of few data members and many arbiters. So a change of the
    /// configuration also demands that the commit point is committed by the new rule.
    pub fn commit_quorum(&self) -> usize {
        self.election_quorum().min(self.voters().filter(|member| member.counts_for_commit()).count())
    }

    /// Checks what the agreement relies on.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.version > Self::VERSION_MAX {
            return Err(Invalid::Version(self.version));
        }
        if !(1..=Self::MEMBERS_MAX).contains(&self.members.len()) {
            return Err(Invalid::MemberCount(self.members.len()));
        }
        let voters = self.voters().count();
        if voters > Self::VOTERS_MAX {
            return Err(Invalid::VoterCount(voters));
        }
        for (index, member) in self.members.iter().enumerate() {
            if self.members[..index].iter().any(|other| other.id == member.id) {
                return Err(Invalid::Duplicate(member.id));
            }
            let passive = member.hidden || member.delay_secs > 0;
            if member.arbiter && (member.priority > 0 || passive || !member.votes) {
                return Err(Invalid::Arbiter(member.id));
            }
            if member.priority > 0 && (passive || !member.votes) {
                return Err(Invalid::Priority(member.id));
            }
        }
        if !self.members.iter().any(MemberConfiguration::is_electable) {
            return Err(Invalid::NotElectable);
        }
        Ok(())
    }

    /// Whether every majority of this configuration's voters shares a voter with every majority of the next one's: at
    /// most one voter comes or goes, and none turns from data member to arbiter or back.
    pub fn may_become(&self, next: &Self) -> bool {
        let (mut changed, mut turned) = (0, false);
        for member in self.voters() {
            match next.member(member.id) {
                Some(now) if now.votes => turned |= now.arbiter != member.arbiter,
                _ => changed += 1,
            }
        }
        changed += next.voters().filter(|now| !self.member(now.id).is_some_and(|before| before.votes)).count();
        changed <= 1 && !turned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `P` and `S` are data members, `A` arbiters.
    fn set(shape: &str) -> Configuration {
        let member = |(id, letter)| {
            let id = MemberId(id as u32);
            if letter == 'A' { MemberConfiguration::arbiter(id) } else { MemberConfiguration::data(id) }
        };
        Configuration {
            version: 1,
            term: 1,
            base: 0,
            label: 0,
            members: shape.chars().enumerate().map(member).collect(),
        }
    }

    /// Every winner of an election has every committed record, for all sets of up to seven voters.
    #[test]
    fn election_and_commit_quorums_meet() {
        for data in 1..=7_usize {
            for arbiters in 0..=7 - data {
                let set = set(&("S".repeat(data) + &"A".repeat(arbiters)));
                let (election, commit) = (set.election_quorum(), set.commit_quorum());
                let voters = data + arbiters;
                for votes in (0..1_u32 << voters).filter(|votes| votes.count_ones() as usize >= election) {
                    for holders in (0..1_u32 << data).filter(|holders| holders.count_ones() as usize >= commit) {
                        // Without a holder among the voters, a candidate among them lacks the record and wins.
                        let data_votes = votes & ((1 << data) - 1);
                        assert!(
                            data_votes == 0 || data_votes & holders != 0,
                            "{data} data members, {arbiters} arbiters"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn quorums_of_known_sets() {
        let quorums = |shape| (set(shape).election_quorum(), set(shape).commit_quorum());
        let shapes = ["P", "PS", "PSS", "PSA", "PSSA", "PSSAA", "PAA", "PSSSS", "PSSSSSS"];
        let expected = [(1, 1), (2, 2), (2, 2), (2, 2), (3, 3), (3, 3), (2, 1), (3, 3), (4, 4)];
        assert_eq!(shapes.map(quorums), expected);
    }

    #[test]
    fn one_voter_changes_at_a_time() {
        assert!(set("PSS").may_become(&set("PSSS")));
        assert!(set("PSS").may_become(&set("PS")));
        assert!(!set("PSS").may_become(&set("PSSSS")));
        assert!(!set("PSS").may_become(&set("PSA")));
        let mut swapped = set("PSS");
        swapped.members[2].id = MemberId(9);
        assert!(!set("PSS").may_become(&swapped));
        let mut silent = set("PSS");
        silent.members[2].votes = false;
        assert!(set("PSS").may_become(&silent) && silent.may_become(&set("PSS")));
    }

    #[test]
    fn bad_configurations_are_told_apart() {
        assert_eq!(set("").check(), Err(Invalid::MemberCount(0)));
        assert_eq!(set("PSSSSSSS").check(), Err(Invalid::VoterCount(8)));
        assert_eq!(set("AA").check(), Err(Invalid::NotElectable));
        let change = |change: fn(&mut MemberConfiguration)| {
            let mut set = set("PSA");
            set.members.iter_mut().skip(1).for_each(change);
            set.check()
        };
        assert_eq!(change(|member| member.id = MemberId(0)), Err(Invalid::Duplicate(MemberId(0))));
        assert_eq!(change(|member| member.hidden = true), Err(Invalid::Priority(MemberId(1))));
        assert_eq!(change(|member| member.votes = member.arbiter), Err(Invalid::Priority(MemberId(1))));
        assert_eq!(change(|member| member.priority = 1), Err(Invalid::Arbiter(MemberId(2))));
    }

    #[test]
    fn a_forced_configuration_wins_by_its_version() {
        let stamp = |term, version| Stamp { term, version };
        assert!(stamp(2, 1).newer_than(stamp(1, 9)));
        assert!(stamp(2, 2).newer_than(stamp(2, 1)));
        assert!(stamp(0, 10_001).newer_than(stamp(7, 1)));
        assert!(!stamp(7, 1).newer_than(stamp(0, 10_001)));
        assert!(!stamp(1, 1).newer_than(stamp(1, 1)));
    }
}
