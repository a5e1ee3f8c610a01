//! The part of a store that a member of a set uses: its role, terms, vote and commit point. No module below uses this
//! one.

use crate::commit_point::{CommitPoint, FOLLOWS};
use crate::journal::Journal;
use crate::log::{OpenChain, first_record};
use crate::planted::{self, Bug};
use crate::role::Role;
use crate::store::RecordInFlight;
use crate::vote;
use crate::{Batch, Bell, History, Lsn, Position, Result, Snapshot, StorageError, Store, Terms, Vote};
use bunko_bson::Timestamp;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Longest time that a checkpoint waits for the commit point.
const COMMIT_WAIT_MAX: Duration = Duration::from_mins(1);
/// Longest time that a checkpoint waits for the commit point while a write waits for the room that the checkpoint
/// makes.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(1);
/// How often a checkpoint that waits checks whether it must go on.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// The places of a log, each the end of a part of it. See "Log positions" in ARCHITECTURE.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Beginning of the log: the records before it were given up.
    pub start: Lsn,
    /// The end of the log.
    pub end: Lsn,
    /// All records below this position are in the kernel.
    pub written: Lsn,
    /// All records below this position are on disk.
    pub synced: Lsn,
    /// Readers see all records below this position.
    pub applied: Lsn,
    /// All records below this position are committed and applied.
    pub committed: Lsn,
}

impl Store {
    /// The store's role now.
    pub fn role(&self) -> Role {
        self.role.get()
    }

    /// Makes this the store of a secondary: from here on it refuses commits. Returns once no commit is in flight.
    pub fn step_down(&self) {
        let mut unapplied = self.unapplied.lock();
        let _no_open_chain = self.chain.lock();
        let _no_batch_in_flight = self.gate.write();
        if self.role.get() != Role::Secondary {
            // The store, as a primary's, has applied all of its log, and leaves no chain open.
            *unapplied = (self.journal.end(), OpenChain::default());
            self.role.set(Role::Secondary);
        }
    }
}

impl Store {
    /// The last vote that was saved; `None` if none was.
    pub fn vote(&self) -> Option<Vote> {
        *self.vote.lock()
    }

    /// Saves a vote in place of the last one; on return it is durable. A store without a directory keeps it for its
    /// life.
    ///
    /// # Errors
    /// Errors of the files; the last vote then stays, or the new one has taken its place.
    pub fn save_vote(&self, vote: Vote) -> Result<()> {
        let mut last = self.vote.lock();
        self.directory.as_ref().map_or(Ok(()), |directory| vote::write(&directory.path, vote))?;
        *last = Some(vote);
        Ok(())
    }
}

impl Store {
    /// Writes the record that begins a term, and makes the store a primary's. All later records have times in a later
    /// second than all earlier ones. The vote for the term must have been saved before, and all of the log must be
    /// applied.
    ///
    /// # Errors
    /// [`StorageError::Unapplied`]; as [`Store::commit`]. The role has not changed then.
    /// # Panics
    /// If the term is not above the last one.
    pub fn begin_term(&self, term: u64) -> Result<Lsn> {
        let mut batch = Batch::new();
        batch.note(&term.to_le_bytes());
        let draw = Self::draw(std::slice::from_ref(&batch), 0);
        self.with_relief(draw, || {
            let _no_foreign_record = self.appending.lock();
            let unapplied = self.unapplied.lock();
            if self.is_rolled_back.load(Ordering::Acquire) {
                return Err(StorageError::RolledBack);
            }
            if self.role() == Role::Secondary && unapplied.0 < self.journal.end() {
                return Err(StorageError::Unapplied);
            }
            let _no_open_chain = self.chain.lock();
            let _no_batch_in_flight = self.gate.write();
            assert!(term > self.terms.last(), "terms ascend");
            let now_ms = self.options.clock.now_ms();
            let in_order = |moment| self.watermark.appended(moment);
            let lsn = self.journal.append_term(&batch, draw, now_ms, in_order)?.lsn;
            self.terms.begin(term, lsn);
            drop(RecordInFlight { store: self, lsn });
            // A chain that another primary began is never finished.
            *self.open_chain.lock() = None;
            self.role.set(Role::Primary { term });
            Ok(lsn)
        })
    }

    /// The term of a record at a position of the log; `None` if no term had begun there, as on a standalone server.
    pub fn term_at(&self, lsn: Lsn) -> Option<u64> {
        self.terms.at(lsn)
    }

    /// The term of the last record that ends at or below a position; `None` if no term had begun there.
    pub fn term_before(&self, end: Lsn) -> Option<u64> {
        self.terms.before(end)
    }

    /// A copy of the table of terms.
    pub fn terms(&self) -> Terms {
        self.terms.copy()
    }

    /// The term of the last record, and the end of the log. The greater of two members' positions belongs to the log
    /// that has all that is committed.
    pub fn last_position(&self) -> Position {
        // A term that begins between the two loads begins at this end or after it, and does not count.
        let end = self.journal.end();
        Position { term: self.terms.before(end).unwrap_or(0), end: end.0 }
    }

    /// The places of the log. They are read one after the other, the earlier places first.
    pub fn places(&self) -> Places {
        let (committed, applied) = (self.committed(), self.watermark.visible());
        match &self.journal {
            Journal::Log(log) => {
                let (synced, written) = (log.synced_lsn(), log.written_lsn());
                let start = Lsn(first_record(log.oldest_shippable_segment()));
                Places { start, end: log.next_lsn(), written, synced, applied, committed }
            }
            Journal::None(_) => {
                let end = self.journal.end();
                Places { start: Journal::FIRST, end, written: end, synced: end, applied, committed }
            }
        }
    }

    /// Rung when the log has more in the kernel or on disk, when it is truncated, when the commit point is raised, and
    /// when a secondary has applied records.
    pub fn log_bell(&self) -> &Arc<Bell> {
        &self.moved
    }
}

impl Store {
    /// Position below which all records are committed. Readers see all of them.
    pub fn committed(&self) -> Lsn {
        Lsn(self.commit_point.held.load(Ordering::Acquire)).min(self.watermark.visible())
    }

    /// The commit point itself, which may be above the watermark: a secondary applies its log up to there.
    pub fn committed_part_end(&self) -> Lsn {
        self.commit_point.held().unwrap_or_else(|| self.watermark.visible())
    }

    /// Whether the commit point is held, so that readers may see more than is committed.
    pub fn is_commit_held(&self) -> bool {
        self.commit_point.held().is_some()
    }

    /// Holds the commit point where it is, until [`Store::set_committed`] raises it.
    pub fn hold_committed(&self) {
        // While `pin` holds its lock, no version of the visible state is dropped. From then on, the held commit point
        // keeps the versions of this state and of all later ones.
        let (_, _pin) = self.snapshots.pin(|| {
            let visible = self.watermark.visible();
            let follows =
                self.commit_point.held.compare_exchange(FOLLOWS, visible.0, Ordering::AcqRel, Ordering::Acquire);
            Lsn(follows.map_or_else(|held| held, |_| visible.0)).min(visible)
        });
    }

    /// Raises a held commit point to `lsn`, which ends a record, or to the end of the log; a lower position changes
    /// nothing.
    pub fn set_committed(&self, lsn: Lsn) {
        let lsn = lsn.min(self.journal.end());
        let raise = |held| (held != FOLLOWS && lsn.0 > held).then_some(lsn.0);
        if let Ok(before) = self.commit_point.held.fetch_update(Ordering::AcqRel, Ordering::Acquire, raise) {
            self.tell_of_commit(Lsn(before));
        }
    }

    /// Lets the commit point follow the watermark: the member is a majority by itself.
    pub fn commit_what_is_visible(&self) {
        let before = self.commit_point.held.swap(FOLLOWS, Ordering::AcqRel);
        self.tell_of_commit(Lsn(before));
    }

    /// Wakes everything that waits for the commit point, which was at `before` until now.
    fn tell_of_commit(&self, before: Lsn) {
        drop(self.commit_point.waiting.lock());
        self.commit_point.raised.notify_all();
        self.moved.ring();
        if let Some(bell) = self.durable_bell() {
            bell.ring();
        }
        if let (Some(_), Journal::Log(log)) = (&self.kept, &self.journal) {
            log.followers().ring_from(before);
        }
    }

    /// A snapshot of the committed state; `None` after a start, while the commit point is below the end that the log
    /// had then.
    pub fn committed_snapshot(&self) -> Option<Snapshot> {
        // As in [`Store::snapshot`].
        let _gate = self.gate.read();
        let seen = || if planted::active(Bug::UncommittedRead) { self.watermark.visible() } else { self.committed() };
        let (lsn, pin) = self.snapshots.pin(seen);
        let is_readable = lsn >= self.commit_point.readable_from;
        is_readable.then(|| Snapshot { view: self.engines.view(lsn), lsn, _pin: Some(pin) })
    }

    /// Time and term of the newest committed record. The time is null before there is one, and where the log does not
    /// reach back to it.
    ///
    /// # Errors
    /// As reading the history.
    pub fn committed_time(&self) -> Result<(Timestamp, Option<u64>)> {
        if !self.is_commit_held() {
            return Ok((self.newest_time(), self.terms.before(self.committed())));
        }
        let end = self.committed();
        Ok((self.newest_time_before(end)?, self.terms.before(end)))
    }

    /// Time of the newest record below `end`, which ends a record that readers see. It is null as that of
    /// [`Store::committed_time`].
    ///
    /// # Errors
    /// As reading the history.
    pub fn newest_time_before(&self, end: Lsn) -> Result<Timestamp> {
        let mut newest = self.commit_point.newest.lock();
        let (from, known) = if newest.0 <= end { *newest } else { CommitPoint::NOTHING };
        // A segment's headers can only be found from its front, so the part that an earlier call has read is left out.
        let mut history = self.history_between(from, end);
        let moment = match history.as_mut().map_or(Ok(None), History::next_record) {
            Err(StorageError::HistoryLost) => None,
            found => found?.map(|record| record.chained.map_or(record.moment, |chained| chained.last)),
        };
        let time = moment.map_or(known, |moment| moment.timestamp(0));
        *newest = (end, time);
        Ok(time)
    }

    /// Waits until all below `end` is committed, or until `until`.
    pub fn await_committed(&self, end: Lsn, until: Instant) {
        let mut waiting = self.commit_point.waiting.lock();
        while self.committed() < end && !self.commit_point.raised.wait_until(&mut waiting, until).timed_out() {}
    }

    /// Waits until all below `end` is committed, or until a checkpoint may wait no longer. Returns false if the
    /// checkpoint must be given up.
    pub(crate) fn await_commit(&self, end: Lsn) -> bool {
        if self.committed() >= end {
            return true;
        }
        let began = self.options.clock.now();
        let mut waiting = self.commit_point.waiting.lock();
        while self.committed() < end {
            if self.is_held_back(end) {
                return false;
            }
            let wait_max = if self.commit_point.is_room_wanted() { ROOM_WAIT_MAX } else { COMMIT_WAIT_MAX };
            // The commit point may pass this end between the two loads.
            let behind_bytes = self.journal.end().0.saturating_sub(self.committed().0);
            let is_over = self.options.clock.since(began) >= wait_max;
            if is_over || behind_bytes > self.options.unflushed_bytes_max {
                (self.options.on_commit_passed)(self.committed(), end);
                return true;
            }
            self.commit_point.raised.wait_for(&mut waiting, LOOK_INTERVAL);
        }
        true
    }

    /// Whether a checkpoint of all below `end` must not be made now. A secondary has no need to pass the commit point,
    /// because it applies nothing more before the commit point has come so far; and a store that is closed leaves the
    /// log to be replayed.
    pub(crate) fn is_held_back(&self, end: Lsn) -> bool {
        let may_not_pass = match self.role() {
            Role::Standalone => false,
            Role::Primary { .. } => self.checkpointer.is_closing() || self.is_closing.load(Ordering::Relaxed),
            Role::Secondary => true,
        };
        may_not_pass && self.committed() < end || self.is_rolled_back.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;
