//! Batches that readers of the latest state, which is ahead of snapshots, must see as a whole.
//!
//! A read of the latest state can see a batch while it is being applied, with only some of its effects. For most
//! batches this does no harm. The others are committed under [`Store::commit_whole`], and a read that overlaps with one
//! takes a snapshot instead.

use crate::{Result, Store, View};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Lower bits: number of whole commits being applied. Upper bits: number of whole commits that ever began.
#[derive(Default)]
pub(crate) struct WholeCommits(AtomicU64);

const GOING_ON_BITS: u32 = 20;
const GOING_ON: u64 = (1 << GOING_ON_BITS) - 1;
/// Adds one to both numbers.
const BEGUN: u64 = (1 << GOING_ON_BITS) + 1;

/// While it lives, commits are seen as a whole.
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
    /// Until the result is dropped, the caller's commits are seen as a whole.
    pub fn commit_whole(&self) -> Whole<'_> {
        self.whole.begin()
    }

    /// Calls `read` with the latest state, and again with a snapshot if it may have seen a part of a batch that must be
    /// seen as a whole.
    /// # Errors
    /// Errors of `read`.
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
