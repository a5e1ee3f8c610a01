//! Batches that must be seen at once by those who read the latest state, which is ahead of what snapshots show.
//!
//! A read of the latest state sees a batch while it is being applied, and so some of its effects before others. For most
//! batches that does not matter; who commits one for which it does says so, and such a read then takes a snapshot instead
//! if it has met one.

use crate::{Result, Store, View};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// How many batches are being applied that must be seen as a whole, in the lower bits, and how many ever began, above.
#[derive(Default)]
pub(crate) struct WholeCommits(AtomicU64);

const GOING_ON_BITS: u32 = 20;
const GOING_ON: u64 = (1 << GOING_ON_BITS) - 1;
/// One more that began, and goes on.
const BEGUN: u64 = (1 << GOING_ON_BITS) + 1;

/// While it lives, what is committed is seen as a whole.
#[must_use]
pub struct Whole<'s>(&'s WholeCommits);

impl Drop for Whole<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}

impl WholeCommits {
    fn begin(&self) -> Whole<'_> {
        self.0.fetch_add(BEGUN, Ordering::AcqRel);
        Whole(self)
    }
}

impl Store {
    /// From now on, until the answer is dropped, what the caller commits is seen as a whole.
    pub fn commit_whole(&self) -> Whole<'_> {
        self.whole.begin()
    }

    /// Lets `read` read the latest state, and once more a snapshot where that may have shown it a part of a batch that is
    /// to be seen as a whole.
    /// # Errors
    /// Those of `read`.
    pub fn read_latest<T>(&self, mut read: impl FnMut(&dyn View) -> Result<T>) -> Result<T> {
        let before = self.whole.0.load(Ordering::Acquire);
        if before & GOING_ON == 0 {
            let found = read(self.latest());
            fence(Ordering::Acquire);
            if self.whole.0.load(Ordering::Relaxed) == before {
                return found;
            }
        }
        read(&self.snapshot())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_noticed_while_it_goes_on_and_after() {
        let commits = WholeCommits::default();
        let value = || commits.0.load(Ordering::Relaxed);
        let (first, second) = (commits.begin(), commits.begin());
        assert_eq!((value() & GOING_ON, value() >> GOING_ON_BITS), (2, 2));
        drop(first);
        assert_eq!(value() & GOING_ON, 1);
        drop(second);
        assert_eq!((value() & GOING_ON, value() >> GOING_ON_BITS), (0, 2));
    }
}
