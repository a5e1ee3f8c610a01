//! How far the work in the background is behind what is written, and how much of a hurry it is therefore in.

use bunko_store::{Haste, Pace};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys between two looks at the clock.
const KEYS_AT_ONCE: u64 = 64;

/// What waits in memory, in bytes.
#[derive(Default)]
pub(crate) struct Backlog {
    /// Size of the active memtable.
    unflushed: AtomicU64,
    /// Size of the memtables that are being flushed, or are flushed and not freed.
    flushing: AtomicU64,
    /// Size at which the last memtable was sealed; the active one is going to be about as large.
    sealed: AtomicU64,
}

impl Backlog {
    /// Bytes in the active memtable.
    pub fn unflushed(&self) -> u64 {
        self.unflushed.load(Ordering::Relaxed)
    }

    /// Bytes that were sealed and are not free again.
    pub fn flushing(&self) -> u64 {
        self.flushing.load(Ordering::Relaxed)
    }

    /// The active memtable has grown to that.
    pub fn note_unflushed(&self, bytes: u64) {
        self.unflushed.store(bytes, Ordering::Relaxed);
    }

    /// A memtable of that size was sealed; the active one is new.
    pub fn note_sealed(&self, bytes: u64) {
        self.flushing.fetch_add(bytes, Ordering::Relaxed);
        self.sealed.store(bytes, Ordering::Relaxed);
        self.note_unflushed(0);
    }

    /// A memtable of that size is free again.
    pub fn note_freed(&self, bytes: u64) {
        self.flushing.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Begins a piece of work; `keys` is how many it is about, where that is known.
    pub fn begin(self: &Arc<Self>, keys: Option<u64>) -> PacedWork {
        let (backlog, begun) = (Arc::clone(self), self.unflushed());
        let deadline = Deadline { backlog, keys, begun, last_seen: None, done: 0 };
        PacedWork { pace: Pace::begin(), deadline, unchecked: 0 }
    }
}

/// Work on keys that rests for as long as it can afford to.
pub(crate) struct PacedWork {
    pace: Pace,
    deadline: Deadline,
    /// Keys since the last look at the clock.
    unchecked: u64,
}

impl PacedWork {
    /// Notes that so many more keys are done, and rests where that is due. To be called with no lock held.
    pub fn did(&mut self, keys: u64) {
        self.deadline.done += keys;
        self.unchecked += keys;
        if self.unchecked >= KEYS_AT_ONCE {
            self.unchecked = 0;
            self.pace.step(|| self.deadline.haste());
        }
    }
}

struct Deadline {
    backlog: Arc<Backlog>,
    keys: Option<u64>,
    /// Bytes in the active memtable when the work began.
    begun: u64,
    /// Bytes in the active memtable when this was last asked.
    last_seen: Option<u64>,
    done: u64,
}

impl Deadline {
    fn haste(&mut self) -> Haste {
        let now = self.backlog.unflushed();
        // While nobody writes it holds nobody up.
        if self.last_seen.replace(now) == Some(now) {
            return Haste::Hurry;
        }
        // Not the last moment: the next checkpoint waits for this, and what it seals is the larger for it.
        let latest = self.backlog.sealed.load(Ordering::Relaxed) / 2;
        let done_part = self.keys.map(|keys| self.done as f64 / keys.max(1) as f64);
        haste(done_part, now.saturating_sub(self.begun), latest.saturating_sub(self.begun))
    }
}

/// `filled` of `room` bytes were written since the work began; who writes faster than it is done is held up more by a
/// full memory than by it.
fn haste(done_part: Option<f64>, filled: u64, room: u64) -> Haste {
    if filled > room {
        Haste::Hurry
    } else if done_part.is_some_and(|done_part| done_part * room as f64 > 1.5 * filled as f64) {
        Haste::Leisure
    } else {
        Haste::Usual
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_is_ahead_of_the_writers_takes_its_time() {
        let of_known = |done_part, filled| haste(Some(done_part), filled, 100);
        assert_eq!(of_known(0.0, 0), Haste::Usual);
        assert_eq!(of_known(0.4, 26), Haste::Leisure);
        assert_eq!(of_known(0.4, 27), Haste::Usual);
        assert_eq!(of_known(0.9, 100), Haste::Usual);
        assert_eq!(of_known(0.9, 101), Haste::Hurry);
        let of_unknown = |filled| haste(None, filled, 100);
        assert_eq!([of_unknown(0), of_unknown(100), of_unknown(101)], [Haste::Usual, Haste::Usual, Haste::Hurry]);
        assert_eq!(haste(Some(0.5), 1, 0), Haste::Hurry, "there was no room to begin with");
    }

    #[test]
    fn nobody_waits_for_work_beside_which_nobody_writes() {
        let backlog = Arc::new(Backlog::default());
        backlog.note_unflushed(1000);
        backlog.note_sealed(1000);
        let mut work = backlog.begin(Some(100));
        work.did(10);
        assert_eq!(work.deadline.haste(), Haste::Leisure);
        backlog.note_unflushed(10);
        assert_eq!(work.deadline.haste(), Haste::Leisure);
        assert_eq!(work.deadline.haste(), Haste::Hurry);
        let hastes = [100, 500, 501].map(|bytes| {
            backlog.note_unflushed(bytes);
            work.deadline.haste()
        });
        assert_eq!(hastes, [Haste::Usual, Haste::Usual, Haste::Hurry]);
    }

    #[test]
    fn what_waits_is_counted() {
        let backlog = Backlog::default();
        backlog.note_unflushed(70);
        backlog.note_sealed(70);
        backlog.note_unflushed(5);
        assert_eq!((backlog.unflushed(), backlog.flushing()), (5, 70));
        backlog.note_freed(70);
        assert_eq!((backlog.unflushed(), backlog.flushing()), (5, 0));
    }
}
