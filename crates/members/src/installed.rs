//! Whether a majority stores a configuration that this member has proposed.

use bunko_replica::{Agreement, Stamp, Term};

/// Where a change of the configuration stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A majority stores it.
    Installed,
    /// This primary does not know yet that a majority stores it.
    Pending,
    /// This member has left the primary's role before it knew that, or another primary's configuration, or a forced one, took its
    /// place.
    Left,
}

/// Label and stamp of the last configuration that this member, as primary, knew a majority to store. So a request that asks a
/// moment later hears of it, although this member may have stepped down meanwhile.
#[derive(Default)]
pub(crate) struct Installed(Option<(u64, Stamp)>);

impl Installed {
    /// Notes the state after a step of the agreement.
    pub(crate) fn note(&mut self, agreement: &Agreement) {
        if agreement.is_installed() == Some(true) {
            let configuration = agreement.configuration();
            self.0 = Some((configuration.label, configuration.stamp()));
        }
    }

    /// Where the configuration with that label and stamp stands, which this member has proposed as the primary of that term.
    pub(crate) fn standing(&self, agreement: &Agreement, label: u64, (stamp, term): (Stamp, Term)) -> Change {
        if self.0 == Some((label, stamp)) {
            return Change::Installed;
        }
        let configuration = agreement.configuration();
        let is_in_use = configuration.label == label;
        let is_next = configuration.term == stamp.term && configuration.version > stamp.version;
        match agreement.is_installed() {
            None => Change::Left,
            Some(_) if agreement.keeping() == Some(stamp) => Change::Pending,
            Some(true) if is_in_use => Change::Installed,
            Some(false) if is_in_use => Change::Pending,
            // A primary takes its next change once a majority stores the last one. A forced one, of term 0, waits for none.
            Some(_) if agreement.term() == term && is_next => Change::Installed,
            Some(_) => Change::Left,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_replica::{
        Action, Configuration, Event, Force, MemberConfiguration, MemberId, Memory, Start, Terms, Timing, Vote,
    };

    fn primary() -> (Agreement, Installed) {
        let members = vec![MemberConfiguration::data(MemberId(0))];
        let start = Start {
            id: MemberId(0),
            seed: 1,
            timing: Timing::default(),
            journaled_majority: true,
            vote: Vote::default(),
            configuration: Configuration { version: 1, term: 1, base: 0, label: 7, members },
            terms: Terms::new(),
            log_start: 0,
            log_end: 0,
            committed: 0,
            memory: Memory::Kept,
        };
        (Agreement::new(start, 0), Installed::default())
    }

    /// Steps, and stores all that is to be stored.
    fn step((agreement, installed): &mut (Agreement, Installed), event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut actions = Vec::new();
            agreement.step(0, event, &mut actions);
            installed.note(agreement);
            events.extend(actions.into_iter().filter_map(|action| match action {
                Action::SaveVote(vote) => Some(Event::VoteSaved(vote)),
                Action::Keep(configuration) => Some(Event::ConfigurationKept(configuration.stamp())),
                _ => None,
            }));
        }
    }

    #[test]
    fn a_change_that_a_majority_stored_stays_so_when_the_primary_steps_down_before_it_is_asked_for() {
        let mut member = primary();
        step(&mut member, Event::Campaign);
        let (agreement, installed) = &member;
        let (stamp, term) = (agreement.configuration().stamp(), agreement.term());
        assert_eq!(agreement.is_installed(), Some(true));
        assert_eq!(installed.standing(agreement, 7, (stamp, term)), Change::Installed);
        step(&mut member, Event::StepDown { to: None, wait_ms: 0, freeze_ms: 9, force: Force::Yes });
        let (agreement, installed) = &member;
        assert_eq!(agreement.is_installed(), None);
        assert_eq!(installed.standing(agreement, 7, (stamp, term)), Change::Installed);
        let next = Stamp { version: stamp.version + 1, ..stamp };
        assert_eq!(installed.standing(agreement, 8, (next, term)), Change::Left);
    }
}
