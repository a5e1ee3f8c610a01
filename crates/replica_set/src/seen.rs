//! The state of the set as this member sees it.

/// The state of a member. Source: MongoDB manual, "Replica Set Member States".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemberState {
    /// It takes writes.
    Primary,
    /// It follows the primary, and serves reads.
    #[default]
    Secondary,
    /// It serves no reads, because its log cannot follow the primary's.
    Recovering,
    /// It does not have the data yet with which the set began.
    Startup2,
    /// It has not answered yet.
    Unknown,
    /// It votes, and has no data.
    Arbiter,
    /// It cannot be reached.
    Down,
    /// It takes writes back that no majority had.
    Rollback,
    /// The configuration does not list it.
    Removed,
}

impl MemberState {
    /// All states.
    const ALL: [Self; 9] = [
        Self::Primary,
        Self::Secondary,
        Self::Recovering,
        Self::Startup2,
        Self::Unknown,
        Self::Arbiter,
        Self::Down,
        Self::Rollback,
        Self::Removed,
    ];

    /// Its number.
    pub fn number(self) -> i32 {
        match self {
            Self::Primary => 1,
            Self::Secondary => 2,
            Self::Recovering => 3,
            Self::Startup2 => 5,
            Self::Unknown => 6,
            Self::Arbiter => 7,
            Self::Down => 8,
            Self::Rollback => 9,
            Self::Removed => 10,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Primary => "PRIMARY",
            Self::Secondary => "SECONDARY",
            Self::Recovering => "RECOVERING",
            Self::Startup2 => "STARTUP2",
            Self::Unknown => "UNKNOWN",
            Self::Arbiter => "ARBITER",
            Self::Down => "DOWN",
            Self::Rollback => "ROLLBACK",
            Self::Removed => "REMOVED",
        }
    }

    /// The state with that number.
    pub fn of(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| i64::from(state.number()) == number)
    }

    /// Whether a member in this state serves reads.
    pub fn serves_reads(self) -> bool {
        matches!(self, Self::Primary | Self::Secondary)
    }
}

/// A set of several members, as one of them sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The member's own state.
    pub state: MemberState,
    /// The `_id` of the primary, if there is one.
    pub primary: Option<u32>,
    /// The highest term that the member knows.
    pub term: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_a_number_of_its_own() {
        for state in MemberState::ALL {
            assert_eq!(MemberState::of(i64::from(state.number())), Some(state));
        }
        assert_eq!(MemberState::of(0), None);
    }
}
