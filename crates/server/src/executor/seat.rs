//! The state of a thread that other threads see.

use super::queue::Queue;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One thread's shared state. It is written for every task, so each seat has cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Seat {
    /// Tasks to run, in order. Other threads take them only if this thread does not get to them.
    pub ready: Mutex<Queue>,
    /// Odd while the thread runs a task. Written only by that thread.
    steps: AtomicU64,
    /// Whether the thread rests until it is needed.
    rests: AtomicBool,
    /// Whether a thread has the seat.
    is_taken: AtomicBool,
    /// Whether the thread must leave after its current task.
    is_dismissed: AtomicBool,
}

/// The activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// The thread serves, or will at once.
    Serves,
    /// The thread is still in the task of the last look.
    IsHeld,
    /// The thread rests until it is needed.
    Rests,
}

impl Seat {
    /// Runs a task.
    pub fn run<T>(&self, run: impl FnOnce() -> T) -> T {
        let steps = self.steps.load(Ordering::Relaxed);
        self.steps.store(steps.wrapping_add(1), Ordering::Relaxed);
        let ran = run();
        self.steps.store(steps.wrapping_add(2), Ordering::Relaxed);
        ran
    }

    /// Rests while `wait` runs.
    pub fn rest<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.rests.store(true, Ordering::Relaxed);
        let waited = wait();
        self.rests.store(false, Ordering::Relaxed);
        waited
    }

    /// The thread's activity since the last look. `last` is the thread's step count at that look, and is updated.
    pub fn look(&self, last: &mut u64) -> Activity {
        let steps = self.steps.load(Ordering::Relaxed);
        let before = std::mem::replace(last, steps);
        if self.rests.load(Ordering::Relaxed) {
            Activity::Rests
        } else if steps % 2 == 1 && steps == before {
            Activity::IsHeld
        } else {
            Activity::Serves
        }
    }

    /// Takes the seat for a new thread. Returns whether it was free.
    pub fn take(&self) -> bool {
        let is_free = !self.is_taken.swap(true, Ordering::AcqRel);
        if is_free {
            self.is_dismissed.store(false, Ordering::Relaxed);
        }
        is_free
    }

    /// Frees the seat.
    pub fn leave(&self) {
        self.is_taken.store(false, Ordering::Release);
    }

    pub fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::Acquire)
    }

    /// Tells the thread to leave after its current task. Returns whether this is the first time.
    pub fn dismiss(&self) -> bool {
        !self.is_dismissed.swap(true, Ordering::Relaxed)
    }

    pub fn is_dismissed(&self) -> bool {
        self.is_dismissed.load(Ordering::Relaxed)
    }
}
