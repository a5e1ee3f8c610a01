//! The server's own writes, which no client asked for. A standalone server makes them from its start on, a member of a
//! set while it is the primary. The store of a secondary refuses all of them.
//!
//! | Written | Begins | Ends with the role |
//! |---|---|---|
//! | the member's vote, the record of the term | [`Service::step_up`], before anything else | |
//! | the oplog's first entry, the end of interrupted rebuilds | `Catalog::step_up`, or the catalog's opening | |
//! | the set's configuration, with the new term | [`Service::step_up`] | |
//! | the first user (`cli`), `startup_log`, the version document | the start (`note_start`) | |
//! | resumed index builds | thread `index-build`, which takes the builds that [`Service::step_up`] found | `Catalog::interrupt_builds` |
//! | deletions of expired documents | thread `ttl` | it looks at the role before each batch |
//! | forgotten write histories of idle sessions | the listener, every four seconds | it looks at the role |
//! | `system.profile` | the end of a profiled operation | it looks at the role |
//! | records that only pass time (`pass_time`) | a read after a time, and a snapshot | the store refuses them |
//!
//! `autoCompact`, checkpoints, merges, reclaiming, key samples and word tables write no records, and go on.

use crate::command_entry::Command;
use crate::service::Service;
use crate::stored_settings::replacement;
use bunko_bson::ValueRef;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_replica_set::{COLLECTION, DATABASE, ReplicaSet};
use bunko_request::Request;
use bunko_request::facts::ReadsFrom;
use bunko_session::transactions::is_inside;
use bunko_store::Role;
use bunko_store::planted::{self, Bug};
use std::cell::Cell;
use std::time::Duration;

/// A period that no process lives through.
const FOR_GOOD: Duration = Duration::from_hours(1_000_000);

impl Service {
    /// Whether the server may write: it is standalone, or the primary of its set.
    pub(crate) fn may_write(&self) -> bool {
        let is_paused = self.replica_set.as_ref().is_some_and(|set| set.are_writes_paused());
        self.catalog.store().role() != Role::Secondary && !is_paused || planted::active(Bug::SecondaryWrites)
    }

    /// Elects the only member of the set for a new term, unless it is the primary, and begins a primary's own writes.
    /// # Errors
    /// Errors of the vote, and of writing to the log.
    pub fn step_up(&self) -> Result<()> {
        let Some(set) = &self.replica_set else { return Ok(()) };
        // Found before clients can begin builds of their own.
        let found = Cell::new(Vec::new());
        let prepare = || found.set(self.catalog.interrupted_builds());
        set.elect(prepare, |configuration| {
            let begun = self.catalog.step_up();
            // The thread that resumes builds must not see them while the catalog refuses builds: it takes them once.
            *self.builds_to_resume.lock() = found.take();
            begun?;
            self.run_own(DATABASE, &replacement(COLLECTION, configuration)).map(drop)
        })
    }

    /// Makes the primary a secondary for that long. Returns false if the member is not the primary.
    pub(crate) fn step_down(&self, period: Duration) -> bool {
        let Some(set) = &self.replica_set else { return false };
        if self.catalog.store().role() == Role::Secondary {
            return false;
        }
        self.catalog.interrupt_builds();
        let is_done = set.step_down(self.world.clock.now() + period);
        // As in MongoDB, open transactions do not outlive the primary's term.
        self.abort_transactions(|_| true);
        is_done
    }

    /// As [`Service::step_down`], for a member of a set of several, whose elections are not its own affair.
    pub(crate) fn step_down_for_good(&self) {
        self.step_down(FOR_GOOD);
    }

    /// Whether the only member of a set is a secondary whose wait is over. While `fsync` locks writes, none is due: the
    /// election would write to files that are being copied, and then wait for the lock with its role half changed.
    pub fn is_election_due(&self) -> bool {
        let now = self.world.clock.now();
        let is_due = |set: &ReplicaSet| !set.has_several() && !set.is_primary() && set.leadership.is_due(now);
        !self.write_lock.is_closed() && self.replica_set.as_ref().is_some_and(|set| is_due(set))
    }

    /// Elects the member if its wait is over. Call it every second or so, on a thread that may block for a moment.
    pub fn elect_when_due(&self) {
        if self.is_election_due()
            && let Err(failure) = self.step_up()
        {
            tracing::error!(target: "REPL", id = 154, ctx = "ReplCoord", error = %failure, "The member cannot become primary, and will try again");
        }
    }

    /// Refuses a command that only a primary runs, and reads whose client has not said that a secondary will do.
    /// # Errors
    /// `NotWritablePrimary`, `NotPrimaryNoSecondaryOk`.
    /// Source: MongoDB manual 8.2, "Read Preference"; its errors as a secondary of 8.2 answers.
    pub(crate) fn check_primary(&self, command: &Command, request: &Request<'_>) -> Result<()> {
        if self.may_write() {
            return Ok(());
        }
        let is_inside = is_inside(request.body);
        let reads = command.reads == ReadsFrom::Collection;
        if command.writes(request.body) || command.transaction.is_end() || is_inside && !reads {
            return Err(Failure::new(ErrorCode::NOT_WRITABLE_PRIMARY, "not primary"));
        }
        let preference = request.body.get("$readPreference").and_then(ValueRef::as_document);
        let mode = preference.and_then(|preference| preference.get("mode")).and_then(ValueRef::as_str);
        let may_be_old = !is_inside && mode.is_some_and(|mode| mode != "primary");
        let serves_reads = self.replica_set.as_ref().is_none_or(|set| set.state().serves_reads());
        if reads && !serves_reads && request.database != DATABASE {
            let message = "not primary or secondary; cannot currently read from this member";
            return Err(Failure::new(ErrorCode::NOT_PRIMARY_OR_SECONDARY, message));
        }
        if reads && !may_be_old && request.database != DATABASE {
            let message = "not primary and secondaryOk=false";
            return Err(Failure::new(ErrorCode::NOT_PRIMARY_NO_SECONDARY_OK, message));
        }
        Ok(())
    }
}
