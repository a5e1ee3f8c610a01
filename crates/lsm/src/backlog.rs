//! The backlog of background work behind the writers, and the urgency that follows from it.
//!
//! A flush becomes more urgent as the active memtable fills; a merge, as more memtables are flushed meanwhile. The
//! mover's urgency follows from the number of full segments (`cooling`).

use bunko_store::{Pace, Urgency};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of keys between two readings of the clock.
const KEYS_AT_ONCE: u64 = 64;
/// If more memtables than this are flushed during a merge, the merge takes all the processor that it can get; up to
/// half as many, it takes as little as it can. Flushed memtables add tables to the first level, which make reads
/// slower.
const FLUSHES_MAX: u64 = 8;

/// Bytes that wait in memory, and flushes that add to the first level of the tree.
#[derive(Default)]
pub(crate) struct Backlog {
    /// Size of the active memtable.
    unflushed: AtomicU64,
    /// Size of the memtables that are being flushed, or are flushed but not freed.
    flushing: AtomicU64,
    /// Size at which the last memtable was sealed; the active one will be about as large.
    sealed: AtomicU64,
    /// Number of memtables flushed since the start.
    flushes: AtomicU64,
    /// Whether merges are given up.
    is_given_up: AtomicBool,
}

impl Backlog {
    /// Bytes in the active memtable.
    pub fn unflushed(&self) -> u64 {
        self.unflushed.load(Ordering::Relaxed)
    }

    /// Bytes in sealed memtables that have not been freed.
    pub fn flushing(&self) -> u64 {
        self.flushing.load(Ordering::Relaxed)
    }

    /// Number of memtables flushed since the start.
    pub fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Relaxed)
    }

    /// Gives up all merges, including future ones.
    pub fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
    }

    /// Whether merges are given up.
    pub fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }

    /// Notes the size of the active memtable.
    pub fn note_unflushed(&self, bytes: u64) {
        self.unflushed.store(bytes, Ordering::Relaxed);
    }

    /// Notes that a memtable of that size was sealed and a new one is active.
    pub fn note_sealed(&self, bytes: u64) {
        self.flushing.fetch_add(bytes, Ordering::Relaxed);
        self.sealed.store(bytes, Ordering::Relaxed);
        self.note_unflushed(0);
    }

    /// Notes that a memtable of that size was freed.
    pub fn note_freed(&self, bytes: u64) {
        self.flushing.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Notes that a memtable is now in the tables.
    pub fn note_flushed(&self) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins to flush, or to free, this many keys.
    pub fn begin_flush(self: &Arc<Self>, keys: u64) -> PacedWork {
        self.begin(Until::NextSealed { keys, begun: self.unflushed() })
    }

    /// Begins to merge tables.
    pub fn begin_merge(self: &Arc<Self>) -> PacedWork {
        self.begin(Until::Flushed { begun: self.flushes() })
    }

    fn begin(self: &Arc<Self>, until: Until) -> PacedWork {
        let deadline = Deadline { backlog: Arc::clone(self), until, last_seen: None, done: 0 };
        PacedWork { pace: Pace::begin(), deadline, unchecked: 0 }
    }
}

/// Work on keys that rests between steps as long as its deadline allows.
pub(crate) struct PacedWork {
    pace: Pace,
    deadline: Deadline,
    /// Keys since the last reading of the clock.
    unchecked: u64,
}

impl PacedWork {
    /// Whether the work is no longer wanted.
    pub fn is_given_up(&self) -> bool {
        self.deadline.backlog.is_given_up()
    }

    /// Notes that this many more keys are done, and rests if that is due. Must be called with no lock held.
    pub fn did(&mut self, keys: u64) {
        self.deadline.done += keys;
        self.unchecked += keys;
        if self.unchecked >= KEYS_AT_ONCE {
            self.unchecked = 0;
            self.pace.step(|| self.deadline.urgency());
        }
    }
}

struct Deadline {
    backlog: Arc<Backlog>,
    until: Until,
    /// Bytes in the active memtable at the last check.
    last_seen: Option<u64>,
    /// Number of keys done.
    done: u64,
}

/// When the work has to be finished.
enum Until {
    /// Well before the next memtable is sealed.
    NextSealed {
        /// Number of keys to do.
        keys: u64,
        /// Bytes in the active memtable when the work began.
        begun: u64,
    },
    /// Before [`FLUSHES_MAX`] memtables are flushed.
    Flushed {
        /// Number of memtables that had been flushed when the work began.
        begun: u64,
    },
}

impl Deadline {
    fn urgency(&mut self) -> Urgency {
        let now = self.backlog.unflushed();
        // While no client writes, the work delays no writer, so it need not rest.
        if self.last_seen.replace(now) == Some(now) {
            return Urgency::Hurry;
        }
        match self.until {
            Until::NextSealed { keys, begun } => {
                // The deadline is half of the usual size, because the next checkpoint waits for this work, and a late
                // one seals a larger memtable.
                let latest = self.backlog.sealed.load(Ordering::Relaxed) / 2;
                let done_part = self.done as f64 / keys.max(1) as f64;
                haste_of_flush(done_part, now.saturating_sub(begun), latest.saturating_sub(begun))
            }
            Until::Flushed { begun } => haste_of_merge(self.backlog.flushes() - begun),
        }
    }
}

/// Urgency of a flush of which `done_part` is done, after `filled` of `room` bytes were written. A flush that is too
/// late is hurried, because a full memory would delay writers more than the work does.
fn haste_of_flush(done_part: f64, filled: u64, room: u64) -> Urgency {
    if filled > room {
        Urgency::Hurry
    } else if done_part * room as f64 > 1.5 * filled as f64 {
        Urgency::Leisure
    } else {
        Urgency::Usual
    }
}

/// Urgency of a merge during which `flushes` memtables were flushed.
fn haste_of_merge(flushes: u64) -> Urgency {
    if flushes > FLUSHES_MAX {
        Urgency::Hurry
    } else if flushes > FLUSHES_MAX / 2 {
        Urgency::Usual
    } else {
        Urgency::Leisure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_is_ahead_of_the_writers_takes_its_time() {
        let of_flush = |done_part, filled| haste_of_flush(done_part, filled, 100);
        assert_eq!(of_flush(0.0, 0), Urgency::Usual);
        assert_eq!(of_flush(0.4, 26), Urgency::Leisure);
        assert_eq!(of_flush(0.4, 27), Urgency::Usual);
        assert_eq!(of_flush(0.9, 100), Urgency::Usual);
        assert_eq!(of_flush(0.9, 101), Urgency::Hurry);
        assert_eq!(haste_of_flush(0.5, 1, 0), Urgency::Hurry, "there was no room to begin with");
    }

    #[test]
    fn no_writer_waits_for_work_without_writers() {
        let backlog = Arc::new(Backlog::default());
        backlog.note_unflushed(1000);
        backlog.note_sealed(1000);
        let mut work = backlog.begin_flush(100);
        work.did(10);
        assert_eq!(work.deadline.urgency(), Urgency::Leisure);
        backlog.note_unflushed(10);
        assert_eq!(work.deadline.urgency(), Urgency::Leisure);
        assert_eq!(work.deadline.urgency(), Urgency::Hurry);
        let hastes = [100, 500, 501].map(|bytes| {
            backlog.note_unflushed(bytes);
            work.deadline.urgency()
        });
        assert_eq!(hastes, [Urgency::Usual, Urgency::Usual, Urgency::Hurry]);
    }

    #[test]
    fn a_merge_hurries_once_flushes_pile_up_behind_it() {
        let backlog = Arc::new(Backlog::default());
        backlog.note_flushed();
        let mut work = backlog.begin_merge();
        let hastes = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|bytes| {
            backlog.note_flushed();
            backlog.note_unflushed(bytes);
            work.deadline.urgency()
        });
        assert_eq!(hastes[..4], [Urgency::Leisure; 4]);
        assert_eq!(hastes[4..8], [Urgency::Usual; 4]);
        assert_eq!(hastes[8], Urgency::Hurry);
        assert_eq!(work.deadline.urgency(), Urgency::Hurry, "nobody writes");
    }

    #[test]
    fn waiting_work_is_counted() {
        let backlog = Backlog::default();
        backlog.note_unflushed(70);
        backlog.note_sealed(70);
        backlog.note_unflushed(5);
        assert_eq!((backlog.unflushed(), backlog.flushing()), (5, 70));
        backlog.note_freed(70);
        assert_eq!((backlog.unflushed(), backlog.flushing()), (5, 0));
    }
}
