//! Where writes stand that wait for other members, and reads that wait for a time.

use crate::core::{Core, Held};
use crate::waits::{Need, Standing, Stored, Wait};
use bunko_bson::Timestamp;
use bunko_replica::State;
use bunko_store::{Bell, Role};
use std::sync::Arc;

impl Core {
    /// Begins a wait.
    pub(crate) fn add_wait(&self, wait: Wait) -> Arc<Bell> {
        self.waits.add(wait)
    }

    /// Begins the wait of a read for a time; see [`Core::has_applied`].
    pub(crate) fn add_wait_for_time(&self, time: Timestamp) -> Arc<Bell> {
        self.waits_for_times.add(time)
    }

    /// Whether a read that must see everything up to a time need not wait: this member has applied it, or is no secondary.
    pub(crate) fn has_applied(&self, time: Timestamp) -> bool {
        self.store.role() != Role::Secondary || self.store.newest_time() >= time
    }

    /// Ends the waits of reads for times that have come.
    pub(crate) fn end_reads_that_wait(&self) {
        if self.waits_for_times.are_any() {
            self.waits_for_times.end(|time| self.has_applied(*time));
        }
    }

    pub(crate) fn standing(&self, wait: &Wait) -> Standing {
        self.standing_of(&self.held.lock(), wait)
    }

    pub(crate) fn standing_of(&self, held: &Held, wait: &Wait) -> Standing {
        let members = held.agreement.configuration().members.iter().filter(|it| !it.arbiter);
        let have =
            |id, stored: Stored| held.agreement.progress(id).is_some_and(|progress| stored.end(progress) >= wait.end.0);
        let is_met = match &wait.need {
            Need::Majority => held.agreement.committed() >= wait.end.0,
            Need::Members(needed, stored) => members.clone().filter(|it| have(it.id, *stored)).count() >= *needed,
            Need::Tagged(tagged, stored) => {
                let having = members.clone().filter(|it| have(it.id, *stored)).map(|it| &*it.tags);
                self.set.member().pattern(tagged).is_some_and(|pattern| pattern.is_met_by(&having))
            }
        };
        let confirmation = wait.confirmation.as_ref();
        if confirmation.is_some_and(|confirmation| confirmation.is_refused()) {
            return Standing::SteppedDown;
        }
        let is_met = is_met && confirmation.is_none_or(|confirmation| confirmation.is_confirmed());
        match (is_met, held.agreement.state() == State::Primary && held.agreement.term() == wait.term) {
            (true, true) => Standing::Met,
            (false, true) if self.is_beyond(held, &wait.need) => Standing::TooFew,
            (false, true) => Standing::Waits,
            (_, false) => Standing::SteppedDown,
        }
    }

    /// Whether all data members together do not meet a need.
    fn is_beyond(&self, held: &Held, need: &Need) -> bool {
        let shown = self.set.member();
        match need {
            Need::Majority => false,
            // The agreement and the server have a new configuration one after the other.
            Need::Members(needed, _) => {
                let agreed = held.agreement.configuration().members.iter().filter(|it| !it.arbiter).count();
                *needed > agreed && shown.check_count(*needed).is_err()
            }
            Need::Tagged(tagged, _) => shown.check_tagged(tagged).is_err(),
        }
    }
}
