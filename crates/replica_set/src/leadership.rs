//! Elections and step-downs of the set's only member.
//!
//! ```text
//!               elect                       step_down(until)
//!   secondary ─────────▶ primary of a term ─────────────────▶ secondary
//!       ▲                                                        │
//!       └───── at `until`, or after `replSetFreeze: 0` ──────────┘
//! ```
//! The member votes for itself, and needs no other vote. The vote is saved before the term begins, as it must be in a
//! set of several members. Source: MongoDB manual 8.2, `replSetStepDown`, `replSetFreeze`; MongoDB drivers'
//! specification, "Server Discovery And Monitoring", `topologyVersion`.

use bunko_catalog::{Catalog, from_storage};
use bunko_errors::Result;
use bunko_store::{Bell, MemberId, Role, StorageError, Vote};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

/// The member that it votes for: itself.
const OWN_ID: MemberId = MemberId(0);

/// Whether the member is the primary, and when it may become the primary again.
#[derive(Default)]
pub struct Leadership {
    /// The time before which the member does not elect itself.
    waits_until: Mutex<Option<Instant>>,
    /// Held while the role changes.
    changing: Mutex<()>,
    /// Date of the last election, in milliseconds since 1970.
    elected_ms: AtomicU64,
    /// Number of changes that a `hello` shows.
    topology: AtomicI64,
    /// Rung at each change of the topology.
    changed: Arc<Bell>,
}

impl Leadership {
    /// Number of changes of the topology, which `hello` shows in `topologyVersion`.
    pub fn topology(&self) -> i64 {
        self.topology.load(Ordering::Acquire)
    }

    /// Rung at each change of the topology.
    pub fn changed(&self) -> &Arc<Bell> {
        &self.changed
    }

    /// Date of the last election, in seconds since 1970.
    pub fn elected_s(&self) -> u32 {
        (self.elected_ms.load(Ordering::Relaxed) / 1000) as u32
    }

    /// Whether the member is to elect itself at `now`.
    pub fn is_due(&self, now: Instant) -> bool {
        self.waits_until.lock().is_none_or(|until| now >= until)
    }

    /// Elects the member for a new term, unless it is the primary. `prepare` is called before the first record of the
    /// term, and `begin` after it, before clients hear of the election.
    /// # Errors
    /// Errors of saving the vote and of writing to the log; those of `begin`.
    pub(crate) fn elect(
        &self,
        catalog: &Catalog,
        prepare: impl FnOnce(),
        begin: impl FnOnce(u64) -> Result<()>,
    ) -> Result<()> {
        let _changing = self.changing.lock();
        let store = catalog.store();
        if matches!(store.role(), Role::Primary { .. }) {
            return Ok(());
        }
        prepare();
        let voted = store.vote().map_or(0, |vote| vote.term);
        let term = voted.max(store.last_position().term) + 1;
        match store.save_vote(Vote { term, candidate: Some(OWN_ID) }) {
            // Only a start can make room on a full disk. No other member could win this term.
            Ok(()) | Err(StorageError::OutOfDiskSpace { .. }) => {}
            Err(error) => return Err(from_storage(error)),
        }
        catalog.become_primary(term)?;
        store.commit_what_is_visible();
        self.elected_ms.store(store.clock().now_ms(), Ordering::Relaxed);
        *self.waits_until.lock() = None;
        let begun = begin(term);
        self.tell("PRIMARY", "SECONDARY");
        begun
    }

    /// Makes the primary a secondary until `until`. Returns false if the member is not the primary.
    pub(crate) fn step_down(&self, catalog: &Catalog, until: Instant) -> bool {
        let _changing = self.changing.lock();
        if catalog.store().role() == Role::Secondary {
            return false;
        }
        *self.waits_until.lock() = Some(until);
        catalog.store().step_down();
        self.tell("SECONDARY", "PRIMARY");
        true
    }

    /// Keeps a secondary from electing itself before `until`, or lets it do so now.
    pub fn freeze(&self, until: Option<Instant>) {
        let mut waits = self.waits_until.lock();
        *waits = until.map(|until| waits.map_or(until, |waits| waits.max(until)));
    }

    /// Notes that the member was elected, in a set of several members.
    pub fn note_election(&self, now_ms: u64) {
        self.elected_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Tells waiting clients that the topology has changed.
    pub(crate) fn tell_of_configuration(&self) {
        self.topology.fetch_add(1, Ordering::AcqRel);
        self.changed.ring();
    }

    /// Tells waiting clients that the member's state has changed, or its primary.
    pub(crate) fn tell(&self, new: &'static str, old: &'static str) {
        self.tell_of_configuration();
        if new == old {
            return;
        }
        tracing::info!(target: "REPL", id = 21358, ctx = "ReplCoord", newState = new, oldState = old, "Replica set state transition");
    }
}
