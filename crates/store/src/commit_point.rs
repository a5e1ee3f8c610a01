//! The commit point: the end of the part of the log that no election can take back.
//!
//! On a standalone server and in a set of one member it follows the watermark: all that readers see is committed. In a
//! set of several members it stands where a majority of the members has the log. Checkpoints, reclaiming, the end of
//! segments, change streams and reads with the concern `majority` ask for it here, and nowhere else.
//!
//! A checkpoint waits for the commit point, because records in the engines' files cannot be taken back without an
//! initial sync. A primary's checkpoint must go on, because its secondaries may be down: it waits a minute at most, a
//! second if a write waits for the room that the checkpoint makes, and only while the log above the commit point is
//! smaller than the bytes that engines may hold unflushed. A secondary makes no checkpoint while the commit point is
//! below the records that it has applied, and neither does a member that stops: its next start replays the log. The log
//! above the commit point is kept in any case.
//!
//! **Invariant:** the commit point never goes back while it is held.

use crate::Lsn;
use bunko_bson::Timestamp;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The commit point follows the watermark.
pub(crate) const FOLLOWS: u64 = u64::MAX;

/// Where the commit point stands.
pub(crate) struct CommitPoint {
    /// [`FOLLOWS`], or its position.
    pub held: AtomicU64,
    /// The end of the committed log that was looked at last, and the time of the newest record before it.
    pub newest: Mutex<(Lsn, Timestamp)>,
    /// States before this position cannot be read: a start does not keep the versions that it replays.
    pub readable_from: Lsn,
    /// Locked by a checkpoint that waits for `raised`.
    pub waiting: Mutex<()>,
    pub raised: Condvar,
    /// Number of writes that wait for a checkpoint to make room.
    wanting: AtomicUsize,
}

/// A write that waits for a checkpoint to make room.
pub(crate) struct WantingRoom<'c>(&'c AtomicUsize);

impl Drop for WantingRoom<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CommitPoint {
    /// `newest` before any record was looked at: its time is not known.
    pub const NOTHING: (Lsn, Timestamp) = (Lsn(0), Timestamp { seconds: 0, increment: 0 });

    /// `held` is the position that the manifest names; the log ends at `end`. The members that have more of it may have
    /// moved the commit point past the part that a crash of this member left.
    pub fn new(held: Option<Lsn>, end: Lsn) -> Self {
        Self {
            held: AtomicU64::new(held.map_or(FOLLOWS, |held| held.0.min(end.0))),
            newest: Mutex::new(Self::NOTHING),
            readable_from: end,
            waiting: Mutex::default(),
            raised: Condvar::new(),
            wanting: AtomicUsize::new(0),
        }
    }

    /// Until the result is dropped, a checkpoint waits for the commit point for a second at most.
    pub fn want_room(&self) -> WantingRoom<'_> {
        self.wanting.fetch_add(1, Ordering::Relaxed);
        WantingRoom(&self.wanting)
    }

    pub fn is_room_wanted(&self) -> bool {
        self.wanting.load(Ordering::Relaxed) > 0
    }

    /// The position of the commit point; `None` if it follows the watermark.
    pub fn held(&self) -> Option<Lsn> {
        Some(self.held.load(Ordering::Acquire)).filter(|held| *held != FOLLOWS).map(Lsn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_a_log_lost_are_not_committed_when_it_grows_again() {
        let held = |held| CommitPoint::new(held, Lsn(100)).held();
        assert_eq!([None, Some(Lsn(90)), Some(Lsn(110))].map(held), [None, Some(Lsn(90)), Some(Lsn(100))]);
    }
}
