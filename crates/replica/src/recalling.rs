//! How a member whose files were lost takes up its part again; see [`crate::Memory`].

use crate::state::Actions;
use crate::{Action, Agreement, Bug, Memory, Position, Recalled, Vote};

impl Agreement {
    /// Whether this member remembers its votes and what it had acknowledged.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    pub(crate) fn has_lost_memory(&self) -> bool {
        self.memory == Memory::Lost && !self.planted(Bug::VoteWithoutMemory)
    }

    /// The position that a candidate's log must reach for this member's vote.
    pub(crate) fn floor(&self) -> Position {
        match self.memory {
            Memory::Floor(floor) => self.position().max(floor),
            Memory::Kept | Memory::Lost => self.position(),
        }
    }

    pub(crate) fn recalled(&mut self, Recalled { term, floor }: Recalled, actions: &mut Actions) {
        if !self.has_lost_memory() {
            return;
        }
        self.memory = Memory::Floor(floor);
        if term >= self.vote.term {
            // In its former life it may have voted for any candidate of this term.
            self.vote = Vote { term, candidate: Some(self.id) };
            actions.push(Action::SaveVote(self.vote));
        }
        self.look_at_floor(actions);
        // This log counts from now on.
        self.fetch(actions);
    }

    /// Notes that the log is synced further.
    pub(crate) fn look_at_floor(&mut self, actions: &mut Actions) {
        let Memory::Floor(floor) = self.memory else { return };
        // A log that is written to may never be synced up to its end.
        let synced = Position { term: self.log.terms.term_at(self.log.synced), end: self.log.synced };
        if (synced >= floor || self.is_arbiter()) && self.saved == self.vote {
            self.memory = Memory::Kept;
            actions.push(Action::Remembered);
        }
    }
}
