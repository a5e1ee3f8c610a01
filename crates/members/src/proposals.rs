//! Configurations on their way to the agreement: proposed here, given another vote, kept, or told by other members.

use crate::configuration::timing;
use crate::core::Core;
use crate::installed::Change;
use crate::requests::Asked;
use bunko_bson::DocumentBuf;
use bunko_replica::{Body, Configuration, Event, Force, MemberId, Message, Stamp, State, Term};
use std::sync::Arc;

impl Core {
    /// Proposes a configuration. Returns the stamp under which this member keeps it; `None` after a refusal, which answers the
    /// request.
    pub(crate) fn propose(&self, configuration: Configuration, document: DocumentBuf, force: Force) -> Option<Stamp> {
        let mut held = self.held.lock();
        let has = |id: MemberId| held.agreement.configuration().member(id).is_some();
        let added = configuration.members.iter().map(|member| member.id).filter(|id| !has(*id)).collect();
        let (label, before) = (configuration.label, held.agreement.keeping());
        held.documents.note(document);
        self.step_held(&mut held, Event::Propose { configuration, force }, None);
        // After a refusal another member may propose the same, and then that one alone invites its new members as such.
        let taken = held.agreement.keeping().filter(|taken| Some(*taken) != before);
        if taken.is_some() {
            *self.added.lock() = (label, added);
        }
        taken
    }

    /// Gives a new member its vote, once the member has all that is committed.
    pub(crate) fn give_next_vote(&self) {
        let mut held = self.held.lock();
        let agreement = &held.agreement;
        if agreement.state() != State::Primary {
            return;
        }
        // The agreement only checks that a majority of the new voters has it: that can be the former ones alone.
        let has_all = |id| agreement.progress(id).is_some_and(|progress| progress.synced >= agreement.committed());
        let base = agreement.configuration().base;
        let Some((configuration, document)) = held.documents.with_next_vote(base, has_all) else { return };
        if !agreement.would_take(&configuration) {
            return;
        }
        // So no request of an administrator takes the answer for its own, for which this thread does not wait.
        if self.requests.begin(Asked::Configuration).is_some() {
            held.documents.note(document);
            self.step_held(&mut held, Event::Propose { configuration, force: Force::No }, None);
        }
    }

    /// The members that a configuration of this member adds, which it will invite as new ones.
    pub(crate) fn added(&self, configuration: &Configuration) -> Vec<MemberId> {
        let mut added = self.added.lock();
        let is_it = added.0 == configuration.label;
        if is_it { std::mem::take(&mut added.1) } else { Vec::new() }
    }

    /// Tells the agreement that a configuration is kept, whose document is `document`.
    pub(crate) fn note_configuration(&self, stamp: Stamp, document: DocumentBuf) {
        let mut held = self.held.lock();
        held.agreement.set_timing(timing(document.as_ref()));
        held.documents.note_current(document);
        self.step_held(&mut held, Event::ConfigurationKept(stamp), None);
    }

    /// Tells the agreement the configuration of another member, which is one that this one has told that it was removed.
    pub(crate) fn learn(&self, from: MemberId, configuration: Arc<Configuration>, document: DocumentBuf) {
        let mut held = self.held.lock();
        held.documents.note(document);
        let (term, stamp) = (held.agreement.term(), configuration.stamp());
        let message = Message { from, term, configuration: stamp, body: Body::Configuration(configuration) };
        self.step_held(&mut held, Event::Received(message), None);
    }

    /// Tells the agreement which configuration another member has stored, as its answer says.
    pub(crate) fn note_stored(&self, member: MemberId, configuration: Stamp) {
        let mut held = self.held.lock();
        if held.agreement.configuration().stamp().newer_than(configuration) {
            self.step_held(&mut held, Event::Told { member, configuration }, None);
        }
    }

    /// Where the configuration with that label and stamp stands, which this member has proposed as the primary of that term.
    pub(crate) fn standing_of_change(&self, label: u64, stamp: Stamp, term: Term) -> Change {
        let held = self.held.lock();
        held.installed.standing(&held.agreement, label, (stamp, term))
    }

    /// Whether a majority stores the configuration in use, as this primary knows; none if it is not primary.
    pub(crate) fn is_installed(&self) -> Option<bool> {
        self.held.lock().agreement.is_installed()
    }

    /// Whether the configuration with this stamp is still to be kept.
    pub(crate) fn is_keeping(&self, stamp: Stamp) -> bool {
        self.held.lock().agreement.keeping() == Some(stamp)
    }

    pub(crate) fn document_of(&self, configuration: &Configuration) -> DocumentBuf {
        self.held.lock().documents.of(configuration)
    }

    pub(crate) fn configuration(&self) -> Arc<Configuration> {
        Arc::clone(self.held.lock().agreement.configuration())
    }
}
