//! The part of a store that a member of a set uses: its role, terms, vote and commit point. No module below uses this
//! one.

use crate::checkpoint::Checkpointer;
use crate::commit_point::FOLLOWS;
use crate::journal::Journal;
use crate::planted::{self, Bug};
use crate::role::Role;
use crate::store::Applying;
use crate::{Batch, History, Lsn, Result, Snapshot, StorageError, Store, TermStart, Vote};
use bunko_bson::Timestamp;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longest time that a checkpoint waits for the commit point.
const COMMIT_WAIT_MAX: Duration = Duration::from_mins(1);
/// How often a checkpoint that waits looks whether it must go on.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

impl Store {
    /// The store's role now.
    pub fn role(&self) -> Role {
        self.role.get()
    }

    /// Makes the store a secondary's: from here on it refuses commits. Returns once no commit is in flight.
    pub fn step_down(&self) {
        let _no_open_chain = self.chain.lock();
        let _no_batch_in_flight = self.gate.write();
        self.role.set(Role::Secondary);
    }
}

impl Store {
    /// The last vote that was saved.
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
        self.directory.as_ref().map_or(Ok(()), |directory| vote.write(&directory.path))?;
        *last = Some(vote);
        Ok(())
    }
}

impl Store {
    /// Writes the record that begins a term, and makes the store a primary's. All later records have times in a later
    /// second than all earlier ones. The vote for the term must have been saved before.
    ///
    /// # Errors
    /// As [`Store::commit`] and [`Store::checkpoint`].
    /// # Panics
    /// If the term is not above the last one.
    pub fn begin_term(&self, term: u64) -> Result<Lsn> {
        self.leave_older_format()?;
        let mut batch = Batch::new();
        batch.note(&term.to_le_bytes());
        let draw = Self::draw(std::slice::from_ref(&batch), 0);
        self.with_relief(draw, || {
            let _no_open_chain = self.chain.lock();
            let _no_batch_in_flight = self.gate.write();
            assert!(Some(term) > self.terms.last(), "terms ascend");
            let now_ms = self.options.clock.now_ms();
            let in_order = |moment| self.watermark.appended(moment);
            let lsn = self.journal.append_term(&batch, draw, now_ms, in_order)?.lsn;
            self.terms.begin(TermStart { term, lsn });
            drop(Applying { store: self, lsn });
            // A chain that another primary began is never finished.
            *self.open_chain.lock() = None;
            self.role.set(Role::Primary { term });
            Ok(lsn)
        })
    }

    /// Must be called before the log gets a term's record. A version that does not know such records would take them
    /// for the end of the log; the checkpoint's manifest makes it refuse the directory.
    ///
    /// # Errors
    /// As [`Store::checkpoint`].
    pub(crate) fn leave_older_format(&self) -> Result<()> {
        if self.is_of_older_format.load(Ordering::Relaxed) { self.checkpoint() } else { Ok(()) }
    }

    /// The term of a record at a position of the log; `None` if no term had begun there, as on a standalone server.
    pub fn term_at(&self, lsn: Lsn) -> Option<u64> {
        self.terms.at(lsn)
    }

    /// The term of the last record that ends at or below a position.
    pub fn term_before(&self, end: Lsn) -> Option<u64> {
        self.terms.before(end)
    }

    /// The last term and the end of the log. The greater of two members' pairs belongs to the log that has all that is
    /// committed.
    pub fn last_position(&self) -> (Option<u64>, Lsn) {
        // A term that begins between the two loads begins at this end or behind it, and does not count.
        let end = self.journal.end();
        (self.terms.before(end), end)
    }
}

impl Store {
    /// Position below which all is committed. Readers see all of it.
    pub fn committed(&self) -> Lsn {
        Lsn(self.commit_point.held.load(Ordering::Acquire)).min(self.watermark.visible())
    }

    /// Whether the commit point is held, so that readers may see more than is committed.
    pub fn is_commit_held(&self) -> bool {
        self.commit_point.held().is_some()
    }

    /// Holds the commit point where it is, until [`Store::set_committed`] raises it.
    pub fn hold_committed(&self) {
        // Under this lock no version of the state is dropped, and none of a later one from here on.
        let (_, _pin) = self.snapshots.pin(|| {
            let visible = self.watermark.visible();
            let follows =
                self.commit_point.held.compare_exchange(FOLLOWS, visible.0, Ordering::AcqRel, Ordering::Acquire);
            Lsn(follows.map_or_else(|held| held, |_| visible.0)).min(visible)
        });
    }

    /// Raises a held commit point to `lsn`, which ends a record; a lower position changes nothing.
    pub fn set_committed(&self, lsn: Lsn) {
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

    /// `before` is the position of the commit point until now.
    fn tell_of_commit(&self, before: Lsn) {
        drop(self.commit_point.waiting.lock());
        self.commit_point.raised.notify_all();
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
        let mut newest = self.commit_point.newest.lock();
        let end = self.committed();
        let (from, known) = *newest;
        // The headers of a segment are found from its front, so the part that an earlier call has read is left out.
        let mut history = self.history_between(from, end);
        let moment = match history.as_mut().map_or(Ok(None), History::next_record) {
            Err(StorageError::HistoryLost) => None,
            found => found?.map(|record| record.chained.map_or(record.moment, |chained| chained.last)),
        };
        let time = moment.map_or(known, |moment| moment.timestamp(0));
        *newest = (end, time);
        Ok((time, self.terms.before(end)))
    }

    /// Waits until all below `end` is committed, or until a checkpoint may wait no longer.
    pub(crate) fn await_commit(&self, checkpointer: &Checkpointer, end: Lsn) {
        if self.committed() >= end {
            return;
        }
        let until = self.options.clock.now() + COMMIT_WAIT_MAX;
        let mut waiting = self.commit_point.waiting.lock();
        while self.committed() < end {
            let behind_bytes = self.journal.end().0 - self.committed().0;
            let is_over = self.options.clock.now() >= until || behind_bytes > self.options.unflushed_bytes_max;
            if is_over || checkpointer.is_closing() || self.is_closing.load(Ordering::Relaxed) {
                (self.options.on_commit_passed)(self.committed(), end);
                return;
            }
            self.commit_point.raised.wait_for(&mut waiting, LOOK_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests;
