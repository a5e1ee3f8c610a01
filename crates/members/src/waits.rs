//! Writes that wait until other members have them, and reads on a secondary that wait until it has applied a time.
//!
//! A wait holds no thread: it has a bell of its own, which is rung once, when the wait is over.

use bunko_replica::Progress;
use bunko_replica_set::Tagged;
use bunko_store::{Bell, Lsn};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// The members that must have a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Enough members that no election takes it back.
    Majority,
    /// So many data members have it.
    Members(usize, Stored),
    /// Data members with these tags have it.
    Tagged(Arc<Tagged>, Stored),
}

/// Where a member has a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// In its kernel.
    Written,
    /// On its disk.
    Synced,
}

impl Stored {
    /// The end of the part of a member's log that is stored so.
    pub(crate) fn end(self, progress: Progress) -> u64 {
        match self {
            Self::Written => progress.written,
            Self::Synced => progress.synced,
        }
    }
}

/// A write that waits.
#[derive(Clone, Debug)]
pub struct Wait {
    /// The position after the write.
    pub end: Lsn,
    /// The members that must have it.
    pub need: Need,
    /// The term in which it was written.
    pub term: u64,
    /// For a linearizable read: whether a majority has confirmed after it that this member is the primary.
    pub confirmation: Option<Arc<Confirmation>>,
}

/// The answer of the members to a linearizable read.
#[derive(Debug, Default)]
pub struct Confirmation(AtomicU8);

impl Confirmation {
    const CONFIRMED: u8 = 1;
    const REFUSED: u8 = 2;

    pub(crate) fn end(&self, is_confirmed: IsConfirmed) {
        let state = if is_confirmed == IsConfirmed::Yes { Self::CONFIRMED } else { Self::REFUSED };
        self.0.store(state, Ordering::Release);
    }

    pub(crate) fn is_confirmed(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::CONFIRMED
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::REFUSED
    }
}

/// Whether a majority has confirmed a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsConfirmed {
    Yes,
    No,
}

/// Where a wait stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The members have the write.
    Met,
    /// They do not have it yet.
    Waits,
    /// This member is not the primary of that term any more.
    SteppedDown,
    /// The data members that the set has by now are not those that must have the write.
    TooFew,
}

struct Waiting<W> {
    wait: W,
    bell: Arc<Bell>,
}

/// All waits of one kind.
pub(crate) struct Waits<W> {
    waiting: Mutex<Vec<Waiting<W>>>,
    /// Number of waits, so that a step without any takes no lock.
    count: AtomicUsize,
}

impl<W> Default for Waits<W> {
    fn default() -> Self {
        Self { waiting: Mutex::default(), count: AtomicUsize::new(0) }
    }
}

impl<W> Waits<W> {
    /// Adds a wait. The caller looks where it stands afterwards, so that no news is lost.
    pub(crate) fn add(&self, wait: W) -> Arc<Bell> {
        let bell = Arc::<Bell>::default();
        let mut waiting = self.waiting.lock();
        waiting.push(Waiting { wait, bell: Arc::clone(&bell) });
        self.count.store(waiting.len(), Ordering::SeqCst);
        bell
    }

    pub(crate) fn are_any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Ends the waits that are over, and those that only the list still knows.
    pub(crate) fn end(&self, is_over: impl Fn(&W) -> bool) {
        let mut over = Vec::new();
        let mut waiting = self.waiting.lock();
        let mut index = 0;
        while index < waiting.len() {
            if is_over(&waiting[index].wait) || Arc::strong_count(&waiting[index].bell) == 1 {
                over.push(waiting.swap_remove(index).bell);
            } else {
                index += 1;
            }
        }
        self.count.store(waiting.len(), Ordering::SeqCst);
        drop(waiting);
        for bell in over {
            bell.ring();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waits_that_are_over_are_told_and_forgotten_ones_go() {
        let waits = Waits::default();
        let wait = |end| Wait { end: Lsn(end), need: Need::Majority, term: 1, confirmation: None };
        let bells: Vec<_> = [10, 20, 30].map(|end| waits.add(wait(end))).into();
        waits.end(|wait| wait.end <= Lsn(20));
        assert_eq!(bells.iter().map(|bell| bell.rings()).collect::<Vec<_>>(), [1, 1, 0]);
        drop(bells);
        assert!(waits.are_any());
        waits.end(|_| false);
        assert!(!waits.are_any());
    }
}
