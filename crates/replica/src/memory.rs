//! A member whose files were lost: it has forgotten its vote, and records that it had acknowledged.
//!
//! Until it knows enough of its former life, it gives no vote, campaigns never, and nothing that it has counts for the
//! commit point or confirms a read. It asks others: of `n` voters, a decision needs `q`, so among any `n - q + 1` *other*
//! voters that remember, one took part in each decision that this member had a part in. Where the configuration changes, it asks more:
//! see [`Configuration::recalling_quorum`].
//!
//! - It had voted in no term above the highest that they know ([`Recalled::term`]), and gives no vote in that term.
//! - All that was committed with its acknowledgement is in the log with the highest of their positions
//!   ([`Recalled::floor`]). From then on it votes for logs that reach this floor, and campaigns once its own does.
//!
//! In a set that has just begun, several members may have lost their files before one of them has joined. Then one answer is
//! enough: that of the member with the data with which the set began ([`Remembered::knows_all_decisions`]).
//!
//! The others must be asked once no message of the former life can be counted any more: the caller waits for two election
//! timeouts, a candidate counts no vote after its campaign, and a primary no log of a member that has been silent for an
//! election timeout or says that nothing of its log is synced. A message that a network holds back for longer than that may
//! be counted: this is the one assumption.
//!
//! ```text
//!            enough others have answered           the log is synced up to the floor
//!   Lost ──────────────────────────────────▶ Floor ──────────────────────────────────▶ Kept
//!    ▲          (a restart forgets the floor)   │
//!    └──────────────────────────────────────────┘
//! ```

use crate::{Configuration, Position, Term};

/// Whether a member remembers its votes and what it had acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// All of it.
    Kept,
    /// Nothing: its files were lost.
    Lost,
    /// Others remember that this position contains all that it had acknowledged.
    Floor(Position),
}

/// Facts that enough other voters remember.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recalled {
    /// The highest of their terms.
    pub term: Term,
    /// The highest of their positions.
    pub floor: Position,
}

/// Facts that one other voter remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Its term.
    pub term: Term,
    /// The position of its log.
    pub position: Position,
}

impl Remembered {
    /// Whether this voter alone knows that nothing has been decided since the set began, whatever members have voted and
    /// forgotten it.
    ///
    /// Its log ends where the set began, and it knows of no later term. A decision after the beginning needs a campaign:
    ///
    /// - Only members that have the log up to there campaign, under every configuration of the set, because changes and forced
    ///   changes keep [`Configuration::base`]. So the first campaign is that of the member that began the set, which keeps its new
    ///   term before it asks for votes. From then on it knows a later term than that of its last record, whether it is elected,
    ///   steps down or loses the election, and also if its log is cut back to this end.
    /// - All others get the log from a primary, and keep its term before the first of its records (see the duties of the caller in
    ///   `lib.rs`). A log of theirs that ends here, by its way or by a cut, is that of a member with a later term.
    ///
    /// The second case is that of the member that began the set, too, if it lost its files and remembers again. A set that began
    /// with an empty log has no such end: there any member may campaign first.
    ///
    /// The rule relies on the first member's files: with an old copy of them it would not know its campaigns. So one later term or
    /// log among the answers refutes it ([`Configuration::recalled`]).
    fn knows_all_decisions(self, configuration: &Configuration) -> bool {
        let Position { term, end } = self.position;
        configuration.base > 0 && end == configuration.base && self.term == term
    }
}

impl Configuration {
    /// Facts that a voter must know which has lost its memory, from those that other voters remember which store this
    /// configuration; `None` if these are not enough.
    pub fn recalled(&self, answers: &[Remembered]) -> Option<Recalled> {
        let is_not_later =
            |one: &Remembered, other: &Remembered| one.term <= other.term && one.position <= other.position;
        let knows_all = |answer: &Remembered| {
            answer.knows_all_decisions(self) && answers.iter().all(|other| is_not_later(other, answer))
        };
        let is_enough = answers.len() >= self.recalling_quorum() || answers.iter().any(knows_all);
        let highest = |recalled: Recalled, answer: &Remembered| Recalled {
            term: recalled.term.max(answer.term),
            floor: recalled.floor.max(answer.position),
        };
        is_enough.then(|| answers.iter().fold(Recalled::default(), highest))
    }

    /// How many other voters that remember, and store this configuration, must be asked by a voter that has lost its memory.
    ///
    /// They are a majority, too, where there are so many others. Each decision under an earlier configuration needed one of them then,
    /// because majorities of neighbouring configurations meet ([`Configuration::may_become`]).
    fn recalling_quorum(&self) -> usize {
        let (voters, majority) = (self.voters().count(), self.election_quorum());
        (voters + 1 - majority).max(majority.min(voters.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemberConfiguration, MemberId};

    #[test]
    fn the_first_member_alone_knows_that_nothing_is_decided_unless_another_knows_more() {
        let members = (0..5).map(|id| MemberConfiguration::data(MemberId(id))).collect();
        let set = Configuration { version: 1, term: 1, base: 2, label: 0, members };
        let remembered = |term, end| Remembered { term, position: Position { term: u64::from(end > 0), end } };
        let (first, empty) = (remembered(1, 2), remembered(0, 0));
        let nothing_decided = Some(Recalled { term: 1, floor: first.position });
        assert_eq!(set.recalled(&[first]), nothing_decided);
        assert_eq!(set.recalled(&[empty, first]), nothing_decided);
        assert_eq!(set.recalled(&[empty, empty]), None);
        for later in [remembered(2, 2), remembered(2, 0), remembered(1, 3)] {
            assert_eq!(set.recalled(&[later]), None);
            assert_eq!(set.recalled(&[first, later]), None);
        }
        let begun_empty = Configuration { base: 0, ..set };
        assert_eq!(begun_empty.recalled(&[empty]), None);
    }
}
